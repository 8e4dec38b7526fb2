"""The first schema: runs, nodes, edges, attempts, events, evolutions, payloads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table, each after those it refers to."""
    _create_payloads()
    _create_runs()
    _create_events()
    _create_graph_specs()
    _create_node_runs()
    _create_attempts()
    _create_edge_runs()
    _create_evolutions()
    _create_node_specs()


def downgrade() -> None:
    """Drop every table."""
    for table in (
        "node_specs",
        "evolutions",
        "edge_runs",
        "attempts",
        "node_runs",
        "graph_specs",
        "events",
        "runs",
        "payloads",
    ):
        op.drop_table(table)


def _identifier() -> sa.String:
    plain: sa.String = sa.String(length=36)
    return plain.with_variant(sa.String(length=36, collation="C"), "postgresql")


def _create_payloads() -> None:
    op.create_table(
        "payloads",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("size >= 0 AND length(digest) = 64", name=op.f("ck_payloads_addressed_by_hash")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_payloads")),
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("tenant_id", sa.String(length=100), nullable=False),
        sa.Column("graph_name", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(length=128), nullable=False),
        sa.Column("idempotency_key", sa.String(length=500), nullable=True),
        sa.Column("submitted_by", sa.Text(), nullable=True),
        sa.Column("submit_token", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), server_default="created", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.Column("wave", sa.Integer(), server_default="0", nullable=False),
        sa.Column("round", sa.Integer(), server_default="0", nullable=False),
        sa.Column("waves", sa.Integer(), nullable=False),
        sa.Column("failure_policy", sa.String(length=32), nullable=False),
        sa.Column("schedule", sa.String(length=32), nullable=False),
        sa.Column("tripped", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("failed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("direct_gate", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("row_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("event_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gate_token", sa.String(length=64), nullable=True),
        sa.Column("gate_sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("sent_token", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state IN ('cancelled', 'failed', 'succeeded')) = (finished_at IS NOT NULL)",
            name=op.f("ck_runs_finished_when_terminal"),
        ),
        sa.CheckConstraint(
            "failure_policy IN ('fail_fast', 'proceed', 'skip_dependents')", name=op.f("ck_runs_failure_policy_known")
        ),
        sa.CheckConstraint(
            "state IN ('cancelled', 'cancelling', 'created', 'failed', 'paused', 'running', 'succeeded')",
            name=op.f("ck_runs_state_known"),
        ),
        sa.CheckConstraint("length(run_id) = 36", name=op.f("ck_runs_run_id_whole")),
        sa.CheckConstraint("revision >= 0 AND round >= 0", name=op.f("ck_runs_counters_positive")),
        sa.CheckConstraint("sent OR sent_token IS NOT NULL", name=op.f("ck_runs_unsent_has_token")),
        sa.CheckConstraint("wave >= 0 AND wave <= waves", name=op.f("ck_runs_wave_in_range")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
        sa.UniqueConstraint("tenant_id", "idempotency_key", name=op.f("uq_runs_tenant_id_idempotency_key")),
    )
    op.create_index("ix_runs_state_changed_at", "runs", ["state", "changed_at"])
    op.create_index("ix_runs_tenant_id_created_at", "runs", ["tenant_id", "created_at"])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("node_id >= -1 AND n >= 1", name=op.f("ck_events_numbered_from_one")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_events_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "node_id", "n", name=op.f("pk_events")),
    )


def _create_graph_specs() -> None:
    op.create_table(
        "graph_specs",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_graph_specs_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_graph_specs")),
    )


def _create_node_runs() -> None:
    op.create_table(
        "node_runs",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.String(length=32), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("verify", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("queue", sa.Text(), nullable=True),
        sa.Column("planned_wave", sa.Integer(), nullable=True),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), server_default="pending", nullable=False),
        sa.Column("awaiting", sa.String(length=16), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("deliveries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("evolution", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pre_done", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("roots", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.Column("join_rule", sa.String(length=8), nullable=False),
        sa.Column("resources", sa.Text(), nullable=True),
        sa.Column("event_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("claim_token", sa.String(length=64), nullable=True),
        sa.Column("claim_task_id", sa.String(length=255), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("verify_result", sa.Text(), nullable=True),
        sa.Column("missing_inputs", sa.Text(), nullable=True),
        sa.Column("implemented", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("output_digest", sa.String(length=64), nullable=True),
        sa.Column("output_size", sa.BigInteger(), nullable=True),
        sa.Column("output_inline", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state = 'waiting') = (awaiting IS NOT NULL)", name=op.f("ck_node_runs_waiting_names_what_for")
        ),
        sa.CheckConstraint(
            "(state IN ('cancelled', 'failed', 'skipped', 'succeeded')) = (finished_at IS NOT NULL)",
            name=op.f("ck_node_runs_finished_when_terminal"),
        ),
        sa.CheckConstraint(
            "(state IN ('skipped', 'cancelled')) = (cause IS NOT NULL)", name=op.f("ck_node_runs_cause_when_not_run")
        ),
        sa.CheckConstraint("NOT pre_done OR state = 'succeeded'", name=op.f("ck_node_runs_pre_done_succeeded")),
        sa.CheckConstraint(
            "awaiting IS NULL OR awaiting IN ('evolution', 'retry', 'verdict', 'verification')",
            name=op.f("ck_node_runs_awaiting_known"),
        ),
        sa.CheckConstraint(
            "cause IS NULL OR cause IN ('cancelled', 'condition', 'condition_error', 'fail_fast', 'upstream_failed')",
            name=op.f("ck_node_runs_cause_known"),
        ),
        sa.CheckConstraint(
            "claim_token IS NULL OR state = 'running' OR (state = 'waiting' AND awaiting = 'verdict')",
            name=op.f("ck_node_runs_claimed_while_running"),
        ),
        sa.CheckConstraint("join_rule IN ('all', 'any')", name=op.f("ck_node_runs_join_rule_known")),
        sa.CheckConstraint("state <> 'failed' OR error IS NOT NULL", name=op.f("ck_node_runs_failed_says_why")),
        sa.CheckConstraint(
            "state <> 'running' OR claim_token IS NOT NULL", name=op.f("ck_node_runs_running_is_claimed")
        ),
        sa.CheckConstraint(
            "state IN ('cancelled', 'failed', 'pending', 'queued', 'running', 'skipped', 'succeeded', 'waiting')",
            name=op.f("ck_node_runs_state_known"),
        ),
        sa.CheckConstraint(
            "(claim_token IS NULL) = (claim_task_id IS NULL)", name=op.f("ck_node_runs_claim_names_delivery")
        ),
        sa.CheckConstraint(
            "node_id >= 0 AND tries >= 0 AND attempt >= tries AND deliveries >= 0 AND evolution >= 0",
            name=op.f("ck_node_runs_counters_positive"),
        ),
        sa.CheckConstraint(
            "wave >= 1 AND (planned_wave IS NULL OR planned_wave >= 1)", name=op.f("ck_node_runs_wave_positive")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_node_runs_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "node_id", name=op.f("pk_node_runs")),
        sa.UniqueConstraint("run_id", "key_digest", name=op.f("uq_node_runs_run_id_key_digest")),
    )
    op.create_index(
        "ix_node_runs_not_before",
        "node_runs",
        ["not_before"],
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )
    op.create_index("ix_node_runs_run_id_wave", "node_runs", ["run_id", "wave"])


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("writer", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("delivery", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(length=64), nullable=True),
        sa.Column("task_id", sa.String(length=255), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("subgraph_hash", sa.String(length=64), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("evolution", sa.Text(), nullable=True),
        sa.Column("output_digest", sa.String(length=64), nullable=True),
        sa.Column("output_size", sa.BigInteger(), nullable=True),
        sa.Column("output_inline", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('body', 'verify')", name=op.f("ck_attempts_kind_known")),
        sa.CheckConstraint(
            "status IN ('done', 'evolved', 'failed', 'lost', 'refused')", name=op.f("ck_attempts_status_known")
        ),
        sa.CheckConstraint("attempt >= 0 AND delivery >= 0", name=op.f("ck_attempts_counters_positive")),
        sa.ForeignKeyConstraint(
            ["run_id", "node_id"],
            ["node_runs.run_id", "node_runs.node_id"],
            name=op.f("fk_attempts_run_id_node_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", "attempt", "kind", "writer", name=op.f("pk_attempts")),
    )
    op.create_index(
        "uq_attempts_outcome",
        "attempts",
        ["run_id", "node_id", "attempt", "kind"],
        unique=True,
        sqlite_where=sa.text("status = 'done' OR status = 'failed' OR status = 'evolved'"),
        postgresql_where=sa.text("status = 'done' OR status = 'failed' OR status = 'evolved'"),
    )


def _create_edge_runs() -> None:
    op.create_table(
        "edge_runs",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("edge_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("head", sa.Integer(), nullable=False),
        sa.Column("tail", sa.Integer(), nullable=False),
        sa.Column("parameter", sa.Text(), nullable=True),
        sa.Column("condition", sa.Text(), nullable=True),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("droppable", sa.Boolean(), nullable=False),
        sa.Column("truth", sa.String(length=8), nullable=True),
        sa.Column("resolution", sa.String(length=16), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("roots", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "cause IS NULL OR cause IN ('cancelled', 'condition', 'condition_error', 'fail_fast', 'upstream_failed')",
            name=op.f("ck_edge_runs_cause_known"),
        ),
        sa.CheckConstraint(
            "resolution IS NULL OR resolution IN ('blocked', 'delivered', 'missing', 'suppressed')",
            name=op.f("ck_edge_runs_resolution_known"),
        ),
        sa.CheckConstraint(
            "truth IS NULL OR truth IN ('error', 'false', 'true')", name=op.f("ck_edge_runs_truth_known")
        ),
        sa.CheckConstraint("edge_id >= 0 AND head <> tail", name=op.f("ck_edge_runs_not_onto_itself")),
        sa.CheckConstraint("truth IS NULL OR condition IS NOT NULL", name=op.f("ck_edge_runs_truth_of_condition")),
        sa.ForeignKeyConstraint(
            ["run_id", "head"],
            ["node_runs.run_id", "node_runs.node_id"],
            name=op.f("fk_edge_runs_run_id_head"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id", "tail"],
            ["node_runs.run_id", "node_runs.node_id"],
            name=op.f("fk_edge_runs_run_id_tail"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "edge_id", name=op.f("pk_edge_runs")),
    )
    op.create_index("ix_edge_runs_run_id_head", "edge_runs", ["run_id", "head"])
    op.create_index("ix_edge_runs_run_id_tail", "edge_runs", ["run_id", "tail"])


def _create_evolutions() -> None:
    op.create_table(
        "evolutions",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("original", sa.Text(), nullable=False),
        sa.Column("evolved", sa.Text(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("refused", sa.Text(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_evolutions_numbered_from_one")),
        sa.ForeignKeyConstraint(
            ["run_id", "node_id"],
            ["node_runs.run_id", "node_runs.node_id"],
            name=op.f("fk_evolutions_run_id_node_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", "number", name=op.f("pk_evolutions")),
    )


def _create_node_specs() -> None:
    op.create_table(
        "node_specs",
        sa.Column("run_id", _identifier(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("evolution", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.CheckConstraint("evolution >= 0", name=op.f("ck_node_specs_evolution_positive")),
        sa.ForeignKeyConstraint(
            ["run_id", "node_id"],
            ["node_runs.run_id", "node_runs.node_id"],
            name=op.f("fk_node_specs_run_id_node_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", "evolution", name=op.f("pk_node_specs")),
    )
