"""The parent's end of the guard: starting it, asking it for processes, seeing them end.

It answers for the pipe to ``guard``, whose docstring has the protocol. It must not know what the processes are.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrun.engine import guard as guard_script
from graphrun.errors import LocalServerError

__all__ = ["GuardHandle", "tail"]


class GuardHandle:
    """The parent's end of a guard process."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", guard_script.__file__, str(os.getpid())]
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._pids: list[int] = []
        self.directory = Path(self._receive()["directory"])

    def start(
        self, name: str, argv: Sequence[str], *, environment: Mapping[str, str], log: Path, text: str | None = None
    ) -> int:
        """Start a process; return its id.

        Args:
            name: by which it is polled and stopped.
            argv: its command.
            environment: all of its variables.
            log: where its output goes.
            text: what it reads from stdin.

        Raises:
            LocalServerError: it cannot be started.
        """
        request = {"start": name, "argv": list(argv), "env": dict(environment), "log": str(log), "input": text}
        pid = int(self._ask(request)["pid"])
        self._pids.append(pid)
        return pid

    def poll(self, name: str) -> int | None:
        """Return a process' exit code, or None while it runs."""
        code: int | None = self._ask({"poll": name})["exit"]
        return code

    def stop(self, name: str) -> None:
        """End one process and its group."""
        self._ask({"stop": name})

    def close(self) -> None:
        """End everything and wait until it has ended."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10 + guard_script.GRACE_SECONDS * len(self._pids))
        if self._process.poll() != 0:
            self._end_without_guard()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _end_without_guard(self) -> None:
        # Somebody killed the guard, so the children are ours to end.
        self._process.kill()
        self._process.wait()
        for pid in reversed(self._pids):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            try:
                assert self._process.stdin is not None  # noqa: S101 - opened as a pipe above
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except (OSError, ValueError) as error:
                raise LocalServerError("the process that guards the embedded servers has ended") from error
            return self._receive()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe above
        line = self._process.stdout.readline()
        if not line:
            raise LocalServerError("the process that guards the embedded servers has ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LocalServerError(f"cannot start an embedded server: {answer['error']}")
        return answer


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a file, nothing when it is not there."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
