"""The planner: ``advance(view, fact) -> Decision``. Pure, and the only place where a run's course is decided.

What one attempt's fate does to its node is decided here (X6, X15, X16), what follows from the end of a round in
``gate``, which edges deliver in ``inputs`` (X3, X4), which states may follow which in ``state``, and what an event does
to a row in ``fold``.

The gate of wave 0 is what starts a run: no wave 0 has nodes, so it goes straight on to wave 1.
"""

from __future__ import annotations

from graphrun.execution.command import Decision, SendNode
from graphrun.execution.draft import Draft
from graphrun.execution.event import (
    Claimed,
    DeliveryLost,
    Fact,
    GateReached,
    NodeClaimed,
    NodeFailed,
    NodeRedelivered,
    NodeSucceeded,
    SendLost,
    Settled,
)
from graphrun.execution.gate import close_round
from graphrun.execution.retry import LOST_TOO_OFTEN, may_retry
from graphrun.execution.run import AttemptKind, NodeRun, RunView
from graphrun.execution.state import Awaiting, NodeState, RunState


def advance(view: RunView, fact: Fact) -> Decision:
    """Decide what follows from a fact.

    Args:
        view: the rows that the fact concerns, as ``RunView`` describes them.
        fact: what happened.

    Returns:
        The changed rows, the events that changed them, and the commands to carry out after they are committed. A fact
        that comes too late, twice or out of turn gives a decision without events: nothing is to be written.
    """
    draft = Draft(view)
    match fact:
        case GateReached():
            close_round(draft, fact)
        case Claimed():
            _claim(draft, fact)
        case Settled():
            _settle(draft, fact)
        case DeliveryLost():
            _lose(draft, fact)
        case SendLost():
            _resend(draft, fact)
    return draft.decision()


def _claim(draft: Draft, fact: Claimed) -> None:
    node = draft.rows.nodes[fact.node_id]
    expected = node.state is NodeState.QUEUED if fact.kind is AttemptKind.BODY else node.awaiting is Awaiting.VERDICT
    if draft.rows.run.state is RunState.RUNNING and expected and node.attempt == fact.attempt:
        draft.emit(NodeClaimed(node_id=fact.node_id, attempt=fact.attempt, kind=fact.kind, worker=fact.worker))


def _settle(draft: Draft, fact: Settled) -> None:
    node = draft.rows.nodes[fact.node_id]
    verifying = node.awaiting is Awaiting.VERDICT
    expected = (
        verifying if fact.kind is AttemptKind.VERIFY else node.state is NodeState.RUNNING or _unclaimed(node, fact)
    )
    if not expected or node.attempt != fact.attempt:
        return
    if fact.outside:
        draft.break_chord()
    match fact.status:
        case "done" if node.verified and not verifying:
            draft.wait(node, Awaiting.VERIFICATION)
        case "done":
            draft.emit(NodeSucceeded(node_id=node.node_id, attempt=node.attempt))
        case "evolved":
            draft.wait(node, Awaiting.EVOLUTION)
        case "failed":
            error = fact.error or fact.error_type or "failed"
            if may_retry(node, error_type=fact.error_type, final=fact.final):
                draft.wait(node, Awaiting.RETRY, error)
            else:
                draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=error))


def _unclaimed(node: NodeRun, fact: Settled) -> bool:
    """Say whether an attempt is given up before anyone took it: the queue time limit (X15), final and from outside."""
    return node.state is NodeState.QUEUED and fact.status == "failed" and fact.final and fact.outside


def _lose(draft: Draft, fact: DeliveryLost) -> None:
    """The same attempt is delivered again, the retry is not used up; too often lost is failed for good (X6)."""
    node = draft.rows.nodes[fact.node_id]
    running = node.state is NodeState.RUNNING or node.awaiting is Awaiting.VERDICT
    if not running or node.attempt != fact.attempt:
        return
    deliveries = node.deliveries + 1
    draft.break_chord()
    if deliveries >= node.policy.max_deliveries:
        error = LOST_TOO_OFTEN.format(count=deliveries)
        draft.emit(NodeFailed(node_id=node.node_id, attempt=node.attempt, error=error))
        return
    draft.emit(NodeRedelivered(node_id=node.node_id, attempt=node.attempt, deliveries=deliveries, reason=fact.reason))
    draft.commands.append(SendNode(node_id=node.node_id))


def _resend(draft: Draft, fact: SendLost) -> None:
    """What is sent again travels outside the chord, which will not count to its end (§3.4)."""
    run = draft.rows.run
    if run.state is RunState.RUNNING and (fact.revision, fact.wave, fact.round) == (run.revision, run.wave, run.round):
        draft.break_chord()
