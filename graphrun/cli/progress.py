"""How far a run is: counts of its nodes by state and wave, as a line of text or as a table that is drawn again.

It answers for what a person sees while a run goes on. It reads no ledger and keeps no time: both come as arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from graphrun.cli.console import duration, table
from graphrun.execution.report import shown
from graphrun.execution.state import TERMINAL_NODE, NodeState, RunState
from graphrun.storage.records import NodeRow

EACH_NODE_UP_TO = 30
_WAVES_SHOWN = 12

STYLES = {
    NodeState.PENDING: "dim",
    NodeState.QUEUED: "cyan",
    NodeState.RUNNING: "bold yellow",
    NodeState.WAITING: "magenta",
    NodeState.SUCCEEDED: "green",
    NodeState.FAILED: "bold red",
    NodeState.SKIPPED: "dim yellow",
    NodeState.CANCELLED: "dim red",
}
RUN_STYLES = {RunState.SUCCEEDED: "green", RunState.FAILED: "bold red", RunState.CANCELLED: "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A run as it stood at one moment."""

    run_id: str
    graph: str
    state: RunState
    wave: int
    waves: int
    nodes: tuple[NodeRow, ...]
    now: datetime
    seconds: float

    @property
    def counts(self) -> Counter[NodeState]:
        """Nodes by state."""
        return Counter(node.state for node in self.nodes)

    @property
    def ended(self) -> int:
        """Nodes whose state is final."""
        return sum(node.state in TERMINAL_NODE for node in self.nodes)

    def by_wave(self) -> dict[int, Counter[NodeState]]:
        """Nodes by state in each wave, wave 1 first."""
        waves: dict[int, Counter[NodeState]] = {}
        for node in self.nodes:
            waves.setdefault(node.node.wave, Counter())[node.state] += 1
        return dict(sorted(waves.items()))


def line(progress: Progress) -> str:
    """Return the whole state of a run in one line."""
    states = ", ".join(_counted(progress.counts, drop=(NodeState.PENDING,))) or "nothing started"
    return (
        f"[{duration(progress.seconds)}] run {progress.run_id[:8]} {progress.state.value}, "
        f"wave {progress.wave} of {progress.waves}, {progress.ended} of {len(progress.nodes)} nodes ended: {states}"
    )


def drawing(progress: Progress) -> RenderableType:
    """Return the table of a run that goes on: a row a node while there are few, else a row a wave."""
    few = len(progress.nodes) <= EACH_NODE_UP_TO
    return Group(_head(progress), _bar(progress), _node_table(progress) if few else _wave_table(progress))


def state_text(row: NodeRow) -> Text:
    """Return a node's state in its colour, with what it waits for or why it was skipped."""
    word = "pre-done" if row.node.pre_done else row.state.value
    if row.state is NodeState.WAITING and row.node.awaiting is not None:
        word = f"waiting for {row.node.awaiting.value}"
    if row.node.cause is not None:
        word += f" ({row.node.cause.value})"
    return Text(word, style=STYLES[row.state])


def node_seconds(row: NodeRow, now: datetime | None = None) -> float | None:
    """Return how long a node took, or has taken up to ``now``, from its first start; None when it never started."""
    begun = row.started_at or row.claimed_at
    if begun is None:
        return None
    end = row.finished_at or (now if row.state is NodeState.RUNNING else None)
    return None if end is None else max((end - begun).total_seconds(), 0.0)


def _head(progress: Progress) -> Text:
    text = Text.assemble(
        (shown(progress.graph, limit=40), "bold"),
        f"  run {progress.run_id[:8]}  ",
        (progress.state.value, RUN_STYLES.get(progress.state, "yellow")),
        f"  wave {progress.wave} of {progress.waves}  {duration(progress.seconds)}",
    )
    text.no_wrap = True
    return text


def _bar(progress: Progress) -> RenderableType:
    total = len(progress.nodes)
    grid = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(total, 1), completed=progress.ended if total else 1, width=40)
    grid.add_row(bar, f"{progress.ended} of {total} nodes ended")
    return grid


def _node_table(progress: Progress) -> Table:
    made = table("wave", "node", "state", "attempt", "time", right=("wave", "attempt", "time"))
    last = 0
    for node in sorted(progress.nodes, key=lambda row: row.node.wave):
        wave = node.node.wave
        made.add_row(
            str(wave) if wave != last else "",
            shown(node.key, limit=40),
            state_text(node),
            str(node.node.attempt or ""),
            duration(node_seconds(node, progress.now)),
        )
        last = wave
    return made


def _wave_table(progress: Progress) -> Table:
    """Return a row a wave; of many waves those around the open one."""
    made = table("wave", "nodes", "states", right=("wave", "nodes"))
    waves = progress.by_wave()
    first = max(min(progress.wave - _WAVES_SHOWN // 3, len(waves) - _WAVES_SHOWN + 1), 1)
    for number, counts in waves.items():
        if first <= number < first + _WAVES_SHOWN:
            made.add_row(str(number), str(counts.total()), Text(", ").join(_coloured(counts)))
    hidden = len(waves) - _WAVES_SHOWN
    if hidden > 0:
        made.add_row("…", "", Text(f"{hidden} more waves", style="dim"))
    return made


def _counted(counts: Counter[NodeState], drop: tuple[NodeState, ...] = ()) -> Iterator[str]:
    return (f"{counts[state]} {state.value}" for state in NodeState if counts[state] and state not in drop)


def _coloured(counts: Counter[NodeState]) -> Iterator[Text]:
    return (Text(f"{counts[state]} {state.value}", style=STYLES[state]) for state in NodeState if counts[state])
