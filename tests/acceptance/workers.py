"""Starting real prefork workers for tests, and stopping them by process id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from graphrun import Settings

_HERE = Path(__file__).parent


class Worker:
    """A ``celery worker`` process of its own session, ready when entered and gone when left."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        *,
        concurrency: int,
        tasks: str = "bodies",
        app: str = "graphrun.engine.worker",
        queues: str | None = None,
    ) -> None:
        self._queues = f"{settings.queue},{settings.control_queue}" if queues is None else queues
        self._app = app
        self._settings = settings
        self._directory = directory
        self._concurrency = concurrency
        self._tasks = tasks
        self.log = directory / "worker.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        ready = self._directory / "ready"
        ready.unlink(missing_ok=True)
        queues = ["-Q", self._queues] if self._queues else []
        command = [sys.executable, "-m", "celery", "-A", self._app, "worker", *queues]
        command += [
            "--concurrency",
            str(self._concurrency),
            "--loglevel",
            "INFO",
            "--hostname",
            f"{self._directory.name}@%h",
        ]
        environment = os.environ | {
            "PYTHONPATH": str(_HERE),
            "GRAPHRUN_TASKS": self._tasks,
            "GRAPHRUN_READY_FILE": str(ready),
            **environment_of(self._settings),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() >= deadline:
                self.stop()
                raise AssertionError(self.log.read_text()[-4000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the worker to end, and kill what is left of its session."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=10)
        self.process = None


def unswept(settings: Settings, **changes: Any) -> Settings:
    """Return settings with queues of their own, under which no sweeper makes a pass while a test runs."""
    name = uuid4().hex[:8]
    queues = {"queue": f"alone-{name}", "control_queue": f"alone-control-{name}"}
    pauses = {"sweep_interval_seconds": 3600.0, "sweep_grace_seconds": 3600.0}
    return Settings.load(**settings.model_dump() | queues | pauses | changes)


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the environment variables that give a worker these settings."""
    given = settings.model_dump(exclude_none=True, exclude_unset=True)
    return {f"GRAPHRUN_{name.upper()}": str(value) for name, value in given.items()}


def wait_until(fact: object, *, seconds: float = 20.0) -> None:
    """Poll a callable until it is true; fail the test when it is not in time."""
    deadline = time.monotonic() + seconds
    while not fact():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the awaited fact did not come true in time"
        time.sleep(0.02)
