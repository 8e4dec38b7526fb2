"""Writing a decision of the planner: run row, node rows, edges and events together, or nothing.

It decides nothing. Every row that it changes is compared with what was read: the run by ``row_version``, a node by its
count of events. So a decision made on rows that have changed meanwhile is thrown away whole and made again (X8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, Update, bindparam, delete, insert, update

from graphrun.execution.command import Decision
from graphrun.execution.event import (
    Event,
    NodeAwaits,
    NodeCancelled,
    NodeClaimed,
    NodeEvolved,
    NodeFailed,
    NodeQueued,
    NodeRedelivered,
    NodeSkipped,
    NodeSucceeded,
    RunStarted,
)
from graphrun.execution.run import EdgeRun, NodeRun, Truth, planned_node
from graphrun.execution.state import TERMINAL_RUN
from graphrun.model.spec import NodeSpec
from graphrun.storage.columns import chunks, key_digest
from graphrun.storage.database import ConcurrentChangeError
from graphrun.storage.documents import event_to_text, keys_to_text, policy_to_text, spec_to_text, stream_of
from graphrun.storage.rows import EDGE_FIELDS, StoredRun, edge_tuple, edge_values, node_values, run_values
from graphrun.storage.tables import RUN_STREAM, edge_runs, events, node_runs, node_specs, runs

_UNCLAIMED: Mapping[str, None] = {"claim_token": None, "claim_task_id": None}
_RESOLVED = ("resolution", "cause", "roots")
_INSERT_ROWS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The rows that a decision was made on.

    Attributes:
        run: the run row, read under the lock that the decision needs.
        node_events: the count of events of each node, by id.
    """

    run: StoredRun
    node_events: Mapping[int, int]

    @property
    def now(self) -> datetime:
        """The database's clock in this transaction."""
        return self.run.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Columns beside those that the planner knows, to be written with a decision."""

    run: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def write_decision(connection: Connection, basis: Basis, decision: Decision, marks: Marks) -> None:
    """Write a decision that has events.

    Raises:
        ConcurrentChangeError: a row is no longer as it was read; nothing may be committed.
    """
    run_id = basis.run.run.run_id
    added = dict(decision.added)
    if added:
        rows = [planned_node(node_id, new.spec, wave=_wave_of(decision, node_id)) for node_id, new in added.items()]
        insert_nodes(connection, run_id, rows, [new.spec for new in added.values()], now=basis.now, planned=False)
    _write_nodes(connection, basis, decision, marks.nodes)
    _write_edges(connection, run_id, decision)
    run_events = _append_events(connection, basis, decision.events)
    if marks.run or run_events or decision.run != basis.run.run:
        _write_run(connection, basis, decision, run_events, marks.run)


def insert_nodes(
    connection: Connection,
    run_id: str,
    nodes: Iterable[NodeRun],
    specs: Iterable[NodeSpec],
    *,
    now: datetime,
    planned: bool,
    extra: Mapping[int, Mapping[str, Any]] | None = None,
) -> None:
    """Insert node rows and the specs they run, in bulk.

    Args:
        connection: the transaction.
        run_id: the run.
        nodes: the rows.
        specs: their specs, in the same order.
        now: the database's clock.
        planned: the delegated graph has them; false for those that an evolution adds.
        extra: more columns, the same ones for every node, by node id.
    """
    node_rows, spec_rows = [], []
    for node, spec in zip(nodes, specs, strict=True):
        row = node_values(node) | {
            "run_id": run_id,
            "node_id": node.node_id,
            "key": node.key,
            "key_digest": key_digest(node.key),
            "planned_wave": node.wave if planned else None,
            "join_rule": node.join,
            "resources": keys_to_text(node.resources),
            "changed_at": now,
            **spec_values(spec),
        }
        node_rows.append({**row, **(extra or {}).get(node.node_id, {})})
        spec_rows.append({"run_id": run_id, "node_id": node.node_id, "evolution": 0, "document": spec_to_text(spec)})
    insert_rows(connection, node_runs, node_rows)
    insert_rows(connection, node_specs, spec_rows)


def spec_values(spec: NodeSpec) -> dict[str, Any]:
    """Return what a node row repeats of its current spec, so that sending reads no documents."""
    return {
        "task": spec.task,
        "verify": spec.verify,
        "owner": spec.owner,
        "queue": spec.policy.queue,
        "policy": policy_to_text(spec.policy),
    }


def insert_rows(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows that all name the same columns."""
    for part in chunks(rows, _INSERT_ROWS):
        connection.execute(insert(table), list(part))


def insert_edges(connection: Connection, run_id: str, edges: Iterable[EdgeRun]) -> None:
    """Insert edges of a run as tuples: a dense graph has fifty times as many as nodes, and a dict each is too much."""
    names = ("run_id", *EDGE_FIELDS)
    places = ", ".join(("?" if connection.dialect.name == "sqlite" else "%s",) * len(names))
    statement = f"INSERT INTO {edge_runs.name} ({', '.join(names)}) VALUES ({places})"  # noqa: S608 - names of columns
    for part in chunks([(run_id, *edge_tuple(edge)) for edge in edges], _INSERT_ROWS):
        connection.exec_driver_sql(statement, list(part))


def _wave_of(decision: Decision, node_id: int) -> int:
    return next(node.wave for node in decision.nodes if node.node_id == node_id)


# --- nodes


def _write_nodes(
    connection: Connection, basis: Basis, decision: Decision, marks: Mapping[int, Mapping[str, Any]]
) -> None:
    bookkeeping: dict[int, dict[str, Any]] = {node.node_id: {} for node in decision.nodes}
    counts: Counter[int] = Counter()
    for event in decision.events:
        stream = stream_of(event, RUN_STREAM)
        if stream != RUN_STREAM:
            counts[stream] += 1
            bookkeeping[stream] |= _bookkeeping(event, basis.now)
    # Rows that name the same columns go out in one statement; a whole wave usually does.
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for node in decision.nodes:
        before = basis.node_events.get(node.node_id, 0)
        values = node_values(node) | bookkeeping[node.node_id] | dict(marks.get(node.node_id, {}))
        values |= {"event_count": before + counts[node.node_id], "changed_at": basis.now}
        keys = {"b_node_id": node.node_id, "b_event_count": before}
        groups.setdefault(tuple(values), []).append(values | keys)
    for columns, rows in groups.items():
        _update_nodes(connection, basis.run.run.run_id, columns, rows)


def _update_nodes(connection: Connection, run_id: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    statement = (
        update(node_runs)
        .where(
            node_runs.c.run_id == run_id,
            node_runs.c.node_id == bindparam("b_node_id"),
            node_runs.c.event_count == bindparam("b_event_count"),
        )
        .values({name: bindparam(name, type_=node_runs.c[name].type) for name in columns})
    )
    changed = connection.execute(statement, rows).rowcount
    if changed != len(rows):
        raise ConcurrentChangeError(f"{len(rows) - changed} node rows of run {run_id} changed meanwhile")


def _bookkeeping(event: Event, now: datetime) -> Mapping[str, Any]:
    """Return what an event does to the columns that the planner does not know."""
    match event:
        case NodeQueued():
            return {**_UNCLAIMED, "queued_at": now, "not_before": event.not_before, "sent_at": None}
        case NodeRedelivered():
            # Due from now on and sent just now: if that send is lost, the sweeper sends it again (§3.7).
            return {**_UNCLAIMED, "queued_at": now, "not_before": now, "sent_at": now}
        case NodeClaimed():
            return {"claimed_at": now, "worker": event.worker}
        case NodeAwaits():
            return _UNCLAIMED
        case NodeSucceeded() | NodeFailed() | NodeSkipped() | NodeCancelled():
            return {**_UNCLAIMED, "finished_at": now}
        case _:
            return {}


# --- edges


def _write_edges(connection: Connection, run_id: str, decision: Decision) -> None:
    new = {edge.edge_id for event in decision.events if isinstance(event, NodeEvolved) for edge in event.added_edges}
    # First what goes: an added edge may take the number of a removed one.
    for part in chunks(decision.removed_edges):
        connection.execute(delete(edge_runs).where(edge_runs.c.run_id == run_id, edge_runs.c.edge_id.in_(part)))
    insert_edges(connection, run_id, (edge for edge in decision.edges if edge.edge_id in new))
    changed = [_resolved(edge) for edge in decision.edges if edge.edge_id not in new]
    if changed:
        connection.execute(_edge_update(run_id, _RESOLVED), changed)


def _resolved(edge: EdgeRun) -> dict[str, Any]:
    values = edge_values(edge)
    return {"b_edge_id": edge.edge_id, **{name: values[name] for name in _RESOLVED}}


def write_truths(connection: Connection, run_id: str, truths: Mapping[int, Truth]) -> None:
    """Store what the conditions of edges came to, by edge id (X3)."""
    if truths:
        rows = [{"b_edge_id": edge_id, "truth": truth.value} for edge_id, truth in sorted(truths.items())]
        connection.execute(_edge_update(run_id, ("truth",)), rows)


def _edge_update(run_id: str, columns: tuple[str, ...]) -> Update:
    return (
        update(edge_runs)
        .where(edge_runs.c.run_id == run_id, edge_runs.c.edge_id == bindparam("b_edge_id"))
        .values({name: bindparam(name, type_=edge_runs.c[name].type) for name in columns})
    )


# --- events and the run


def _append_events(connection: Connection, basis: Basis, happened: Iterable[Event]) -> int:
    """Append events to their streams; return how many went to the run's own."""
    counts: dict[int, int] = {RUN_STREAM: basis.run.event_count, **basis.node_events}
    rows = []
    for position, event in enumerate(happened):
        stream = stream_of(event, RUN_STREAM)
        counts[stream] = counts.get(stream, 0) + 1
        rows.append(event_row(basis.run.run.run_id, event, n=counts[stream], position=position, at=basis.now))
    insert_rows(connection, events, rows)
    return counts[RUN_STREAM] - basis.run.event_count


def event_row(run_id: str, event: Event, *, n: int, position: int, at: datetime) -> dict[str, Any]:
    """Return one row of the log."""
    return {
        "run_id": run_id,
        "node_id": stream_of(event, RUN_STREAM),
        "n": n,
        "position": position,
        "kind": type(event).__name__,
        "data": event_to_text(event),
        "at": at,
    }


def _write_run(
    connection: Connection, basis: Basis, decision: Decision, run_events: int, marks: Mapping[str, Any]
) -> None:
    before, run = basis.run, decision.run
    values = run_values(run) | {
        "row_version": before.row_version + 1,
        "event_count": before.event_count + run_events,
        "changed_at": basis.now,
        **marks,
    }
    if any(isinstance(event, RunStarted) for event in decision.events):
        values["started_at"] = basis.now
    if run.state in TERMINAL_RUN:
        values["finished_at"] = basis.now
    statement = update(runs).where(runs.c.run_id == run.run_id, runs.c.row_version == before.row_version).values(values)
    if connection.execute(statement).rowcount != 1:
        raise ConcurrentChangeError(f"run {run.run_id} changed meanwhile")
