"""Carrying out ``demo``: a graph, its plan, its run and its report, on servers and files that are gone afterwards."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from graphrun.cli.console import print_table, say, show
from graphrun.cli.demo_graph import demo_graph
from graphrun.cli.interrupts import stopped_by_signals
from graphrun.cli.rendering import beside_table
from graphrun.cli.session import require_schema
from graphrun.cli.watching import follow
from graphrun.client import Client
from graphrun.engine.local import LocalCluster
from graphrun.execution.state import RunState
from graphrun.settings import Settings

_TIMEOUT_SECONDS = 60.0
_PROCESSES = 2
_TASKS = "graphrun.cli.demo_graph"


def _program() -> str:
    """Return how this program is called here: its name where the shell finds it, else its place."""
    called, here = Path(sys.argv[0]).absolute(), Path.cwd()
    if called.name == "__main__.py":
        return "python -m graphrun"
    if shutil.which(called.name) == str(called):
        return called.name
    return str(called.relative_to(here) if called.is_relative_to(here) else called)


def run_demo() -> int:
    """Run the demo; return the exit code."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="graphrun-demo-") as directory, stopped_by_signals():
        settings = Settings.load(database_url=f"sqlite:///{Path(directory) / 'demo.db'}", tenant_id="demo")
        graph = demo_graph()
        show("A graph of eight nodes. South will fail once, check will ask for another plan.\n")
        show(str(Client(settings).plan(graph)).rstrip() + "\n")
        require_schema(settings.database_url)
        say("Starting a private Redis, a worker with two processes and a SQLite file ...")
        with (
            LocalCluster(settings, concurrency=_PROCESSES, tasks=[_TASKS]) as cluster,
            Client(cluster.settings) as client,
        ):
            handle = client.submit(graph)
            follow(handle, timeout=_TIMEOUT_SECONDS, check=cluster.check, line_seconds=0.1)
            report = handle.report()
            show(f"\n{report}\n\nTHE PLAN BESIDE WHAT RAN")
            print_table(beside_table(report))
    took = time.monotonic() - begun
    show(f"\nThat took {took:.1f} s; the servers are stopped and nothing is left behind.\n")
    show(f"Next: {_program()} run FILE --local with a graph of your own.")
    return 0 if report.state is RunState.SUCCEEDED else 1
