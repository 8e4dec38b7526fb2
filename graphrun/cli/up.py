"""``graphrun up``: Redis, workers and Flower in one terminal, for developing on one machine."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from typing import Annotated

import typer

from graphrun.cli.options import DatabaseUrl, LogLevel, LogLevelName, Port, Tasks
from graphrun.cli.serve import FLOWER_PORT


def up(
    *,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="How many workers.")] = 1,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", "-c", metavar="N", min=1, help="Processes of each.", show_default="from settings"
        ),
    ] = None,
    tasks: Tasks = None,
    database: DatabaseUrl = None,
    port: Port = FLOWER_PORT,
    loglevel: LogLevel = LogLevelName.INFO,
) -> None:
    """Start what is missing of Redis, and workers and Flower; Ctrl-C stops all of it.

    A Redis is started on the configured port if none answers there and the settings name this machine.
    """
    from graphrun.cli.terminal import Terminal

    Terminal(tasks=tasks or (), database=database, loglevel=loglevel.value).run(workers, concurrency, port)
