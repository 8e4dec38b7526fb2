"""``graphrun plan``: how a graph would run. Nothing is written and nothing sent."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from graphrun.cli.options import AsJson, File, Tasks


def plan(file: File, *, tasks: Tasks = None, as_json: AsJson = False) -> None:
    """Check a graph and print its waves, the delegated graph and its bound."""
    from graphrun.cli.console import show, show_json
    from graphrun.cli.graph_file import load_graph
    from graphrun.client import Client

    made = Client().plan(load_graph(file, tasks or ()).spec)
    if as_json:
        show_json(made.to_document())
    else:
        show(str(made).rstrip())
