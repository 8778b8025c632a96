"""What an agent may leave behind to harm whoever reads it."""

from __future__ import annotations

from tests.scheduler.report.evidence import AGENT, ANSWER, TASK, USER, conversation, message
from workers.contract.evidence import Evidence

SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
ANSI = "\x1b[31mred\x1b[0m\x1b]0;taken\x07"
REVERSED = "safe\u202egpj.exe\u202c \u2066isolated\u2069"
LONG = "x" * 1_000_000


def hostile_conversation() -> Evidence:
    """A script, colours of a terminal, reversed writing, and a line of a megabyte."""
    return conversation(
        message(TASK, USER, "Begin.", at=1, mentions=(AGENT,)),
        message(ANSWER, AGENT, SCRIPT + ANSI, at=2, reply_to=TASK),
        message("3" * 64, AGENT, REVERSED, at=3, reply_to=ANSWER),
        message("4" * 64, AGENT, LONG, at=4),
        message("5" * 64, AGENT, "</pre></li></main><style>*{display:none}</style>", at=5),
    )
