"""``graphrun list``, ``show`` and ``report``: reading runs. These commands change nothing."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from graphrun.cli.options import AsJson, DatabaseUrl, RunId

if TYPE_CHECKING:
    from graphrun.storage.records import AttemptRow


class StateName(StrEnum):
    """Run states to choose from."""

    CREATED = "created"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


def list_runs(
    *,
    state: Annotated[
        StateName | None,
        typer.Option("--state", metavar="STATE", help="created, running, succeeded, failed, cancelled."),
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", metavar="NAME", help="Only runs of this graph.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="At most so many, newest first.")
    ] = 20,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""
    from graphrun.cli.console import print_table, say, show_json
    from graphrun.cli.rendering import run_document, run_table
    from graphrun.cli.session import open_reader
    from graphrun.execution.state import RunState

    chosen = None if state is None else RunState(state.value)
    with open_reader(database) as client:
        rows = client.runs(state=chosen, graph=graph, limit=limit)
    if as_json:
        show_json({"runs": [run_document(row) for row in rows]})
    elif rows:
        print_table(run_table(rows))
    else:
        say("no such runs" if state or graph else "no runs yet; graphrun run FILE makes one")


def show(run: RunId, *, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Show a run and each of its nodes: state, attempts, time, worker, and why it failed or was skipped."""
    from graphrun.cli.console import print_table, show_json
    from graphrun.cli.console import show as print_text
    from graphrun.cli.rendering import node_document, node_table, run_document, run_lines
    from graphrun.cli.session import open_reader

    with open_reader(database) as client:
        handle = client.run(run)
        row, nodes, attempts = handle.row, handle.nodes(), handle.attempts()
    if as_json:
        by_key: dict[str, list[AttemptRow]] = {}
        for one in attempts:
            by_key.setdefault(one.key, []).append(one)
        show_json(run_document(row) | {"nodes": [node_document(node, by_key.get(node.key, ())) for node in nodes]})
        return
    print_text("\n".join(run_lines(row)) + "\n")
    print_table(node_table(nodes, attempts))


def report(run: RunId, *, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Print the implemented graph of a run beside its plan, with the verdict."""
    from graphrun.cli.console import show as print_text
    from graphrun.cli.console import show_json, width
    from graphrun.cli.rendering import beside, planned_waves
    from graphrun.cli.session import open_reader

    with open_reader(database) as client:
        handle = client.run(run)
        made, nodes = handle.report(), handle.nodes()
    if as_json:
        show_json(made.to_document())
    else:
        print_text(beside(planned_waves(nodes), made, width=width()) + "\n\n" + str(made))
