"""``graphrun worker`` and ``graphrun flower``: the two programs of Celery's that serve runs, with graphrun's settings.

They set the environment that the ready-made app is built from, and hand over. They must not import Celery themselves.
"""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Annotated

import typer

from graphrun.cli.options import DatabaseUrl, LogLevel, LogLevelName, Port, Tasks
from graphrun.errors import EngineError

TASKS_VARIABLE = "GRAPHRUN_TASKS"
DATABASE_VARIABLE = "GRAPHRUN_DATABASE_URL"
FLOWER_PORT = 5555


def worker(
    *,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", metavar="N", min=1, help="Worker processes.", show_default="from settings"),
    ] = None,
    queues: Annotated[
        str | None,
        typer.Option("--queues", "-Q", metavar="A,B", help="Queues to serve.", show_default="from settings"),
    ] = None,
    tasks: Tasks = None,
    database: DatabaseUrl = None,
    loglevel: LogLevel = LogLevelName.INFO,
    hostname: Annotated[
        str | None, typer.Option("--hostname", "-n", metavar="NAME", help="The worker's name.", show_default=False)
    ] = None,
) -> None:
    """Serve runs. Ctrl-C lets running nodes end, SIGTERM gives them 30 s; a second one does not wait."""
    _prepare(tasks, database)
    from graphrun.cli.session import require_schema

    settings = require_schema(database)
    from graphrun.engine.worker import app

    chosen = queues or f"{settings.queue},{settings.control_queue}"
    processes = concurrency or settings.worker_concurrency
    arguments = ["worker", f"--loglevel={loglevel.value}", f"--queues={chosen}", f"--concurrency={processes}"]
    # Asking neighbours for revoked ids costs a second at each start, and here the ledger says what may run.
    arguments.append("--without-mingle")
    if hostname is not None:
        arguments.append(f"--hostname={hostname}")
    app.worker_main(arguments)


def flower(
    *,
    port: Port = FLOWER_PORT,
    address: Annotated[str, typer.Option("--address", metavar="HOST", help="Where it listens.")] = "127.0.0.1",
) -> None:
    """Run Flower on graphrun's app: every node is a task of its own there."""
    require_flower()
    os.execv(sys.executable, flower_command(port, address))  # noqa: S606 - this interpreter, and options checked above


def require_flower() -> None:
    """Find out whether Flower is installed.

    Raises:
        EngineError: it is not; the message names the extra.
    """
    if importlib.util.find_spec("flower") is None:
        raise EngineError("Flower is not installed: pip install 'graphrun[flower]'")


def flower_command(port: int, address: str = "127.0.0.1") -> list[str]:
    """Return the command line of Flower on the ready-made app."""
    celery = [sys.executable, "-m", "celery", "-A", "graphrun.engine.worker"]
    return [*celery, "flower", f"--port={port}", f"--address={address}", "--logging=warning"]


def _prepare(tasks: list[str] | None, database: str | None) -> None:
    """Set what is read when billiard and the ready-made app are imported; so it has to be done before that."""
    os.environ.setdefault("REMAP_SIGTERM", "SIGQUIT")
    if database:
        os.environ[DATABASE_VARIABLE] = database
    if tasks:
        known = [name for name in os.environ.get(TASKS_VARIABLE, "").split(",") if name]
        os.environ[TASKS_VARIABLE] = ",".join(dict.fromkeys([*known, *tasks]))
