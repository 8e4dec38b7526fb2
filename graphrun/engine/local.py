"""The embedded default: a private Redis and workers on it, for a laptop, a demo or a test.

It answers for starting workers and knowing when they serve. This module must not decide anything about runs, and it
makes no ledger: whoever starts workers has prepared the database.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from graphrun.engine.guarding import GuardHandle, tail
from graphrun.engine.local_server import LocalServer, find_server
from graphrun.errors import LocalServerError
from graphrun.settings import Settings

__all__ = ["LocalCluster", "LocalServer", "find_server", "worker_command"]

READY_SECONDS = 60.0
# The worker writes this file once it consumes messages; see ``worker``.
READY_VARIABLE = "GRAPHRUN_READY_FILE"


def worker_command(
    *,
    concurrency: int,
    queues: Sequence[str],
    tasks: Sequence[str] = (),
    loglevel: str = "INFO",
    hostname: str | None = None,
) -> list[str]:
    """Return the command line of a worker; its settings come from ``GRAPHRUN_*`` variables.

    Args:
        concurrency: processes of its pool.
        queues: what it consumes, in Celery's names.
        tasks: modules or ``.py`` files to import.
        loglevel: Celery's.
        hostname: Celery's node name, in which ``%h`` is the machine.
    """
    command = [sys.executable, "-m", "graphrun", "worker", "--concurrency", str(concurrency)]
    command += ["--queues", ",".join(queues), "--loglevel", loglevel]
    for name in tasks:
        command += ["--tasks", name]
    return command if hostname is None else [*command, "--hostname", hostname]


class LocalCluster:
    """A private Redis and workers on it; entering waits until the workers take messages.

    Args:
        settings: of the run; broker and result backend are replaced, see :attr:`settings`.
        concurrency: processes of each worker.
        workers: how many.
        tasks: modules or ``.py`` files for the workers to import.
        queues: what the workers consume beyond the two queues of the settings: those that the graph's tasks name.
        loglevel: of the workers' logs.

    Raises:
        LocalServerError: on entering: no Redis could be started, or a worker ended or was not ready in time; then the
            end of its log is in the message.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        concurrency: int = 2,
        workers: int = 1,
        tasks: Sequence[str] = (),
        queues: Sequence[str] = (),
        loglevel: str = "INFO",
    ) -> None:
        self._given = settings
        self._concurrency = concurrency
        self._workers = workers
        self._tasks = [str(Path(name).resolve()) if name.endswith(".py") else name for name in tasks]
        self._queues = list(dict.fromkeys([settings.queue, settings.control_queue, *queues]))
        self._loglevel = loglevel
        self._guard: GuardHandle | None = None
        self._server: LocalServer | None = None
        self._names: list[str] = []

    def __enter__(self) -> Self:
        executable = find_server()
        self._guard = GuardHandle()
        try:
            self._server = LocalServer(executable, guard=self._guard).__enter__()
            for number in range(1, self._workers + 1):
                self._start_worker(f"worker-{number}")
            self._wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings given, with the embedded Redis as broker and result backend."""
        server = self._running_server()
        return self._given.model_copy(update={"broker_url": server.broker_url, "result_url": server.result_url})

    @property
    def directory(self) -> Path:
        """Where the logs are; it ends with the cluster."""
        return self._running_guard().directory

    def check(self) -> None:
        """See that every worker still runs.

        Raises:
            LocalServerError: one has ended; the end of its log is in the message.
        """
        for name in self._names:
            code = self._running_guard().poll(name)
            if code is not None:
                raise LocalServerError(f"{name} ended with exit code {code}:\n{self.tail(name)}")

    def log(self, name: str = "worker-1") -> Path:
        """Return the file that holds a process' output."""
        return self.directory / f"{name}.log"

    def tail(self, name: str = "worker-1", lines: int = 15) -> str:
        """Return the last lines of a process' output."""
        return tail(self.log(name), lines)

    def close(self) -> None:
        """Stop everything; a second call does nothing."""
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def _start_worker(self, name: str) -> None:
        command = worker_command(
            concurrency=self._concurrency,
            queues=self._queues,
            tasks=self._tasks,
            loglevel=self._loglevel,
            hostname=f"{name}@%h",
        )
        variables = os.environ | self.settings.environment() | {READY_VARIABLE: str(self._ready_file(name))}
        self._running_guard().start(name, command, environment=variables, log=self.log(name))
        self._names.append(name)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        for name in self._names:
            while not self._ready_file(name).exists():
                self.check()
                if time.monotonic() >= deadline:
                    raise LocalServerError(f"{name} is not ready after {READY_SECONDS:g} s:\n{self.tail(name)}")
                time.sleep(0.02)

    def _ready_file(self, name: str) -> Path:
        return self.directory / f"{name}.ready"

    def _running_guard(self) -> GuardHandle:
        if self._guard is None:
            raise LocalServerError("the embedded servers are not running: use LocalCluster as a context manager")
        return self._guard

    def _running_server(self) -> LocalServer:
        self._running_guard()
        assert self._server is not None  # noqa: S101 - made together with the guard
        return self._server
