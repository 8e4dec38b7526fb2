"""A decision in the making: rows that change by emitting events, and the commands that go with them.

It answers for keeping both together; what to emit is decided by ``planner`` and ``gate``.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphrun.execution.command import Command, Decision
from graphrun.execution.event import ChordBroken, Event, NodeAwaits
from graphrun.execution.fold import Rows
from graphrun.execution.run import EdgeRun, NewNode, NodeRun, RunView, Structure
from graphrun.execution.state import Awaiting


class Draft:
    """A decision in the making: rows that change by emitting events."""

    def __init__(self, view: RunView) -> None:
        edges = {edge.edge_id: edge for inbound in view.inbound.values() for edge in inbound}
        self.view = view
        self.rows = Rows(view.run, dict(view.nodes), edges)
        self.structure: Structure | None = view.structure
        self.inbound: dict[int, tuple[EdgeRun, ...]] = dict(view.inbound)
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.added: list[tuple[int, NewNode]] = []

    def emit(self, event: Event) -> None:
        """Record an event and apply it to the rows."""
        self.rows.apply(event)
        self.events.append(event)

    def wave_nodes(self) -> Iterator[NodeRun]:
        """Yield the nodes of the open wave as they stand now."""
        wave = self.rows.run.wave
        return (node for node in list(self.rows.nodes.values()) if node.wave == wave)

    def decision(self) -> Decision:
        """Return what changed."""
        rows = self.rows
        return Decision(
            run=rows.run,
            nodes=tuple(rows.nodes[node_id] for node_id in rows.touched_nodes),
            edges=tuple(rows.edges[edge_id] for edge_id in rows.touched_edges),
            removed_edges=tuple(rows.removed_edges),
            added=tuple(self.added),
            events=tuple(self.events),
            commands=tuple(self.commands),
        )

    def break_chord(self) -> None:
        """Note that the chord of the open round will not count to its end (§3.4)."""
        run = self.rows.run
        if not run.direct_gate:
            self.emit(ChordBroken(wave=run.wave, round=run.round))

    def wait(self, node: NodeRun, awaiting: Awaiting, error: str | None = None) -> None:
        """Let a node wait for its gate, or for the verdict of its verify task."""
        self.emit(NodeAwaits(node_id=node.node_id, attempt=node.attempt, awaiting=awaiting, error=error))
