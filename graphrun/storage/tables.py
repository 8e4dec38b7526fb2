"""The schema: every table, with the states and invariants that its constraints guard.

JSON is kept as ASCII text, never jsonb: PostgreSQL refuses NaN and NUL there (O23). A node is an integer in declared
order, and so is an edge. Changing a table means a migration; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    column,
    false,
    or_,
    true,
)

from graphrun.execution.run import AttemptKind, Resolution, Truth
from graphrun.execution.state import TERMINAL_NODE, TERMINAL_RUN, Awaiting, Cause, NodeState, RunState
from graphrun.storage.columns import Prose, UtcTime, identifier

RUN_STREAM = -1
RUN_ID_LENGTH = 36
TOKEN_LENGTH = 64
OUTCOMES = ("done", "failed", "evolved")
ATTEMPT_STATUSES = (*OUTCOMES, "lost", "refused")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def listed(values: Iterable[str]) -> str:
    """Return values as an SQL list; for enum members and constants only."""
    return "(" + ", ".join(f"'{value}'" for value in sorted(values)) + ")"


def _among(name: str, states: type[StrEnum] | Iterable[str], *, nullable: bool = False) -> CheckConstraint:
    text = f"{name} IN {listed(states)}"
    return CheckConstraint(f"{name} IS NULL OR {text}" if nullable else text, name=f"{name}_known")


def _run_id() -> Column[str]:
    target = ForeignKey("runs.run_id", ondelete="CASCADE")
    return Column("run_id", identifier(RUN_ID_LENGTH), target, primary_key=True)


def _node_reference(name: str = "node_id") -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["run_id", name], ["node_runs.run_id", "node_runs.node_id"], ondelete="CASCADE")


def _output() -> list[Column[str] | Column[int]]:
    return [Column("output_digest", String(64)), Column("output_size", BigInteger), Column("output_inline", Text)]


runs = Table(
    "runs",
    metadata,
    Column("run_id", identifier(RUN_ID_LENGTH), primary_key=True),
    Column("tenant_id", String(100), nullable=False),
    Column("graph_name", Prose, nullable=False),
    Column("content_hash", String(128), nullable=False),
    Column("idempotency_key", String(500)),
    Column("submitted_by", Prose),
    Column("submit_token", String(TOKEN_LENGTH), nullable=False),
    Column("state", String(16), nullable=False, server_default=RunState.CREATED.value),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("wave", Integer, nullable=False, server_default="0"),
    Column("round", Integer, nullable=False, server_default="0"),
    Column("waves", Integer, nullable=False),
    Column("failure_policy", String(32), nullable=False),
    Column("schedule", String(32), nullable=False),
    Column("tripped", Boolean, nullable=False, server_default=false()),
    Column("failed", Boolean, nullable=False, server_default=false()),
    Column("direct_gate", Boolean, nullable=False, server_default=false()),
    Column("row_version", BigInteger, nullable=False, server_default="0"),
    Column("event_count", Integer, nullable=False, server_default="0"),
    Column("gate_token", String(TOKEN_LENGTH)),
    Column("gate_sent_at", UtcTime),  # when the sweeper last sent the gate of the round, which nobody else had
    Column("sent", Boolean, nullable=False, server_default=true()),
    Column("sent_token", String(TOKEN_LENGTH)),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("changed_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    _among("state", RunState),
    CheckConstraint(f"length(run_id) = {RUN_ID_LENGTH}", name="run_id_whole"),
    CheckConstraint("wave >= 0 AND wave <= waves", name="wave_in_range"),
    CheckConstraint("revision >= 0 AND round >= 0", name="counters_positive"),
    CheckConstraint("failure_policy IN ('fail_fast', 'proceed', 'skip_dependents')", name="failure_policy_known"),
    CheckConstraint(f"(state IN {listed(TERMINAL_RUN)}) = (finished_at IS NOT NULL)", name="finished_when_terminal"),
    CheckConstraint("sent OR sent_token IS NOT NULL", name="unsent_has_token"),
    UniqueConstraint("tenant_id", "idempotency_key"),
    Index("ix_runs_tenant_id_created_at", "tenant_id", "created_at"),
    Index("ix_runs_state_changed_at", "state", "changed_at"),
)

# Beside the run and not on it: SQLite rewrites a whole row at each update, and the edges of a graph may be megabytes.
graph_specs = Table(
    "graph_specs",
    metadata,
    _run_id(),
    Column("document", Text, nullable=False),
)

node_runs = Table(
    "node_runs",
    metadata,
    _run_id(),
    Column("node_id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("key_digest", String(32), nullable=False),
    Column("task", Text, nullable=False),
    Column("verify", Text),
    Column("owner", Prose),
    Column("queue", Text),
    Column("planned_wave", Integer),
    Column("wave", Integer, nullable=False),
    Column("state", String(16), nullable=False, server_default=NodeState.PENDING.value),
    Column("awaiting", String(16)),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("deliveries", Integer, nullable=False, server_default="0"),
    Column("evolution", Integer, nullable=False, server_default="0"),
    Column("pre_done", Boolean, nullable=False, server_default=false()),
    Column("cause", String(32)),
    Column("roots", Text),
    Column("error", Prose),
    Column("policy", Text),
    Column("join_rule", String(8), nullable=False),
    Column("resources", Text),
    Column("event_count", Integer, nullable=False, server_default="0"),
    Column("claim_token", String(TOKEN_LENGTH)),
    Column("claim_task_id", String(255)),
    Column("worker", Prose),
    Column("not_before", UtcTime),
    Column("sent_at", UtcTime),
    Column("queued_at", UtcTime),
    Column("claimed_at", UtcTime),
    Column("started_at", UtcTime),
    Column("changed_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("verify_result", Prose),
    Column("missing_inputs", Text),
    Column("implemented", Text),
    Column("summary", Prose),
    *_output(),
    _among("state", NodeState),
    _among("awaiting", Awaiting, nullable=True),
    _among("cause", Cause, nullable=True),
    _among("join_rule", ("any", "all")),
    CheckConstraint("(state = 'waiting') = (awaiting IS NOT NULL)", name="waiting_names_what_for"),
    CheckConstraint("state <> 'running' OR claim_token IS NOT NULL", name="running_is_claimed"),
    CheckConstraint(
        "claim_token IS NULL OR state = 'running' OR (state = 'waiting' AND awaiting = 'verdict')",
        name="claimed_while_running",
    ),
    CheckConstraint("(claim_token IS NULL) = (claim_task_id IS NULL)", name="claim_names_delivery"),
    CheckConstraint("(state IN ('skipped', 'cancelled')) = (cause IS NOT NULL)", name="cause_when_not_run"),
    CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_says_why"),
    CheckConstraint(f"(state IN {listed(TERMINAL_NODE)}) = (finished_at IS NOT NULL)", name="finished_when_terminal"),
    CheckConstraint("NOT pre_done OR state = 'succeeded'", name="pre_done_succeeded"),
    CheckConstraint("wave >= 1 AND (planned_wave IS NULL OR planned_wave >= 1)", name="wave_positive"),
    CheckConstraint(
        "node_id >= 0 AND tries >= 0 AND attempt >= tries AND deliveries >= 0 AND evolution >= 0",
        name="counters_positive",
    ),
    UniqueConstraint("run_id", "key_digest"),
    Index("ix_node_runs_run_id_wave", "run_id", "wave"),
    Index(
        "ix_node_runs_not_before",
        "not_before",
        sqlite_where=column("not_before").is_not(None),
        postgresql_where=column("not_before").is_not(None),
    ),
)

# Evolution 0 is the node as it was delegated, or as an evolution added it (then node_runs.planned_wave is NULL).
node_specs = Table(
    "node_specs",
    metadata,
    Column("run_id", identifier(RUN_ID_LENGTH), primary_key=True),
    Column("node_id", Integer, primary_key=True, autoincrement=False),
    Column("evolution", Integer, primary_key=True, autoincrement=False),
    Column("document", Text, nullable=False),
    _node_reference(),
    CheckConstraint("evolution >= 0", name="evolution_positive"),
)

edge_runs = Table(
    "edge_runs",
    metadata,
    # Its nodes refer to the run: an edge, of which there are many, need not do so too.
    Column("run_id", identifier(RUN_ID_LENGTH), primary_key=True),
    Column("edge_id", Integer, primary_key=True, autoincrement=False),
    Column("head", Integer, nullable=False),
    Column("tail", Integer, nullable=False),
    Column("parameter", Text),
    Column("condition", Text),
    Column("required", Boolean, nullable=False),
    Column("droppable", Boolean, nullable=False),
    Column("truth", String(8)),
    Column("resolution", String(16)),
    Column("cause", String(32)),
    Column("roots", Text),
    _node_reference("head"),
    _node_reference("tail"),
    _among("truth", Truth, nullable=True),
    _among("resolution", Resolution, nullable=True),
    _among("cause", Cause, nullable=True),
    CheckConstraint("edge_id >= 0 AND head <> tail", name="not_onto_itself"),
    CheckConstraint("truth IS NULL OR condition IS NOT NULL", name="truth_of_condition"),
    Index("ix_edge_runs_run_id_head", "run_id", "head"),
    Index("ix_edge_runs_run_id_tail", "run_id", "tail"),
)

# One row for each end of a claim. ``writer`` is the token of the write: finding it there means that the write happened.
attempts = Table(
    "attempts",
    metadata,
    Column("run_id", identifier(RUN_ID_LENGTH), primary_key=True),
    Column("node_id", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(8), primary_key=True),
    Column("writer", String(TOKEN_LENGTH), primary_key=True),
    Column("status", String(16), nullable=False),
    Column("delivery", Integer, nullable=False),
    Column("token", String(TOKEN_LENGTH)),
    Column("task_id", String(255)),
    Column("worker", Prose),
    Column("claimed_at", UtcTime),
    Column("settled_at", UtcTime, nullable=False),
    Column("error_type", Prose),
    Column("error", Prose),
    Column("traceback", Prose),
    Column("subgraph_hash", String(64)),  # of what was asked, inputs included: equal in a retry (X6)
    Column("summary", Prose),
    Column("evolution", Text),
    *_output(),
    _node_reference(),
    _among("kind", AttemptKind),
    _among("status", ATTEMPT_STATUSES),
    CheckConstraint("attempt >= 0 AND delivery >= 0", name="counters_positive"),
    # Promise 2: an outcome is recorded once per (run, node, attempt).
    Index(
        "uq_attempts_outcome",
        "run_id",
        "node_id",
        "attempt",
        "kind",
        unique=True,
        sqlite_where=or_(*(column("status") == status for status in OUTCOMES)),
        postgresql_where=or_(*(column("status") == status for status in OUTCOMES)),
    ),
)

# (run, node, n) is counted under the node row, (run, RUN_STREAM, n) under the run lock; ``position`` orders the events
# of one decision among each other (X18).
events = Table(
    "events",
    metadata,
    _run_id(),
    Column("node_id", Integer, primary_key=True, autoincrement=False),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("data", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
    CheckConstraint(f"node_id >= {RUN_STREAM} AND n >= 1", name="numbered_from_one"),
)

evolutions = Table(
    "evolutions",
    metadata,
    Column("run_id", identifier(RUN_ID_LENGTH), primary_key=True),
    Column("node_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("original", Text, nullable=False),
    Column("evolved", Text, nullable=False),
    Column("changes", Text, nullable=False),
    Column("asked_by", Prose),
    Column("reason", Prose),
    Column("refused", Prose),
    Column("at", UtcTime, nullable=False),
    _node_reference(),
    CheckConstraint("number >= 1", name="numbered_from_one"),
)

payloads = Table(
    "payloads",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    CheckConstraint("size >= 0 AND length(digest) = 64", name="addressed_by_hash"),
)
