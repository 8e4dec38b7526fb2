"""What the planner sees and what it hands back: rows of a run as frozen values.

A view holds the part of a run that one decision needs, never the whole graph: the run, the nodes of the open and of the
next wave, the edges into the latter and the heads of those edges. Only an evolution asks for the graph's structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from graphrun.execution.state import Awaiting, Cause, NodeState, RunState
from graphrun.model.spec import DEFAULT_POLICY, FailurePolicy, Join, NodeSpec, Policy


class Truth(StrEnum):
    """What a condition came to, stored with its edge by the worker that settled the head (X3)."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


class Resolution(StrEnum):
    """How an inbound edge resolved, once (X3)."""

    DELIVERED = "delivered"
    SUPPRESSED = "suppressed"
    MISSING = "missing"
    BLOCKED = "blocked"


class AttemptKind(StrEnum):
    """What an attempt runs: the node's body, or the check of what it returned (X16)."""

    BODY = "body"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a spec. ``wave`` is the open wave, 0 before the first; ``waves`` the number of the last one.

    ``direct_gate`` says that the chord of this round cannot count to its end, because a member was delivered again or
    cancelled: the settle that leaves no open node sends the gate itself.
    """

    run_id: str
    state: RunState = RunState.CREATED
    revision: int = 0
    wave: int = 0
    round: int = 0
    waves: int = 0
    failure_policy: FailurePolicy = "proceed"
    tripped: bool = False  # fail_fast: a node failed for good, nothing more starts (X5)
    failed: bool = False  # a node failed for good or was skipped because of a failure (X19)
    direct_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """One node in a run. ``attempt`` counts from 1 over the whole run, ``tries`` since the last evolution (X6, X7)."""

    node_id: int
    key: str
    wave: int
    state: NodeState = NodeState.PENDING
    awaiting: Awaiting | None = None
    attempt: int = 0
    tries: int = 0
    deliveries: int = 0  # lost deliveries of this attempt
    evolution: int = 0
    pre_done: bool = False
    cause: Cause | None = None
    roots: tuple[str, ...] = ()
    error: str | None = None
    policy: Policy = DEFAULT_POLICY
    join: Join = "any"
    verified: bool = False  # the node names a verify task
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeRun:
    """One enabled edge in a run.

    ``required`` is decided when the graph is submitted (X5); ``droppable`` says that the tail's parameter can do
    without: it has a default, allows None, or takes the value inside a list or dict (X4).
    """

    edge_id: int
    head: int
    tail: int
    parameter: str | None = None
    when: str | None = None
    required: bool = True
    droppable: bool = True
    truth: Truth | None = None
    resolution: Resolution | None = None
    cause: Cause | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node that an evolution adds, compiled by the worker that asked for it."""

    spec: NodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEdge:
    """An edge that an evolution adds, by key; ``droppable`` and ``required`` as in :class:`EdgeRun`.

    ``truth`` is what the condition came to when its head had ended already; the worker that asked evaluated it.
    """

    head: str
    tail: str
    parameter: str | None = None
    when: str | None = None
    required: bool = True
    droppable: bool = True
    truth: Truth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionRequest:
    """What an evolved return asks for (X7). ``refusal`` is set when it could not even be compiled."""

    rewritten: NodeSpec
    nodes: tuple[NewNode, ...] = ()
    edges: tuple[NewEdge, ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    asked_by: str | None = None
    reason: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The shape of a whole running graph, loaded for an evolution only."""

    nodes: Mapping[int, NodeRun]
    edges: Mapping[int, EdgeRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The part of a run that one decision needs.

    Attributes:
        nodes: the nodes of the open and of the next wave, and the heads of the edges below, by id.
        inbound: the enabled edges into each node of the next wave, in declared order.
        params: declared parameters of heads whose ``status`` condition reads ``params``.
        requests: what each node that awaits an evolution asked for.
        structure: the whole graph, present when ``requests`` is not empty.
    """

    run: Run
    nodes: Mapping[int, NodeRun] = field(default_factory=dict)
    inbound: Mapping[int, tuple[EdgeRun, ...]] = field(default_factory=dict)
    params: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    requests: Mapping[int, EvolutionRequest] = field(default_factory=dict)
    structure: Structure | None = None


def planned_node(node_id: int, spec: NodeSpec, *, wave: int) -> NodeRun:
    """Return the row of a node that has not started."""
    return NodeRun(
        node_id=node_id,
        key=spec.key,
        wave=wave,
        policy=spec.policy,
        join=spec.join,
        verified=spec.verify is not None,
        resources=spec.resources,
    )
