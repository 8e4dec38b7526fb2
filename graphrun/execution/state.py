"""The states of runs and nodes, and the one table of legal transitions.

Everything that changes a state goes through :func:`next_state`; a change that the table lacks is a ``TransitionError``.
The figure in ``docs/architecture.md`` is drawn from these tables, and a test compares the two.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from graphrun.errors import TransitionError


class RunState(StrEnum):
    """Where a run stands; each member says who moves things out of it."""

    CREATED = "created"  # the gate of wave 0, sent by the submitter or the sweeper
    RUNNING = "running"  # the gate of the open wave
    PAUSED = "paused"  # an operator: resume or cancel
    CANCELLING = "cancelling"  # the gate, when no node is open any more
    SUCCEEDED = "succeeded"  # nobody; a rerun makes a new revision
    FAILED = "failed"  # nobody; a rerun makes a new revision
    CANCELLED = "cancelled"  # nobody


class NodeState(StrEnum):
    """Where a node stands; each member says who moves things out of it."""

    PENDING = "pending"  # the gate of the wave before
    QUEUED = "queued"  # the worker that claims it
    RUNNING = "running"  # the worker that settles it, or its parent process
    WAITING = "waiting"  # the gate: see Awaiting
    SUCCEEDED = "succeeded"  # nobody
    FAILED = "failed"  # nobody
    SKIPPED = "skipped"  # nobody
    CANCELLED = "cancelled"  # nobody


class Awaiting(StrEnum):
    """What a waiting node waits for."""

    RETRY = "retry"  # the gate sends the attempt again (X6)
    EVOLUTION = "evolution"  # the gate rewrites the node (X7)
    VERIFICATION = "verification"  # the gate sends the verify task (X16)
    VERDICT = "verdict"  # the verify task was sent and has not settled


class Trigger(StrEnum):
    """What happens to a node or a run: the columns of the transition tables."""

    QUEUE = "queue"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    WAIT = "wait"
    REDELIVER = "redeliver"
    SKIP = "skip"
    CANCEL = "cancel"
    START = "start"


class Cause(StrEnum):
    """Why a node was skipped or cancelled (X3, X4)."""

    CONDITION = "condition"
    UPSTREAM_FAILED = "upstream_failed"
    CONDITION_ERROR = "condition_error"
    FAIL_FAST = "fail_fast"
    CANCELLED = "cancelled"


FAILURE_CAUSES: Final = frozenset({Cause.UPSTREAM_FAILED, Cause.CONDITION_ERROR})

TERMINAL_NODE: Final = frozenset({NodeState.SUCCEEDED, NodeState.FAILED, NodeState.SKIPPED, NodeState.CANCELLED})
TERMINAL_RUN: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})

NODE_TRANSITIONS: Final = MappingProxyType(
    {
        (NodeState.PENDING, Trigger.QUEUE): NodeState.QUEUED,
        (NodeState.PENDING, Trigger.SUCCEED): NodeState.SUCCEEDED,  # pre_done (X10)
        (NodeState.PENDING, Trigger.SKIP): NodeState.SKIPPED,
        (NodeState.PENDING, Trigger.CANCEL): NodeState.CANCELLED,
        (NodeState.QUEUED, Trigger.CLAIM): NodeState.RUNNING,
        (NodeState.QUEUED, Trigger.CANCEL): NodeState.CANCELLED,
        (NodeState.QUEUED, Trigger.FAIL): NodeState.FAILED,  # nobody can run it: the queue time limit (X15)
        (NodeState.RUNNING, Trigger.SUCCEED): NodeState.SUCCEEDED,
        (NodeState.RUNNING, Trigger.FAIL): NodeState.FAILED,
        (NodeState.RUNNING, Trigger.WAIT): NodeState.WAITING,
        (NodeState.RUNNING, Trigger.REDELIVER): NodeState.QUEUED,  # the worker was lost, not the attempt (X6)
        (NodeState.WAITING, Trigger.QUEUE): NodeState.QUEUED,
        (NodeState.WAITING, Trigger.WAIT): NodeState.WAITING,  # verification -> verdict -> retry
        (NodeState.WAITING, Trigger.SUCCEED): NodeState.SUCCEEDED,
        (NodeState.WAITING, Trigger.FAIL): NodeState.FAILED,
        (NodeState.WAITING, Trigger.CANCEL): NodeState.CANCELLED,
    },
)

RUN_TRANSITIONS: Final = MappingProxyType(
    {
        (RunState.CREATED, Trigger.START): RunState.RUNNING,
        (RunState.RUNNING, Trigger.SUCCEED): RunState.SUCCEEDED,
        (RunState.RUNNING, Trigger.FAIL): RunState.FAILED,
    },
)


def next_node_state(state: NodeState, trigger: Trigger) -> NodeState:
    """Return the state a node moves to; TransitionError when the table has no such move."""
    try:
        return NODE_TRANSITIONS[state, trigger]
    except KeyError:
        raise TransitionError(f"a node that is {state} cannot {trigger}") from None


def next_run_state(state: RunState, trigger: Trigger) -> RunState:
    """Return the state a run moves to; TransitionError when the table has no such move."""
    try:
        return RUN_TRANSITIONS[state, trigger]
    except KeyError:
        raise TransitionError(f"a run that is {state} cannot {trigger}") from None
