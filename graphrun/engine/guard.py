"""The guard: a process that holds the embedded Redis and workers, and ends them when whoever asked for them is gone.

It answers for one thing: that nothing outlives its parent, which may end by Ctrl-C, by a crash or by SIGKILL. It knows
neither Redis nor Celery, imports the standard library alone and is run as a script, so that it starts in milliseconds
and no module of a user's can get in its way. It lives in a session of its own, so Ctrl-C in the terminal reaches its
parent only.

One JSON object a line comes in on stdin, one answer a line goes out on stdout::

    {"start": NAME, "argv": [...], "env": {...}, "log": PATH, "input": TEXT or null}  ->  {"pid": N}
    {"poll": NAME}                                                                    ->  {"exit": CODE or null}
    {"stop": NAME}                                                                    ->  {"exit": CODE}
    anything that fails                                                               ->  {"error": TEXT}

The first line out is ``{"directory": PATH}``, a temporary directory that ends with the guard. The end of stdin, a
signal to terminate, or another parent process than at the start end everything, the newest child first.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GRACE_SECONDS = 3.0
PARENT_CHECK_SECONDS = 1.0


class Guard:
    """The children, and the directory they work in.

    Args:
        directory: removed at the end.
        grace_seconds: how long a child may take to end by itself once it is asked to.
    """

    def __init__(self, directory: Path, grace_seconds: float = GRACE_SECONDS) -> None:
        self._directory = directory
        self._grace = grace_seconds
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; a failure is an answer too."""
        try:
            if "start" in request:
                return {"pid": self._start(request)}
            if "poll" in request:
                return {"exit": self._children[request["poll"]].poll()}
            return {"exit": self._stop(self._children.pop(request["stop"]))}
        except (OSError, KeyError, ValueError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def end(self) -> None:
        """Stop every child, the newest first: workers say good-bye to a Redis that still runs."""
        while self._children:
            _, child = self._children.popitem()
            self._stop(child)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self, request: dict[str, Any]) -> int:
        text: str | None = request["input"]
        with Path(request["log"]).open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 - the parent's own command, over a pipe that only it holds
                request["argv"],
                env=request["env"],
                stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self._children[request["start"]] = child
        if child.stdin is not None and text is not None:
            with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
                pipe.write(text.encode())
        return child.pid

    def _stop(self, child: subprocess.Popen[bytes]) -> int:
        """Ask a child to end, wait, and kill what is left of its process group."""
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(self._grace)
        # Also after an orderly end: a node may have left processes behind.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        return child.wait()


def serve(guard: Guard, parent_pid: int, wakeup: int) -> None:
    """Answer requests until stdin ends, a signal comes or the parent is gone.

    Args:
        guard: who carries them out.
        parent_pid: who started this process. A fork of it may hold the pipe open after it died, hence both checks.
        wakeup: a descriptor that becomes readable when a signal has come.
    """
    pending = b""
    while os.getppid() == parent_pid:
        ready, _, _ = select.select([sys.stdin.fileno(), wakeup], [], [], PARENT_CHECK_SECONDS)
        if wakeup in ready:
            return
        if not ready:
            continue
        data = os.read(sys.stdin.fileno(), 65_536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            _say(guard.answer(json.loads(line)))


def main(parent_pid: int) -> int:
    """Be the guard of one parent process."""
    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # A handler that does nothing, since one that is ignored would be ignored by the children too.
        signal.signal(number, lambda _number, _frame: None)
    guard = Guard(Path(tempfile.mkdtemp(prefix="graphrun-")))
    try:
        _say({"directory": str(guard._directory)})  # noqa: SLF001 - the same module
        serve(guard, parent_pid, wakeup)
    finally:
        guard.end()
    return 0


def _say(answer: dict[str, Any]) -> None:
    # The parent may be gone; the next look at stdin tells.
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
