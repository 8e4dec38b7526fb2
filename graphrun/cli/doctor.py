"""``graphrun doctor``: whether everything that a run needs is there and safe."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from typing import Annotated

import typer

from graphrun.cli.options import AsJson, DatabaseUrl, Tasks


def doctor(
    *,
    app: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:APP", help="Your own Celery app.", show_default="the ready-made one"),
    ] = None,
    tasks: Tasks = None,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Look at database, broker, result backend, settings and workers; exit 1 if something fails."""
    from graphrun.cli.checks import Level, examine
    from graphrun.cli.console import show, show_json

    results = []
    for check in examine(app, tasks or (), database):
        results.append(check)
        if not as_json:
            show(check.line())
    failed = any(check.level is Level.FAIL for check in results)
    if as_json:
        show_json({"ok": not failed, "checks": [check.to_document() for check in results]})
    raise typer.Exit(int(failed))
