from __future__ import annotations

import json
import shlex
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from workers.model.play import Output, Post, Run, Say, Script, next_move, read_output


def script() -> Script:
    first = yield "one"
    second = yield Post("c", first.stdout)
    return f"{first.stdout} {second.exit_code}"


def test_a_script_is_played_up_to_what_is_known() -> None:
    outputs = [Output("x"), Output("", 3)]
    assert next_move(script(), []) == Run("one")
    assert next_move(script(), outputs[:1]) == Run(Post("c", "x").command())
    assert next_move(script(), outputs) == Say("x 3")
    assert next_move(script(), [*outputs, Output("more")]) == Say("x 3")


def test_where_a_message_goes() -> None:
    full = Post("c", "text", reply_to="e", mentions=("k", "l")).command()
    assert full == (
        "printf %s text | buzz messages send --channel c --reply-to e --mention k --mention l "
        "--content -"
    )
    assert "--reply-to" not in Post("c", "x").command()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_content_is_quoted(content: str) -> None:
    command = Post("c", content).command()
    assert shlex.split(command.rpartition(" | ")[0]) == ["printf", "%s", content]


def test_content_arrives_as_it_is() -> None:
    content = "a 'b' \"c\" $d `e` \\n %s\n\n- f\n"
    command = Post("c", content).command().partition(" | buzz ")[0]
    for shell in ("sh", "bash"):
        done = subprocess.run([shell, "-c", command], capture_output=True, check=True, timeout=10)
        assert done.stdout.decode() == content


def test_tool_results() -> None:
    told = {"exit_code": 2, "stdout": "out", "stderr": "err"}
    assert read_output(json.dumps(told)) == Output("out", 2)
    for text in ("plain", "[1]", '{"other": 1}', '{"stdout": 5}', ""):
        assert read_output(text) == Output(text)
    assert read_output('{"stdout": "x"}') == Output("x", 0)
