"""``buzz-dev-mcp``: the shell tool, and as ``buzz`` a part of the command (spec 5.9)."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from tests.buzz_stand_in.lines import serve
from tests.buzz_stand_in.nostr import Bridge

TIMEOUT_S = 120.0


def main(argv0: str) -> int:
    """Acts by its name: the command, else the MCP server."""
    if os.path.basename(argv0) == "buzz":
        return command(sys.argv[1:], os.environ)
    folder = tempfile.mkdtemp(prefix="buzz-dev-mcp-")
    try:
        os.symlink(os.path.abspath(argv0), os.path.join(folder, "buzz"))
        path = folder + os.pathsep + os.environ.get("PATH", os.defpath)
        environment = {**os.environ, "PATH": path}
        serve(
            {
                "initialize": lambda _: {"serverInfo": {"name": "buzz-dev-mcp"}},
                "tools/call": lambda params: _shell(params["arguments"], environment),
            }
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _shell(arguments: dict[str, Any], environment: Mapping[str, str]) -> Any:
    """Runs a command; its whole process group is ended afterwards."""
    started = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", arguments["command"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,
        text=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        timed_out, stdout, stderr = True, "", ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    told = {
        "exit_code": 124 if timed_out else process.returncode,
        "stdout": stdout,
        "stderr": stderr,
        "timed_out": timed_out,
        "duration_ms": round((time.monotonic() - started) * 1000),
    }
    return {"content": [{"type": "text", "text": json.dumps(told)}], "isError": False}


def command(words: list[str], environment: Mapping[str, str]) -> int:
    """``buzz messages send|get``, as far as a simple task needs it (spec 3.3)."""
    parser = argparse.ArgumentParser("buzz")
    group = parser.add_subparsers(required=True).add_parser("messages")
    actions = group.add_subparsers(required=True, dest="action")
    send, get = actions.add_parser("send"), actions.add_parser("get")
    for each in (send, get):
        each.add_argument("--channel", required=True)
    send.add_argument("--content", required=True)
    send.add_argument("--reply-to")
    send.add_argument("--mention", action="append", default=[])
    given = parser.parse_args(words)
    bridge = Bridge(
        environment["BUZZ_RELAY_URL"], environment["BUZZ_PRIVATE_KEY"], environment["BUZZ_AUTH_TAG"]
    )
    try:
        told = _send(bridge, given, environment) if given.action == "send" else _get(bridge, given)
    except OSError as error:
        document = {"error": "relay_error", "message": str(error), "retryable": False}
        sys.stderr.write(json.dumps(document) + "\n")
        return 2
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def _send(bridge: Bridge, given: argparse.Namespace, environment: Mapping[str, str]) -> Any:
    content = sys.stdin.read() if given.content == "-" else given.content
    tags = [["h", given.channel]]
    if given.reply_to:
        (parent,) = bridge.query({"ids": [given.reply_to], "limit": 1})
        marked = {tag[3]: tag[1] for tag in parent["tags"] if tag[0] == "e" and len(tag) > 3}
        root = marked.get("root") or marked.get("reply")
        if root:
            tags.append(["e", root, "", "root"])
        tags.append(["e", given.reply_to, "", "reply"])
    tags += [["p", key] for key in dict.fromkeys(given.mention)]
    tags.append(json.loads(environment["BUZZ_AUTH_TAG"]))
    made = bridge.publish(9, content, tags)
    mentions = [tag[1] for tag in tags if tag[0] == "p"]
    return {"event_id": made["id"], "accepted": True, "message": "", "mention_pubkeys": mentions}


def _get(bridge: Bridge, given: argparse.Namespace) -> Any:
    found = bridge.query({"kinds": [9], "#h": [given.channel], "limit": 50})
    found.sort(key=lambda each: int(each["created_at"]))
    keys = ("id", "pubkey", "kind", "content", "created_at", "tags")
    return [{key: each[key] for key in keys} for each in found]
