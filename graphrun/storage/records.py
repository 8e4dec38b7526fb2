"""What the ledger takes and gives: frozen values, no SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from graphrun.execution.event import Event
from graphrun.execution.run import AttemptKind, EdgeRun, EvolutionRequest, NodeRun, Run
from graphrun.execution.state import Cause, NodeState, RunState
from graphrun.model.spec import FailurePolicy, GraphSpec, NodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRef:
    """Where an encoded output is: inline, or in the payload store under its SHA-256."""

    digest: str
    size: int
    inline: str | None = None


# --- submit


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A compiled graph, ready to be written.

    Attributes:
        nodes: one row a node of ``spec``, in its order; pre-done ones are succeeded already (X10).
        edges: the enabled edges.
        outputs: encoded outputs of pre-done nodes, by node id.
        waves: the number of waves.
        idempotency_key: scoped to the tenant; the same key with another ``content_hash`` is a conflict (X17).
        token: made by the caller for this submission alone.
    """

    run_id: str
    tenant_id: str
    spec: GraphSpec
    nodes: tuple[NodeRun, ...]
    edges: tuple[EdgeRun, ...]
    waves: int
    content_hash: str
    token: str
    outputs: Mapping[int, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    submitted_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The run of a submission; ``created`` is false when an earlier one with the same key made it."""

    run_id: str
    created: bool


# --- claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An attempt that this delivery owns. ``node_output`` is what a verify attempt checks."""

    node: NodeRun
    spec: NodeSpec
    run: Run
    tenant_id: str
    node_output: OutputRef | None = None

    @property
    def failure_policy(self) -> FailurePolicy:
        """The run's failure policy."""
        return self.run.failure_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLost:
    """The attempt is not this delivery's: another has it, it is over, or the run does not let it start."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAbsent:
    """There is no such row, perhaps not yet (O25)."""


ClaimResult = Claim | ClaimLost | ClaimAbsent


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEdge:
    """An inbound edge with the key and the output of its head."""

    edge: EdgeRun
    head_key: str
    output: OutputRef | None


# --- settle


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """What an attempt leaves beside its status.

    ``output`` is encoded JSON, or where ``store_output`` put it. ``subgraph_hash`` covers task, parameters, policy and
    the hashes of the inputs: a retry has the same one (X6).
    """

    summary: str | None = None
    error_type: str | None = None
    error: str | None = None
    traceback: str | None = None
    output: str | OutputRef | None = None
    evolution: EvolutionRequest | None = None
    missing_inputs: Mapping[str, str] = field(default_factory=dict)
    verify_result: str | None = None
    implemented: tuple[str, ...] = ()
    subgraph_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleResult:
    """What became of an outcome.

    Attributes:
        accepted: false when the fence refused it: the claim is no longer this writer's (promise 2).
        state: of the node now.
        gate_due: the caller has to send the gate of ``run``'s open round.
        run: read after the commit.
    """

    accepted: bool
    state: NodeState
    gate_due: bool
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LostResult:
    """What became of a lost delivery; the fields of :class:`SettleResult`, and the attempt that is delivered again."""

    accepted: bool
    state: NodeState
    attempt: int
    gate_due: bool
    run: Run


# --- send and sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """All that a node's message and its Celery options need. ``task`` is the verify task for that kind."""

    node_id: int
    key: str
    task: str
    kind: AttemptKind
    attempt: int
    queue: str | None
    priority: int | None
    timeout_seconds: float | None
    soft_timeout_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """A round that was committed and is not known to be sent; ``token`` is what ``mark_sent`` takes for it."""

    run: Run
    token: str


# --- read


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, for people."""

    run: Run
    tenant_id: str
    graph: str
    schedule: str
    content_hash: str
    idempotency_key: str | None
    submitted_by: str | None
    sent: bool
    row_version: int
    created_at: datetime
    started_at: datetime | None
    changed_at: datetime
    finished_at: datetime | None

    @property
    def run_id(self) -> str:
        """The whole id."""
        return self.run.run_id

    @property
    def state(self) -> RunState:
        """Where the run stands."""
        return self.run.state


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node of a run, for people. ``planned_wave`` is None for a node that an evolution added."""

    node: NodeRun
    task: str
    verify: str | None
    owner: str | None
    queue: str | None
    planned_wave: int | None
    worker: str | None
    output: OutputRef | None
    summary: str | None
    missing_inputs: Mapping[str, str]
    verify_result: str | None
    implemented: tuple[str, ...]
    not_before: datetime | None
    queued_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    changed_at: datetime
    finished_at: datetime | None

    @property
    def key(self) -> str:
        """The node's key."""
        return self.node.key

    @property
    def state(self) -> NodeState:
        """Where the node stands."""
        return self.node.state

    @property
    def wave(self) -> int:
        """The wave it stands in now."""
        return self.node.wave

    @property
    def attempt(self) -> int:
        """The number of the current or last attempt, from 1; 0 when it never was queued."""
        return self.node.attempt

    @property
    def pre_done(self) -> bool:
        """Whether it counted as done before it started (X10)."""
        return self.node.pre_done

    @property
    def error(self) -> str | None:
        """Why it failed, or why its last attempt did."""
        return self.node.error

    @property
    def cause(self) -> Cause | None:
        """Why it was skipped or cancelled."""
        return self.node.cause

    @property
    def roots(self) -> tuple[str, ...]:
        """The keys of the nodes, or the edge, that the cause goes back to."""
        return self.node.roots


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """The end of one claim. ``lost`` deliveries and ``refused`` late outcomes are rows beside the one that counts."""

    node_id: int
    key: str
    attempt: int
    kind: AttemptKind
    status: str
    delivery: int
    worker: str | None
    task_id: str | None
    claimed_at: datetime | None
    settled_at: datetime
    error_type: str | None
    error: str | None
    traceback: str | None
    subgraph_hash: str | None
    summary: str | None
    output: OutputRef | None
    evolution: EvolutionRequest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event of the log. ``node_id`` is -1 in the run's own stream; ``n`` counts from 1 without a gap in each."""

    node_id: int
    n: int
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionRow:
    """An evolution, accepted or refused, with the part of the graph that it changed (X7)."""

    node_id: int
    key: str
    number: int
    original: NodeSpec
    evolved: NodeSpec
    added: tuple[str, ...]
    added_edges: tuple[tuple[str, str], ...]
    removed_edges: tuple[tuple[str, str], ...]
    moved: tuple[tuple[str, int, int], ...]  # (key, wave before, wave after)
    asked_by: str | None
    reason: str | None
    refused: str | None
    at: datetime
