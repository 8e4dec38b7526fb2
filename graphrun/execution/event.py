"""Facts: what the engine reports to the planner, and what the planner records in the log.

``Fact`` is the closed union of what can happen outside; ``Event`` the closed union of what is written, in the past
tense, one a row of the event log. Folding a run's events gives its rows again (``fold``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graphrun.execution.run import AttemptKind, EdgeRun, NodeRun, Resolution
from graphrun.execution.state import Awaiting, Cause, RunState

# --- facts: what the engine reports


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReached:
    """The gate of a round was called by a chord, an errback, a settle or the sweeper.

    Attributes:
        now: aware UTC time, for ``not_before``.
        jitter: a random number in [0, 1), for backoff.
    """

    revision: int
    wave: int
    round: int
    now: datetime
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A worker took the current attempt of a node."""

    node_id: int
    attempt: int
    kind: AttemptKind
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An attempt ended, with what the node returned.

    ``final`` forbids the retry: the fault cannot be mended by running again. ``outside`` says that the parent of the
    process that ran it settles it (a hard time limit, an exit): its chord will not count to the end.
    """

    node_id: int
    attempt: int
    kind: AttemptKind
    status: Literal["done", "failed", "evolved"]
    error_type: str | None = None
    error: str | None = None
    final: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLost:
    """The process that ran an attempt died by a signal, or its whole worker went away (X6)."""

    node_id: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLost:
    """A round was committed and its sender went away: some of it, or all, was not sent (§3.7)."""

    revision: int
    wave: int
    round: int


Fact = GateReached | Claimed | Settled | DeliveryLost | SendLost

# --- events: what is recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeResolved:
    """How one inbound edge resolved; part of the event that decided its tail."""

    edge_id: int
    resolution: Resolution
    cause: Cause | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The run left ``created``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveOpened:
    """The gate went on to a wave."""

    wave: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOpened:
    """Retries, evolutions or verifications of the open wave were sent; ``direct`` means without a chord."""

    wave: int
    round: int
    direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChordBroken:
    """A member of the open round will not be counted: the last settle of the round sends its gate itself (§3.4)."""

    wave: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTripped:
    """Under ``fail_fast`` a node failed for good: nothing more starts (X5)."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run ended."""

    state: RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQueued:
    """An attempt of a node was committed for sending."""

    node_id: int
    attempt: int
    round: int
    reason: Literal["first", "retry", "evolved"]
    not_before: datetime | None = None
    edges: tuple[EdgeResolved, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaimed:
    """A worker took an attempt; of kind ``verify`` the node keeps waiting for its verdict."""

    node_id: int
    attempt: int
    kind: AttemptKind
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRedelivered:
    """The delivery of an attempt was lost; the same attempt is queued again."""

    node_id: int
    attempt: int
    deliveries: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAwaits:
    """A node waits for its gate, or for the verdict of its verify task."""

    node_id: int
    attempt: int
    awaiting: Awaiting
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSucceeded:
    """A node is done."""

    node_id: int
    attempt: int
    pre_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed:
    """A node failed for good."""

    node_id: int
    attempt: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSkipped:
    """A node will not run, and why (X4)."""

    node_id: int
    cause: Cause
    roots: tuple[str, ...]
    edges: tuple[EdgeResolved, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCancelled:
    """A node was not let start."""

    node_id: int
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvolved:
    """A node was rewritten, with the parts of the graph that changed for it (X7)."""

    node_id: int
    number: int
    asked_by: str | None
    reason: str | None
    rewritten: NodeRun
    added_nodes: tuple[NodeRun, ...] = ()
    added_edges: tuple[EdgeRun, ...] = ()
    removed_edges: tuple[int, ...] = ()
    moved: tuple[tuple[int, int], ...] = ()  # (node id, new wave)


NodeEvent = (
    NodeQueued
    | NodeClaimed
    | NodeRedelivered
    | NodeAwaits
    | NodeSucceeded
    | NodeFailed
    | NodeSkipped
    | NodeCancelled
    | NodeEvolved
)
RunEvent = RunStarted | WaveOpened | RoundOpened | ChordBroken | RunTripped | RunFinished
Event = RunEvent | NodeEvent
