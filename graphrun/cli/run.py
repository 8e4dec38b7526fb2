"""``graphrun run`` and ``graphrun submit``: starting runs."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from typing import Annotated

import typer

from graphrun.cli.options import AsJson, DatabaseUrl, File, IdempotencyKey, Policy, Tasks


def run(  # noqa: PLR0913 - a command's options are its parameters
    file: File,
    *,
    local: Annotated[
        bool, typer.Option("--local", help="Bring a private Redis and a worker, and stop them afterwards.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", metavar="N", min=1, help="Processes of --local.")
    ] = 2,
    tasks: Tasks = None,
    failure_policy: Policy = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Wait no longer.", show_default=False)
    ] = None,
    idempotency_key: IdempotencyKey = None,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run a graph, watch it, and print what became of it; exit 0 only if the run succeeded.

    With --local nothing has to be there before. The run is kept in a SQLite file under .graphrun/, unless --database
    says where.
    """
    from graphrun.cli.running import RunRequest, run_graph, run_locally

    request = RunRequest(
        file=file,
        tasks=tuple(tasks or ()),
        failure_policy=failure_policy.policy if failure_policy else None,
        timeout=timeout,
        idempotency_key=idempotency_key,
        database=database,
        as_json=as_json,
    )
    raise typer.Exit(run_locally(request, concurrency) if local else run_graph(request))


def submit(
    file: File,
    *,
    tasks: Tasks = None,
    failure_policy: Policy = None,
    idempotency_key: IdempotencyKey = None,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a run, send its first wave, and print its id without waiting."""
    from graphrun.cli.console import say, show, show_json
    from graphrun.cli.graph_file import load_graph
    from graphrun.cli.session import open_client

    spec = load_graph(file, tasks or ()).spec
    policy = failure_policy.policy if failure_policy else None
    with open_client(database) as client:
        handle = client.submit(spec, failure_policy=policy, idempotency_key=idempotency_key)
        status = handle.status.value
    if handle.warning is not None:
        say(f"graphrun: {handle.warning}")
    if as_json:
        show_json({"run_id": handle.run_id, "status": status, "warning": handle.warning})
    else:
        show(handle.run_id)
