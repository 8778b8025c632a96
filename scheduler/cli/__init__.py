"""The command line ``apiary``: one module a command, loaded when it is called.

A command parses, calls the library, prints. Data goes to standard output, words for people
to standard error.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence

import click

from scheduler.cli.exits import Exit

COMMANDS: dict[str, str] = {
    "run": "Run a sweep until every attempt is settled.",
    "plan": "Show what a sweep would run, without running it.",
    "resume": "Go on with a sweep that was interrupted.",
    "status": "Show how far sweeps are.",
    "watch": "Watch a running sweep, or one of its trials.",
    "logs": "Show what happened in a sweep, as driver and nodes told it.",
    "show": "Show one attempt: transcript, dimensions, times, files.",
    "serve": "Serve the sweeps of a store as pages that change nothing.",
    "report": "Score a sweep again and write its page.",
    "compare": "Compare two sweeps, or two conditions of one, task by task.",
    "gate": "Say whether a sweep is as good as its baseline.",
    "schedule": "Run sweeps on a timetable.",
    "trend": "Show what the runs of a series came to.",
    "regrade": "Verify stored evidence again with the present verifiers.",
    "export": "Write a sweep's results in another harness's format.",
    "tasks": "List, show, check and make tasks.",
    "doctor": "Check that this machine can run trials.",
    "reap": "Remove what dead runs left on this machine.",
    "relay": "Serve a relay.",
    "model": "Serve a scripted model.",
    "bench": "Measure what Apiary promises.",
}
"""Every command and its help line, in the order of a user's day. The module of a command
bears its name; the table keeps ``apiary --help`` from loading all of them."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a command's module."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"scheduler.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"scheduler.cli.{cmd_name}.command is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command by its name; of a slip, the name that was probably meant is told."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            # Here because a right name needs no search.
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. (Did you mean {near[0]!r}?)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="apiary", prog_name="apiary")
def apiary() -> None:
    """Run benchmark sweeps of Buzz agents, and tell a weak model from a broken harness.

    A sweep is named by its id, by any unique prefix of it, or as `latest`. Results live in a
    store: `--store URL` after the command, else $APIARY_STORE, else .apiary in the working
    directory.
    """


def run_cli(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line.

    Returns:
        The exit code; see ``Exit``.
    """
    try:
        outcome = apiary.main(
            args=None if arguments is None else list(arguments),
            prog_name="apiary",
            standalone_mode=False,
        )
    except click.exceptions.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last door before the shell
        return _fail(error)
    return outcome if isinstance(outcome, int) else Exit.DONE


def main() -> None:
    """The entry point of the ``apiary`` script."""
    sys.exit(run_cli())


def _fail(error: BaseException) -> Exit:
    # Here because the table knows every part of Apiary, and help should need none of them.
    from scheduler.cli.failures import advice_on, exit_of
    from scheduler.report.transcript import visible

    code = exit_of(error)
    if code is Exit.BUG:
        traceback.print_exception(error)
        click.echo("✗ this is a bug of Apiary; its traceback stands above", err=True)
    elif str(error):
        for line in visible(str(error)).splitlines():
            click.echo(f"✗ {line}", err=True)
        if advice := advice_on(error):
            click.echo(advice, err=True)
    return code
