"""``graphrun import`` and ``graphrun export``: graphs from and to files. Nothing is run, nothing else is written."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphrun.cli.options import DatabaseUrl, Tasks

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="A .json or .yaml file to write.", show_default=False)
]


class Mode(StrEnum):
    """How an imported node takes its measured time."""

    SLEEP = "sleep"
    BURN = "burn"

    @property
    def word(self) -> Literal["sleep", "burn"]:
        """The name as formats know it."""
        return self.value


def import_graph(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph in a foreign format.", show_default=False)],
    *,
    out: Out,
    format_name: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Its format.", show_default="found out")
    ] = None,
    time_scale: Annotated[
        float, typer.Option("--time-scale", metavar="FACTOR", min=0, help="Multiplies measured times.")
    ] = 1.0,
    cap_seconds: Annotated[
        float | None,
        typer.Option("--cap-seconds", metavar="SECONDS", min=0, help="No node takes longer.", show_default=False),
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", metavar="sleep|burn", help="Sleep, or use the processor.")
    ] = Mode.SLEEP,
) -> None:
    """Write a foreign graph as graphrun's own: its nodes take their measured times, its edges pass a value along."""
    from graphrun.cli.console import say
    from graphrun.formats import read_graph, write_graph
    from graphrun.model.validation import validate

    spec = read_graph(file, format=format_name, time_scale=time_scale, cap_seconds=cap_seconds, mode=mode.word)
    write_graph(spec, out)
    made = f"{out}: {len(spec.nodes)} nodes, {len(spec.edges)} edges"
    faults = validate(spec).errors
    if faults:
        say(f"{made}; it cannot be run as it is: {faults[0]}")
    else:
        say(f"{made}; run it with graphrun run {out} --local")


def export_graph(
    source: Annotated[str, typer.Argument(metavar="FILE|RUN", help="A graph, or a run whose plan is meant.")],
    *,
    out: Out,
    tasks: Tasks = None,
    database: DatabaseUrl = None,
) -> None:
    """Write a graph, or the one that a run was asked for, as a file that can be run again."""
    from graphrun.cli.console import say
    from graphrun.cli.graph_file import load_graph
    from graphrun.cli.session import open_reader
    from graphrun.formats import write_graph

    is_file = Path(source).exists() or ":" in source or "." in source
    if is_file:
        spec = load_graph(source, tasks or ()).spec
    else:
        with open_reader(database) as client:
            spec = client.run(source).spec()
    write_graph(spec, out)
    say(f"{out}: {len(spec.nodes)} nodes, {len(spec.edges)} edges")
