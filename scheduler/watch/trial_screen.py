"""One attempt's moment as a screen of text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from scheduler.report.names import counted, short_name
from scheduler.report.transcript import Line, transcript
from scheduler.watch.layout import one_line
from scheduler.watch.trial_reader import TrialMoment
from scheduler.watch.words import amount, duration, money
from workers.contract.evidence import Evidence
from workers.contract.live import LiveTrial

TALL = 20
"""Lines from which on the agents' logs are shown as well."""
LOG_SHARE = 4
"""One line in so many is the log's."""
CALL_ENTRY = "llm: call completed"
"""In a line of the reference agent's log that says what the ledger says as well."""
UNBOUNDED = 1_000_000
MESSAGE_LINES = 6
"""Of one message, at most; the last one may take what is left."""
_VERDICTS = {"pass": "bold green", "fail": "bold red", "invalid": "bold yellow"}


def trial_screen(moment: TrialMoment, width: int, height: int | None) -> RenderableType:
    """The whole screen: heads, the end of the conversation, the end of the log, a foot.

    Where ``height`` is null the whole conversation, and no foot.
    """
    if height is None:
        return Group(*_head(moment), *_conversation(_channel(moment), width, UNBOUNDED))
    head = list(_head(moment))[: max(1, height - 1)]
    room = height - len(head) - 1
    log: list[Text] = []
    if moment.live is not None and height >= TALL:
        log = _log(moment.live, room // LOG_SHARE)
        room -= len(log)
    body = _conversation(_channel(moment), width, max(0, room))
    blank = [Text("")] * (room - len(body))
    foot = [Text("q leaves; the trial is not disturbed", style="dim")] if height > 1 else []
    lines = [*head, *body, *blank, *log, *foot]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def trial_lines(moment: TrialMoment) -> Iterator[str]:
    """The heads, for what stays on the terminal when the screen is gone."""
    for line in _head(moment):
        yield line.plain


def _head(moment: TrialMoment) -> Iterator[Text]:
    subject = moment.subject
    title = f"{short_name(subject.task)} × {subject.condition} #{subject.place}"
    text = Text(one_line(title), style="bold")
    text.append(f"  {subject.attempt[:12]} of {one_line(subject.sweep)}", style="dim")
    yield text
    yield _state(moment)
    if moment.live is not None:
        yield from _agents(moment.live)
    elif moment.record is not None and moment.record.usage.calls:
        usage = moment.record.usage
        yield Text(
            f"{counted(usage.calls, 'call')}, {amount(usage.input_tokens)} tokens in, "
            f"{amount(usage.output_tokens)} out, {money(usage.cost_usd)}"
        )
    if moment.fault:
        yield Text(one_line(f"! {moment.fault}"), style="yellow")
    channel = _channel(moment)
    if channel is not None:
        yield _who_writes(channel)


def _state(moment: TrialMoment) -> Text:
    match moment.standing:
        case "shown":
            assert moment.live is not None  # that is what the word means
            live = moment.live
            late = f", nothing new for {duration(moment.still_s)}" if moment.still_s > 5 else ""
            return Text(
                one_line(
                    f"runs: {live.phase}, {duration(live.elapsed_s)}, try {live.try_} on "
                    f"{live.node}{late}"
                ),
                style="green",
            )
        case "begins":
            assert moment.running is not None  # that is what the word means
            running = moment.running
            return Text(
                one_line(
                    f"runs: {running.phase}, try {running.try_} on {running.node}; its node has "
                    "been asked to show it, which it does once there is a channel"
                ),
                style="green",
            )
        case "ended":
            assert moment.record is not None  # that is what the word means
            record = moment.record
            text = Text(record.verdict.value, style=_VERDICTS[record.verdict.value])
            if record.verdict.value != "pass":
                text.append(f"  {record.blame}: {record.cause}")
            if record.detail:
                text.append(f", {one_line(record.detail)}")
            again = "" if moment.is_final else "; the attempt has no result yet"
            about = one_line(f"(try {record.try_}, {record.ended_at}{again})")
            text.append(f"  {about}", style="dim")
            return text
        case "waiting":
            if moment.is_driven:
                return Text(
                    "waits for a node, or has just begun: no try has ended yet", style="cyan"
                )
            return Text(
                "has not been tried, and no driver is at work: apiary resume", style="yellow"
            )


def _agents(live: LiveTrial) -> Iterator[Text]:
    for each in live.agents:
        text = Text(one_line(each.agent), style="bold magenta")
        usage = each.usage
        about = "≥ " if usage.unknown_cost_calls else ""
        text.append(
            f"  {counted(each.turns_started, 'turn')}, {each.turns_ended} ended; "
            f"{counted(usage.calls, 'call')} ({usage.failed_calls} failed), {each.tool_calls} for "
            f"tools; {amount(usage.input_tokens)} tokens in, {amount(usage.output_tokens)} out, "
            f"{about}{money(usage.cost_usd)}",
            style="not bold default",
        )
        yield text


def _who_writes(channel: Evidence) -> Text:
    counts = Counter(message.author or message.pubkey[:8] for message in channel.messages)
    shown = ", ".join(f"{name} {count}" for name, count in counts.most_common(8))
    cut = f", the last {len(channel.messages)} are here" if channel.truncated else ""
    return Text(
        f"── {counted(channel.message_count, 'message')}{cut}: {one_line(shown)}", style="bold dim"
    )


def _channel(moment: TrialMoment) -> Evidence | None:
    return moment.evidence if moment.live is None else moment.live.channel


def _conversation(channel: Evidence | None, width: int, room: int) -> list[Text]:
    """The conversation, or where there is no room for all of it its end."""
    shown: list[Text] = []
    if channel is None or room < 1:
        return shown
    lines = transcript(_shortened(channel, width * room))
    for most_of_one in (room, MESSAGE_LINES):
        shown = []
        for line in reversed(lines):
            left = room - len(shown)
            most = left if not shown else min(left, most_of_one)
            message = _message(line, width, most)
            shown = [*message[:left], *shown]
            if len(shown) >= room:
                break
        else:
            return shown
    return shown


def _shortened(channel: Evidence, most: int) -> Evidence:
    """The channel without the text that there is no room for: to make text harmless takes time."""
    last, few = len(channel.messages) - 1, most // 4
    messages = [
        message.model_copy(update={"content": message.content[: most if place == last else few]})
        for place, message in enumerate(channel.messages)
    ]
    return channel.model_copy(update={"messages": tuple(messages)})


def _message(line: Line, width: int, most: int) -> list[Text]:
    indent = "    " * line.depth if width >= 60 else " " * line.depth
    head = Text(indent + ("↳ " if line.depth else ""), style="dim")
    head.append(line.author, style="bold cyan" if line.role == "user" else "bold magenta")
    head.append(f"  {line.time}", style="dim not bold")
    if line.mentions:
        names = ", ".join(f"@{name}" for name in line.mentions)
        head.append(f"  notifies {names}", style="blue")
    if line.marks:
        head.append(f"  [{', '.join(line.marks)}]", style="dim")
    body = _wrapped(line.text.rstrip(), max(8, width - len(indent)))
    if len(body) + 1 > most:
        body = [*body[: max(0, most - 2)], "…"] if most > 1 else []
    return [head, *(Text(indent + each) for each in body)]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many columns, broken at blanks where there are any near the end."""
    lines: list[str] = []
    for line in text.expandtabs(4).splitlines() or [""]:
        begin = used = 0
        blank = -1
        for place, character in enumerate(line):
            size = cell_len(character)
            if used + size > width:
                near = blank > begin + (place - begin) // 2
                end = blank if near else place
                lines.append(line[begin:end])
                begin = end + 1 if near else end
                used = cell_len(line[begin:place])
            if character == " ":
                blank = place
            used += size
        lines.append(line[begin:])
    return lines


def _log(live: LiveTrial, room: int) -> list[Text]:
    """The last requests to the models, and the last lines of the agents' logs beside them."""
    if room < 2:
        return []
    calls = [
        f"{each.agent or '?'}: {each.model or '?'} {each.result}, {each.seconds:.1f} s, "
        f"{_known(each.input_tokens)} tokens in, {_known(each.output_tokens)} out"
        + (f", {each.finish}" if each.finish else "")
        for each in live.calls
    ]
    entries = [f"{e.agent}: {e.text}" for e in live.log if CALL_ENTRY not in e.text]
    of_calls = min(len(calls), (room - 1) // 2)
    of_log = min(len(entries), room - 1 - of_calls)
    told = calls[len(calls) - of_calls :] + entries[len(entries) - of_log :]
    if not told:
        return []
    return [
        Text("── the last model calls, and the agents' logs", style="bold dim"),
        *(Text(one_line(each), style="dim") for each in told),
    ]


def _known(tokens: int | None) -> str:
    return "?" if tokens is None else amount(tokens)
