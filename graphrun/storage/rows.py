"""Between rows of tables and the frozen values of ``execution``: columns, readers and locks. It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, or_, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from graphrun.execution.run import EdgeRun, NodeRun, Resolution, Run, Truth
from graphrun.execution.state import Awaiting, Cause, NodeState, RunState
from graphrun.storage.columns import clock
from graphrun.storage.documents import (
    keys_from_text,
    keys_to_text,
    policy_from_text,
    policy_to_text,
)
from graphrun.storage.records import OutputRef
from graphrun.storage.tables import edge_runs, node_runs, node_specs, runs

_r, _n, _e = runs.c, node_runs.c, edge_runs.c

RUN_COLUMNS = (
    *(_r.run_id, _r.state, _r.revision, _r.wave, _r.round, _r.waves, _r.failure_policy),
    *(_r.tripped, _r.failed, _r.direct_gate),
)
NODE_COLUMNS = (
    *(_n.node_id, _n.key, _n.wave, _n.state, _n.awaiting, _n.attempt, _n.tries, _n.deliveries, _n.evolution),
    *(_n.pre_done, _n.cause, _n.roots, _n.error, _n.policy, _n.join_rule, _n.verify, _n.resources),
)
STORED_NODE_COLUMNS = (
    *NODE_COLUMNS,
    *(_n.event_count, _n.claim_token, _n.claim_task_id, _n.worker, _n.claimed_at, _n.started_at, _n.not_before),
)
EDGE_COLUMNS = tuple(column for column in edge_runs.columns if column.name != "run_id")
OUTPUT_COLUMNS = (_n.output_digest, _n.output_size, _n.output_inline)

# The spec that a node runs now.
CURRENT_SPEC = and_(
    _n.run_id == node_specs.c.run_id, _n.node_id == node_specs.c.node_id, _n.evolution == node_specs.c.evolution
)
# A node that was committed for sending and that nobody has claimed.
IS_SENDABLE = and_(
    or_(_n.state == NodeState.QUEUED.value, _n.awaiting == Awaiting.VERDICT.value), _n.claim_token.is_(None)
)


EDGE_FIELDS = (
    *("edge_id", "head", "tail", "parameter", "condition", "required", "droppable"),
    *("truth", "resolution", "cause", "roots"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run row with what only the ledger counts; ``now`` is the database's clock when it was read."""

    run: Run
    now: datetime
    tenant_id: str
    row_version: int
    event_count: int
    gate_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNode:
    """A node row with its claim and what only the ledger counts."""

    node: NodeRun
    event_count: int
    claim_token: str | None
    claim_task_id: str | None
    worker: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    not_before: datetime | None


def is_open(node: ReadOnlyColumnCollection[str, Any]) -> ColumnElement[bool]:
    """Return, for the columns of a node, whether its gate waits for it: ``gate.is_open`` in SQL."""
    with_a_worker = node.state.in_((NodeState.QUEUED.value, NodeState.RUNNING.value))
    return or_(with_a_worker, node.awaiting == Awaiting.VERDICT.value)


def run_from(row: RowMapping) -> Run:
    """Return the planner's view of a run row."""
    return Run(
        run_id=row["run_id"],
        state=RunState(row["state"]),
        revision=row["revision"],
        wave=row["wave"],
        round=row["round"],
        waves=row["waves"],
        failure_policy=row["failure_policy"],
        tripped=row["tripped"],
        failed=row["failed"],
        direct_gate=row["direct_gate"],
    )


def run_values(run: Run) -> dict[str, Any]:
    """Return the columns that the planner changes."""
    return {
        "state": run.state.value,
        "revision": run.revision,
        "wave": run.wave,
        "round": run.round,
        "waves": run.waves,
        "tripped": run.tripped,
        "failed": run.failed,
        "direct_gate": run.direct_gate,
    }


def node_from(row: RowMapping) -> NodeRun:
    """Return the planner's view of a node row."""
    return NodeRun(
        node_id=row["node_id"],
        key=row["key"],
        wave=row["wave"],
        state=NodeState(row["state"]),
        awaiting=None if row["awaiting"] is None else Awaiting(row["awaiting"]),
        attempt=row["attempt"],
        tries=row["tries"],
        deliveries=row["deliveries"],
        evolution=row["evolution"],
        pre_done=row["pre_done"],
        cause=None if row["cause"] is None else Cause(row["cause"]),
        roots=keys_from_text(row["roots"]),
        error=row["error"],
        policy=policy_from_text(row["policy"]),
        join=row["join_rule"],
        verified=row["verify"] is not None,
        resources=keys_from_text(row["resources"]),
    )


def node_values(node: NodeRun) -> dict[str, Any]:
    """Return the columns that the planner changes."""
    return {
        "wave": node.wave,
        "state": node.state.value,
        "awaiting": None if node.awaiting is None else node.awaiting.value,
        "attempt": node.attempt,
        "tries": node.tries,
        "deliveries": node.deliveries,
        "evolution": node.evolution,
        "pre_done": node.pre_done,
        "cause": None if node.cause is None else node.cause.value,
        "roots": keys_to_text(node.roots),
        "error": node.error,
        "policy": policy_to_text(node.policy),
    }


def edge_from(row: RowMapping) -> EdgeRun:
    """Return the planner's view of an edge row."""
    return EdgeRun(
        edge_id=row["edge_id"],
        head=row["head"],
        tail=row["tail"],
        parameter=row["parameter"],
        when=row["condition"],
        required=row["required"],
        droppable=row["droppable"],
        truth=None if row["truth"] is None else Truth(row["truth"]),
        resolution=None if row["resolution"] is None else Resolution(row["resolution"]),
        cause=None if row["cause"] is None else Cause(row["cause"]),
        roots=keys_from_text(row["roots"]),
    )


def edge_tuple(edge: EdgeRun) -> tuple[Any, ...]:
    """Return the values of ``EDGE_FIELDS``: every column of an edge but the run's id."""
    return (
        edge.edge_id,
        edge.head,
        edge.tail,
        edge.parameter,
        edge.when,
        edge.required,
        edge.droppable,
        None if edge.truth is None else edge.truth.value,
        None if edge.resolution is None else edge.resolution.value,
        None if edge.cause is None else edge.cause.value,
        keys_to_text(edge.roots),
    )


def edge_values(edge: EdgeRun) -> dict[str, Any]:
    """Return every column of an edge but the run's id, by name."""
    return dict(zip(EDGE_FIELDS, edge_tuple(edge), strict=True))


def output_from(row: RowMapping) -> OutputRef | None:
    """Return the output that a row refers to."""
    if row["output_digest"] is None:
        return None
    return OutputRef(digest=row["output_digest"], size=row["output_size"], inline=row["output_inline"])


def output_values(output: OutputRef | None) -> Mapping[str, Any]:
    """Return the columns of an output."""
    if output is None:
        return {"output_digest": None, "output_size": None, "output_inline": None}
    return {"output_digest": output.digest, "output_size": output.size, "output_inline": output.inline}


def _select_run(connection: Connection, run_id: str) -> Select[Any]:
    columns = (*RUN_COLUMNS, _r.tenant_id, _r.row_version, _r.event_count, _r.gate_token)
    return select(*columns, clock(connection).label("now")).where(_r.run_id == run_id)


def _stored_run(connection: Connection, statement: Select[Any]) -> StoredRun | None:
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        return None
    return StoredRun(
        run=run_from(row),
        now=row["now"],
        tenant_id=row["tenant_id"],
        row_version=row["row_version"],
        event_count=row["event_count"],
        gate_token=row["gate_token"],
    )


def read_run(connection: Connection, run_id: str) -> StoredRun | None:
    """Read a run row without locking it."""
    return _stored_run(connection, _select_run(connection, run_id))


def lock_run(connection: Connection, run_id: str) -> StoredRun | None:
    """Read a run row and keep every other change of it and every claim out until the end of the transaction.

    PostgreSQL: FOR NO KEY UPDATE, since foreign keys of inserted rows take a key share of it. SQLite: the transaction
    is BEGIN IMMEDIATE and holds the only write lock there is.
    """
    return _stored_run(connection, _select_run(connection, run_id).with_for_update(key_share=True))


def share_run(connection: Connection, run_id: str) -> StoredRun | None:
    """Read a run row and keep gates out, but not other claims, until the end of the transaction (FOR SHARE)."""
    return _stored_run(connection, _select_run(connection, run_id).with_for_update(read=True))


def read_node(connection: Connection, run_id: str, node_id: int) -> StoredNode | None:
    """Read a node row without locking it."""
    statement = select(*STORED_NODE_COLUMNS).where(_n.run_id == run_id, _n.node_id == node_id)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else stored_node_from(row)


def read_output(connection: Connection, run_id: str, node_id: int) -> OutputRef | None:
    """Read where the output of a node is."""
    statement = select(*OUTPUT_COLUMNS).where(_n.run_id == run_id, _n.node_id == node_id)
    return output_from(connection.execute(statement).mappings().one())


def stored_node_from(row: RowMapping) -> StoredNode:
    """Return a node row with its claim."""
    return StoredNode(
        node=node_from(row),
        event_count=row["event_count"],
        claim_token=row["claim_token"],
        claim_task_id=row["claim_task_id"],
        worker=row["worker"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        not_before=row["not_before"],
    )
