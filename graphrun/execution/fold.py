"""Folding events into rows: the only place where a row of a run changes.

The planner decides by emitting events, and what it returns as changed rows is the fold of exactly those; so the
implemented graph equals the fold of its log (promise 7) by construction, and ``fold`` can rebuild it from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from graphrun.execution.event import (
    ChordBroken,
    EdgeResolved,
    Event,
    NodeAwaits,
    NodeCancelled,
    NodeClaimed,
    NodeEvent,
    NodeEvolved,
    NodeFailed,
    NodeQueued,
    NodeRedelivered,
    NodeSkipped,
    NodeSucceeded,
    RoundOpened,
    RunEvent,
    RunFinished,
    RunStarted,
    RunTripped,
    WaveOpened,
)
from graphrun.execution.run import AttemptKind, EdgeRun, NodeRun, Run
from graphrun.execution.state import (
    FAILURE_CAUSES,
    Awaiting,
    NodeState,
    RunState,
    Trigger,
    next_node_state,
    next_run_state,
)


@dataclass(slots=True)
class Rows:
    """Rows of a run, changed by applying events; ``touched`` sets say which ones did."""

    run: Run
    nodes: dict[int, NodeRun]
    edges: dict[int, EdgeRun] = field(default_factory=dict)
    touched_nodes: dict[int, None] = field(default_factory=dict)
    touched_edges: dict[int, None] = field(default_factory=dict)
    removed_edges: list[int] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        """Apply one event.

        Raises:
            TransitionError: the transition table has no such move.
            KeyError: the event names a row that is not here.
        """
        match event:
            case RunStarted() | WaveOpened() | RoundOpened() | ChordBroken() | RunTripped() | RunFinished():
                self.run = _fold_run(self.run, event)
            case NodeEvolved():
                self._apply_evolution(event)
            case NodeQueued() | NodeSkipped():
                self._resolve(event.edges)
                self._put(_fold_node(self.nodes[event.node_id], event))
            case _:
                self._put(_fold_node(self.nodes[event.node_id], event))
        self._note_failure(event)

    def _put(self, node: NodeRun) -> None:
        self.nodes[node.node_id] = node
        self.touched_nodes[node.node_id] = None

    def _resolve(self, resolved: Iterable[EdgeResolved]) -> None:
        for item in resolved:
            edge = self.edges[item.edge_id]
            self.edges[item.edge_id] = replace(edge, resolution=item.resolution, cause=item.cause, roots=item.roots)
            self.touched_edges[item.edge_id] = None

    def _note_failure(self, event: Event) -> None:
        """Keep on the run row what ends it as failed (X19)."""
        match event:
            case NodeFailed():
                self.run = replace(self.run, failed=True)
            case NodeSkipped(cause=cause) if cause in FAILURE_CAUSES:
                self.run = replace(self.run, failed=True)
            case _:
                return

    def _apply_evolution(self, event: NodeEvolved) -> None:
        self._put(event.rewritten)
        for node in event.added_nodes:
            self._put(node)
        for edge in event.added_edges:
            self.edges[edge.edge_id] = edge
            self.touched_edges[edge.edge_id] = None
        for edge_id in event.removed_edges:
            self.edges.pop(edge_id, None)
            self.touched_edges.pop(edge_id, None)
            self.removed_edges.append(edge_id)
        for node_id, wave in event.moved:
            self._put(replace(self.nodes[node_id], wave=wave))
        last = max((node.wave for node in self.nodes.values()), default=0)
        self.run = replace(self.run, waves=max(last, self.run.wave))


def fold(run: Run, nodes: Iterable[NodeRun], edges: Iterable[EdgeRun], events: Iterable[Event]) -> Rows:
    """Return the rows that a run's events make of its rows as submitted (promise 7)."""
    rows = Rows(run, {node.node_id: node for node in nodes}, {edge.edge_id: edge for edge in edges})
    for event in events:
        rows.apply(event)
    return rows


def _fold_run(run: Run, event: RunEvent) -> Run:
    match event:
        case RunStarted():
            return replace(run, state=next_run_state(run.state, Trigger.START))
        case WaveOpened(wave=wave):
            return replace(run, wave=wave, round=0, direct_gate=False)
        case RoundOpened(round=number, direct=direct):
            return replace(run, round=number, direct_gate=direct)
        case ChordBroken():
            return replace(run, direct_gate=True)
        case RunTripped():
            return replace(run, tripped=True)
        case RunFinished(state=state):
            trigger = Trigger.SUCCEED if state is RunState.SUCCEEDED else Trigger.FAIL
            return replace(run, state=next_run_state(run.state, trigger))


def _fold_node(node: NodeRun, event: NodeEvent) -> NodeRun:  # noqa: C901, PLR0911 - one case an event
    """Return the node row after an event that concerns it alone."""
    match event:
        case NodeQueued():
            tries = 1 if event.reason == "evolved" else node.tries + 1
            return replace(_moved(node, Trigger.QUEUE), attempt=event.attempt, tries=tries, awaiting=None, deliveries=0)
        case NodeClaimed(kind=AttemptKind.BODY):
            return _moved(node, Trigger.CLAIM)
        case NodeClaimed():
            return _moved(node, Trigger.WAIT)
        case NodeRedelivered():
            trigger = Trigger.WAIT if node.state is NodeState.WAITING else Trigger.REDELIVER
            return replace(_moved(node, trigger), deliveries=event.deliveries)
        case NodeAwaits():
            # The verify task is an attempt of its own kind (X16): lost deliveries of the body do not count against it.
            deliveries = 0 if event.awaiting is Awaiting.VERDICT else node.deliveries
            moved = _moved(node, Trigger.WAIT)
            return replace(moved, awaiting=event.awaiting, error=event.error, deliveries=deliveries)
        case NodeSucceeded():
            return replace(_moved(node, Trigger.SUCCEED), awaiting=None, pre_done=event.pre_done, error=None)
        case NodeFailed():
            return replace(_moved(node, Trigger.FAIL), awaiting=None, error=event.error)
        case NodeSkipped():
            return replace(_moved(node, Trigger.SKIP), cause=event.cause, roots=event.roots)
        case NodeCancelled():
            return replace(_moved(node, Trigger.CANCEL), awaiting=None, cause=event.cause)
        case NodeEvolved():
            return event.rewritten


def _moved(node: NodeRun, trigger: Trigger) -> NodeRun:
    return replace(node, state=next_node_state(node.state, trigger))
