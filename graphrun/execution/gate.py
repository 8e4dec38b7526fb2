"""The gate of a round: what becomes of the open wave when nothing of it is with a worker any more.

Rules kept here, of ``engine.md`` §1: X5 (fail fast), X6 (the retry is sent at the gate), X7 (evolutions), X8 (one gate
a round, empty waves go straight on), X16 (verifications), X19 (how a run ends).
"""

from __future__ import annotations

from graphrun.execution.command import GoOn, SendWave
from graphrun.execution.draft import Draft
from graphrun.execution.event import (
    GateReached,
    NodeCancelled,
    NodeFailed,
    NodeQueued,
    NodeSkipped,
    RoundOpened,
    RunFinished,
    RunStarted,
    RunTripped,
    WaveOpened,
)
from graphrun.execution.evolution import Refused, evolve
from graphrun.execution.inputs import decide_node
from graphrun.execution.retry import not_before
from graphrun.execution.run import NodeRun
from graphrun.execution.state import TERMINAL_NODE, TERMINAL_RUN, Awaiting, Cause, NodeState, RunState

_FOR_THE_GATE = {Awaiting.RETRY, Awaiting.EVOLUTION, Awaiting.VERIFICATION}


def is_open(node: NodeRun) -> bool:
    """Say whether a node is with a worker or on its way to one: the gate waits for it (X8)."""
    return node.state in (NodeState.QUEUED, NodeState.RUNNING) or node.awaiting is Awaiting.VERDICT


def close_round(draft: Draft, fact: GateReached) -> None:
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


def _trip(draft: Draft) -> None:
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
                draft.break_chord()
                draft.emit(NodeCancelled(node_id=node.node_id, cause=Cause.FAIL_FAST))


def _open_round(draft: Draft, fact: GateReached) -> None:
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
            draft.wait(node, Awaiting.VERDICT)
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


def _stop(draft: Draft, node: NodeRun) -> None:
    """End a waiting node of a tripped run: nothing more starts, so a retry is not taken (X5)."""
    if node.awaiting is Awaiting.RETRY:
        draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=node.error or "failed"))
    else:
        draft.emit(NodeCancelled(node_id=node.node_id, cause=Cause.FAIL_FAST))


def _evolve(draft: Draft, node: NodeRun) -> None:
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


def _open_next_wave(draft: Draft) -> None:
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


def _start(draft: Draft, node: NodeRun) -> bool:
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
