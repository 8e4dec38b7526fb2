"""Carrying out ``up``: processes that are held by one guard, their output in one terminal, a prefix to each line.

It answers for what is started with which options and for showing output. That nothing outlives this process is the
guard's business.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from graphrun.cli.console import err, say
from graphrun.cli.graph_file import absolute
from graphrun.cli.interrupts import stopped_by_signals
from graphrun.cli.serve import flower_command, require_flower
from graphrun.cli.session import require_schema
from graphrun.client import Client
from graphrun.engine.guarding import GuardHandle
from graphrun.engine.loading import load_tasks
from graphrun.engine.local import find_server, worker_command
from graphrun.errors import BrokerDownError, EngineError, LocalServerError
from graphrun.registry import default_registry
from graphrun.settings import Settings, masked

_HERE = ("127.0.0.1", "localhost", "::1")
_LOOK_SECONDS = 0.2
_SERVER_SECONDS = 10.0
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")


class Terminal:
    """Redis, workers and Flower, until Ctrl-C or until one of them ends.

    The workers serve the queues of the settings and those that the tasks name: nobody else would.

    Args:
        tasks: modules and files for the workers.
        database: the ledger; the settings' when None.
        loglevel: of the workers.
    """

    def __init__(self, *, tasks: Iterable[str], database: str | None, loglevel: str) -> None:
        self._tasks = [absolute(name) for name in tasks]
        self._loglevel = loglevel
        self._database = database
        self._logs: dict[str, _Log] = {}

    def run(self, workers: int, concurrency: int | None, port: int) -> None:
        """Start everything and show its output.

        Raises:
            BrokerDownError: the broker does not answer and is not on this machine.
            LocalServerError: something ended by itself.
        """
        for name in self._tasks:
            load_tasks(name)  # a mistake in them is told here and not in a worker's log
        settings = require_schema(self._database)
        guard = GuardHandle()
        try:
            with stopped_by_signals():
                self._ensure_broker(guard, settings)
                self._start_workers(guard, settings, workers, concurrency or settings.worker_concurrency)
                self._start_flower(guard, settings, port)
                say(f"graphrun: broker {masked(settings.broker_url)}, ledger {masked(settings.database_url)}")
                say("graphrun: Ctrl-C stops everything; submit from another terminal: graphrun run FILE")
                self._follow(guard)
        finally:
            self._show()
            say("graphrun: stopping")
            guard.close()

    def _ensure_broker(self, guard: GuardHandle, settings: Settings) -> None:
        """Use the configured broker, or start a Redis in its place if that would be on this machine."""
        dispatcher = Client(settings).engine.dispatcher
        try:
            dispatcher.require_broker()
        except BrokerDownError:
            if not startable(settings.broker_url):
                raise
            url = urlsplit(settings.broker_url)
            self._start(guard, settings, "redis", [str(find_server()), "-"], _server_settings(url, guard.directory))
            deadline = time.monotonic() + _SERVER_SECONDS
            while not _reachable(dispatcher.require_broker):
                self._watch(guard)
                if time.monotonic() > deadline:
                    raise LocalServerError(f"Redis does not answer on {masked(settings.broker_url)}") from None
                time.sleep(_LOOK_SECONDS)

    def _start_workers(self, guard: GuardHandle, settings: Settings, workers: int, concurrency: int) -> None:
        for number in range(1, workers + 1):
            command = worker_command(
                concurrency=concurrency,
                queues=[settings.queue, settings.control_queue, *default_registry().queues()],
                tasks=self._tasks,
                loglevel=self._loglevel,
                hostname=f"worker-{number}@%h",
            )
            self._start(guard, settings, f"worker-{number}", command)

    def _start_flower(self, guard: GuardHandle, settings: Settings, port: int) -> None:
        try:
            require_flower()
        except EngineError as error:
            say(f"graphrun: no Flower: {error}")
            return
        self._start(guard, settings, "flower", flower_command(port))
        say(f"graphrun: Flower is at http://127.0.0.1:{port}")

    def _start(
        self, guard: GuardHandle, settings: Settings, name: str, command: list[str], text: str | None = None
    ) -> None:
        log = guard.directory / f"{name}.log"
        guard.start(name, command, environment=os.environ | settings.environment(), log=log, text=text)
        self._logs[name] = _Log(log, _COLOURS[len(self._logs) % len(_COLOURS)])

    def _follow(self, guard: GuardHandle) -> None:
        while True:
            self._show()
            self._watch(guard)
            time.sleep(_LOOK_SECONDS)

    def _watch(self, guard: GuardHandle) -> None:
        for name in self._logs:
            code = guard.poll(name)
            if code is not None:
                self._show()
                raise LocalServerError(f"{name} ended with exit code {code}; its last lines are above")

    def _show(self) -> None:
        console = err()
        width = max(map(len, self._logs), default=0)
        for name, log in self._logs.items():
            for text in log.new_lines():
                console.print(f"{name:<{width}} | ", style=log.colour, end="")
                console.print(text, markup=False, soft_wrap=True)


class _Log:
    """A file that grows, read line by line."""

    def __init__(self, path: Path, colour: str) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self.colour = colour

    def new_lines(self) -> list[str]:
        """Return the whole lines that were written since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]


def startable(broker_url: str) -> bool:
    """Say whether ``up`` may start a Redis in this broker's place: it would be one, and on this machine."""
    url = urlsplit(broker_url)
    return url.scheme == "redis" and url.hostname in _HERE


def _server_settings(url: SplitResult, directory: Path) -> str:
    """Return Redis' configuration for the place that the settings name; its data ends with the terminal."""
    lines = [f"port {url.port or 6379}", "bind 127.0.0.1", f'dir "{directory}"', 'save ""', "appendonly no"]
    if url.password:
        lines.append(f"requirepass {url.password}")
    return "\n".join([*lines, "loglevel warning", "daemonize no", ""])


def _reachable(require: Callable[[], None]) -> bool:
    try:
        require()
    except BrokerDownError:
        return False
    return True
