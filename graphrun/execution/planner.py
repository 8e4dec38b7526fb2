"""The planner: ``advance(view, fact) -> Decision``. Pure, and the only place where a run's course is decided.

Rules kept here, of ``engine.md`` §1: X5 (fail fast), X6 (retry at the gate), X7 (evolution), X8 (one gate a round),
X16 (verification), X19 (how a run ends). Which edges deliver is decided in ``inputs`` (X3, X4), which states may follow
which in ``state``, and what an event does to a row in ``fold``.

The gate of wave 0 is what starts a run: no wave 0 has nodes, so it goes straight on to wave 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphrun.execution.command import Command, Decision, GoOn, SendNode, SendWave
from graphrun.execution.event import (
    ChordBroken,
    Claimed,
    DeliveryLost,
    Event,
    Fact,
    GateReached,
    NodeAwaits,
    NodeCancelled,
    NodeClaimed,
    NodeFailed,
    NodeQueued,
    NodeRedelivered,
    NodeSkipped,
    NodeSucceeded,
    RoundOpened,
    RunFinished,
    RunStarted,
    RunTripped,
    SendLost,
    Settled,
    WaveOpened,
)
from graphrun.execution.evolution import Refused, evolve
from graphrun.execution.fold import Rows
from graphrun.execution.inputs import decide_node
from graphrun.execution.retry import LOST_TOO_OFTEN, may_retry, not_before
from graphrun.execution.run import AttemptKind, EdgeRun, NewNode, NodeRun, RunView, Structure
from graphrun.execution.state import TERMINAL_NODE, TERMINAL_RUN, Awaiting, Cause, NodeState, RunState

_FOR_THE_GATE = {Awaiting.RETRY, Awaiting.EVOLUTION, Awaiting.VERIFICATION}


def advance(view: RunView, fact: Fact) -> Decision:
    """Decide what follows from a fact.

    Args:
        view: the rows that the fact concerns, as ``RunView`` describes them.
        fact: what happened.

    Returns:
        The changed rows, the events that changed them, and the commands to carry out after they are committed. A fact
        that comes too late, twice or out of turn gives a decision without events: nothing is to be written.
    """
    draft = _Draft(view)
    match fact:
        case GateReached():
            _gate(draft, fact)
        case Claimed():
            _claim(draft, fact)
        case Settled():
            _settle(draft, fact)
        case DeliveryLost():
            _lose(draft, fact)
        case SendLost():
            _resend(draft, fact)
    return draft.decision()


def is_open(node: NodeRun) -> bool:
    """Say whether a node is with a worker or on its way to one: the gate waits for it (X8)."""
    return node.state in (NodeState.QUEUED, NodeState.RUNNING) or node.awaiting is Awaiting.VERDICT


class _Draft:
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
        self.rows.apply(event)
        self.events.append(event)

    def wave_nodes(self) -> Iterator[NodeRun]:
        wave = self.rows.run.wave
        return (node for node in list(self.rows.nodes.values()) if node.wave == wave)

    def decision(self) -> Decision:
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


# --- one node


def _claim(draft: _Draft, fact: Claimed) -> None:
    node = draft.rows.nodes[fact.node_id]
    expected = node.state is NodeState.QUEUED if fact.kind is AttemptKind.BODY else node.awaiting is Awaiting.VERDICT
    if draft.rows.run.state is RunState.RUNNING and expected and node.attempt == fact.attempt:
        draft.emit(NodeClaimed(node_id=fact.node_id, attempt=fact.attempt, kind=fact.kind, worker=fact.worker))


def _settle(draft: _Draft, fact: Settled) -> None:
    node = draft.rows.nodes[fact.node_id]
    verifying = node.awaiting is Awaiting.VERDICT
    expected = (
        verifying if fact.kind is AttemptKind.VERIFY else node.state is NodeState.RUNNING or _unclaimed(node, fact)
    )
    if not expected or node.attempt != fact.attempt:
        return
    if fact.outside:
        _break_chord(draft)
    match fact.status:
        case "done" if node.verified and not verifying:
            _await(draft, node, Awaiting.VERIFICATION)
        case "done":
            draft.emit(NodeSucceeded(node_id=node.node_id, attempt=node.attempt))
        case "evolved":
            _await(draft, node, Awaiting.EVOLUTION)
        case "failed":
            error = fact.error or fact.error_type or "failed"
            if may_retry(node, error_type=fact.error_type, final=fact.final):
                _await(draft, node, Awaiting.RETRY, error)
            else:
                draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=error))


def _unclaimed(node: NodeRun, fact: Settled) -> bool:
    """Say whether an attempt is given up before anyone took it: the queue time limit (X15), final and from outside."""
    return node.state is NodeState.QUEUED and fact.status == "failed" and fact.final and fact.outside


def _break_chord(draft: _Draft) -> None:
    run = draft.rows.run
    if not run.direct_gate:
        draft.emit(ChordBroken(wave=run.wave, round=run.round))


def _await(draft: _Draft, node: NodeRun, awaiting: Awaiting, error: str | None = None) -> None:
    draft.emit(NodeAwaits(node_id=node.node_id, attempt=node.attempt, awaiting=awaiting, error=error))


def _lose(draft: _Draft, fact: DeliveryLost) -> None:
    """The same attempt is delivered again, the retry is not used up; too often lost is failed for good (X6)."""
    node = draft.rows.nodes[fact.node_id]
    running = node.state is NodeState.RUNNING or node.awaiting is Awaiting.VERDICT
    if not running or node.attempt != fact.attempt:
        return
    deliveries = node.deliveries + 1
    _break_chord(draft)
    if deliveries >= node.policy.max_deliveries:
        error = LOST_TOO_OFTEN.format(count=deliveries)
        draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=error))
        return
    draft.emit(NodeRedelivered(node_id=node.node_id, attempt=node.attempt, deliveries=deliveries, reason=fact.reason))
    draft.commands.append(SendNode(node_id=node.node_id))


def _resend(draft: _Draft, fact: SendLost) -> None:
    """What is sent again travels outside the chord, which will not count to its end (§3.4)."""
    run = draft.rows.run
    if run.state is RunState.RUNNING and (fact.revision, fact.wave, fact.round) == (run.revision, run.wave, run.round):
        _break_chord(draft)


# --- the gate


def _gate(draft: _Draft, fact: GateReached) -> None:
    """Close the open wave or open another round of it; a call that is late, early or doubled does nothing (X8)."""
    run = draft.rows.run
    if run.state in TERMINAL_RUN or (fact.revision, fact.wave, fact.round) != (run.revision, run.wave, run.round):
        return
    if run.state is RunState.CREATED:
        draft.emit(RunStarted())
    elif run.state is not RunState.RUNNING:
        return
    _trip(draft)
    if any(is_open(node) for node in draft.wave_nodes()):
        return
    if any(node.awaiting in _FOR_THE_GATE for node in draft.wave_nodes()):
        _open_round(draft, fact)
        if draft.commands:
            return
    _open_next_wave(draft)


def _trip(draft: _Draft) -> None:
    """Under ``fail_fast`` cancel what was queued and has not started, as soon as a node failed for good (X5)."""
    run = draft.rows.run
    if run.failure_policy != "fail_fast":
        return
    failed = next((node for node in draft.wave_nodes() if node.state is NodeState.FAILED), None)
    if failed is not None and not run.tripped:
        draft.emit(RunTripped(key=failed.key))
    if draft.rows.run.tripped:
        for node in draft.wave_nodes():
            if node.state is NodeState.QUEUED:
                _break_chord(draft)
                draft.emit(NodeCancelled(node_id=node.node_id, cause=Cause.FAIL_FAST))


def _open_round(draft: _Draft, fact: GateReached) -> None:
    """Send retries, evolutions and verifications of the open wave together, as one more round of it."""
    number = draft.rows.run.round + 1
    waiting = [node for node in draft.wave_nodes() if node.awaiting in _FOR_THE_GATE]
    # Evolutions first: a refused one fails its node, and under fail_fast nothing of this round is sent then.
    for node in waiting:
        if node.awaiting is Awaiting.EVOLUTION and not draft.rows.run.tripped:
            _evolve(draft, node)
    _trip(draft)
    sent: list[int] = []
    delayed = False
    for before in waiting:
        node = draft.rows.nodes[before.node_id]
        if node.state in TERMINAL_NODE:
            continue
        if draft.rows.run.tripped:
            _stop(draft, node)
            continue
        if node.awaiting is Awaiting.VERIFICATION:
            _await(draft, node, Awaiting.VERDICT)
        else:
            later = not_before(node, now=fact.now, jitter=fact.jitter) if node.awaiting is Awaiting.RETRY else None
            delayed = delayed or later is not None
            draft.emit(
                NodeQueued(
                    node_id=node.node_id,
                    attempt=node.attempt + 1,
                    round=number,
                    reason="retry" if node.awaiting is Awaiting.RETRY else "evolved",
                    not_before=later,
                )
            )
            if later is not None:
                continue
        sent.append(node.node_id)
    if not sent and not delayed:
        return
    draft.emit(RoundOpened(wave=fact.wave, round=number, direct=delayed))
    draft.commands.append(SendWave(wave=fact.wave, round=number, nodes=tuple(sent), direct=delayed))


def _stop(draft: _Draft, node: NodeRun) -> None:
    """End a waiting node of a tripped run: nothing more starts, so a retry is not taken (X5)."""
    if node.awaiting is Awaiting.RETRY:
        draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=node.error or "failed"))
    else:
        draft.emit(NodeCancelled(node_id=node.node_id, cause=Cause.FAIL_FAST))


def _evolve(draft: _Draft, node: NodeRun) -> None:
    structure = draft.structure
    request = draft.view.requests.get(node.node_id)
    if structure is None or request is None:
        refused = Refused("what the node asked for was not recorded")
    else:
        evolution = evolve(node, request, structure, wave=draft.rows.run.wave)
        if not isinstance(evolution, Refused):
            for node_id, item in evolution.after.nodes.items():
                draft.rows.nodes.setdefault(node_id, item)
            draft.rows.edges.update({k: v for k, v in structure.edges.items() if k not in draft.rows.edges})
            draft.emit(evolution.event)
            draft.structure = evolution.after
            draft.added.extend(evolution.added)
            return
        refused = evolution
    error = f"evolution refused: {refused.reason}"
    draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=error))


def _open_next_wave(draft: _Draft) -> None:
    """Go on to the next wave and decide each of its nodes, or finish the run."""
    run = draft.rows.run
    if run.wave >= run.waves:
        draft.emit(RunFinished(state=RunState.FAILED if run.failed else RunState.SUCCEEDED))
        return
    draft.emit(WaveOpened(wave=run.wave + 1))
    queued: list[int] = []
    for node in draft.wave_nodes():
        if node.state is not NodeState.PENDING:
            continue
        if draft.rows.run.tripped:
            draft.emit(NodeCancelled(node_id=node.node_id, cause=Cause.FAIL_FAST))
        elif _start(draft, node):
            queued.append(node.node_id)
    wave = draft.rows.run.wave
    if queued:
        draft.commands.append(SendWave(wave=wave, round=0, nodes=tuple(queued)))
    else:
        draft.commands.append(GoOn(wave=wave, round=0))


def _start(draft: _Draft, node: NodeRun) -> bool:
    inbound = draft.inbound.get(node.node_id, ())
    verdict = decide_node(inbound, draft.rows.nodes, join=node.join, run=draft.rows.run, params=draft.view.params)
    if verdict.start:
        draft.emit(
            NodeQueued(node_id=node.node_id, attempt=node.attempt + 1, round=0, reason="first", edges=verdict.edges)
        )
        return True
    cause = verdict.cause or Cause.CONDITION
    draft.emit(NodeSkipped(node_id=node.node_id, cause=cause, roots=verdict.roots, edges=verdict.edges))
    return False
