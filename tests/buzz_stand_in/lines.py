"""JSON-RPC 2.0 as lines on standard input and output, of a child or of this process."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class RpcError(Exception):
    """The other side answered with an error."""


class Child:
    """A child process that is asked and answers, one request at a time."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            text=True,
            start_new_session=True,
        )
        self._numbers = itertools.count(1)

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request; notifications that come meanwhile are passed over."""
        assert self.process.stdin is not None and self.process.stdout is not None
        number = next(self._numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RpcError(str(answer["error"]["message"]))
                return answer["result"]
        raise RpcError(f"{method}: the process ended")


def serve(methods: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
    """Answers requests on standard input until it ends."""
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        try:
            answer["result"] = methods[request["method"]](request.get("params") or {})
        except RpcError as error:
            answer["error"] = {"code": -32000, "message": str(error)}
        except KeyError:
            answer["error"] = {"code": -32601, "message": f"no method {request.get('method')}"}
        if request.get("id") is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
