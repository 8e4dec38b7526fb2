"""Reading runs, for people: every question is asked for a tenant and sees that tenant's runs only. It only reads."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, and_, literal, select, union_all

from graphrun.errors import LedgerError, RunNotFoundError
from graphrun.execution.run import AttemptKind, EdgeRun
from graphrun.execution.state import NodeState, RunState
from graphrun.model.spec import GraphSpec, NodeSpec
from graphrun.storage.columns import chunks, key_digest
from graphrun.storage.database import Database
from graphrun.storage.documents import (
    event_from_text,
    graph_from_text,
    keys_from_text,
    mapping_from_text,
    request_from_text,
    spec_from_text,
)
from graphrun.storage.outputs import Outputs
from graphrun.storage.records import AttemptRow, EventRow, EvolutionRow, NodeRow, OutputRef, RunRow
from graphrun.storage.rows import CURRENT_SPEC, EDGE_COLUMNS, edge_from, node_from, output_from, run_from
from graphrun.storage.tables import (
    RUN_ID_LENGTH,
    RUN_STREAM,
    attempts,
    edge_runs,
    events,
    evolutions,
    graph_specs,
    node_runs,
    node_specs,
    runs,
)

T = TypeVar("T")

_r, _n = runs.c, node_runs.c
_MIN_PREFIX = 6
_PREFIX = re.compile(r"[0-9a-f-]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """Answers questions about runs."""

    database: Database
    outputs: Outputs

    def run(self, run_id: str, tenant_id: str) -> RunRow:
        """Return a run."""

        def read(connection: Connection, whole: str) -> RunRow:
            return _run_row(connection.execute(select(runs).where(_r.run_id == whole)).mappings().one())

        return self._of_run(run_id, tenant_id, read)

    def runs(
        self, tenant_id: str, *, state: RunState | None, graph: str | None, limit: int, offset: int
    ) -> tuple[RunRow, ...]:
        """Return runs, the latest first."""
        statement = select(runs).where(_r.tenant_id == tenant_id)
        if state is not None:
            statement = statement.where(_r.state == state.value)
        if graph is not None:
            statement = statement.where(_r.graph_name == graph)
        ordered = statement.order_by(_r.created_at.desc(), _r.run_id).limit(limit).offset(offset)
        rows = self.database.run_read(lambda connection: connection.execute(ordered).mappings().all())
        return tuple(_run_row(row) for row in rows)

    def nodes(self, run_id: str, tenant_id: str) -> tuple[NodeRow, ...]:
        """Return the nodes of a run, in declared order."""

        def read(connection: Connection, whole: str) -> tuple[NodeRow, ...]:
            statement = select(node_runs).where(_n.run_id == whole).order_by(_n.node_id)
            return tuple(_node_row(row) for row in connection.execute(statement).mappings())

        return self._of_run(run_id, tenant_id, read)

    def edges(self, run_id: str, tenant_id: str) -> tuple[EdgeRun, ...]:
        """Return the edges of a run as it is now, in declared order."""

        def read(connection: Connection, whole: str) -> tuple[EdgeRun, ...]:
            statement = select(*EDGE_COLUMNS).where(edge_runs.c.run_id == whole).order_by(edge_runs.c.edge_id)
            return tuple(edge_from(row) for row in connection.execute(statement).mappings())

        return self._of_run(run_id, tenant_id, read)

    def attempts(self, run_id: str, tenant_id: str, key: str | None) -> tuple[AttemptRow, ...]:
        """Return the ends of claims, of one node or of all, in the order in which they ended."""

        def read(connection: Connection, whole: str) -> tuple[AttemptRow, ...]:
            same_node = and_(_n.run_id == attempts.c.run_id, _n.node_id == attempts.c.node_id)
            statement = select(attempts, _n.key).join(node_runs, same_node).where(attempts.c.run_id == whole)
            if key is not None:
                statement = statement.where(_n.key_digest == key_digest(key))
            ordered = statement.order_by(attempts.c.settled_at, attempts.c.node_id, attempts.c.attempt)
            return tuple(_attempt_row(row) for row in connection.execute(ordered).mappings())

        return self._of_run(run_id, tenant_id, read)

    def events(self, run_id: str, tenant_id: str, after: Mapping[int, int]) -> tuple[EventRow, ...]:
        """Return the log of a run behind a position in each stream."""
        return self._of_run(run_id, tenant_id, lambda connection, whole: _events(connection, whole, after))

    def evolutions(self, run_id: str, tenant_id: str) -> tuple[EvolutionRow, ...]:
        """Return accepted and refused evolutions, in order."""

        def read(connection: Connection, whole: str) -> tuple[EvolutionRow, ...]:
            same_node = and_(_n.run_id == evolutions.c.run_id, _n.node_id == evolutions.c.node_id)
            statement = select(evolutions, _n.key).join(node_runs, same_node).where(evolutions.c.run_id == whole)
            ordered = statement.order_by(evolutions.c.at, evolutions.c.node_id, evolutions.c.number)
            return tuple(_evolution_row(row) for row in connection.execute(ordered).mappings())

        return self._of_run(run_id, tenant_id, read)

    def output(self, run_id: str, tenant_id: str, key: str) -> str:
        """Return the encoded output of a node."""

        def read(connection: Connection, whole: str) -> OutputRef:
            statement = select(node_runs).where(_n.run_id == whole, _n.key_digest == key_digest(key))
            row = connection.execute(statement).mappings().one_or_none()
            if row is None:
                raise LedgerError(f"run {whole} has no node {key!r}")
            found = output_from(row) if row["state"] == NodeState.SUCCEEDED.value else None
            if found is None:
                raise LedgerError(f"node {key!r} of run {whole} has no output: it is {row['state']}")
            return found

        return self.outputs.load(self._of_run(run_id, tenant_id, read))

    def spec(self, run_id: str, tenant_id: str) -> GraphSpec:
        """Return the delegated graph, equal to the one that was submitted."""

        def read(connection: Connection, whole: str) -> GraphSpec:
            same_node = and_(_n.run_id == node_specs.c.run_id, _n.node_id == node_specs.c.node_id)
            statement = (
                select(node_specs.c.document)
                .join(node_runs, same_node)
                .where(node_specs.c.run_id == whole, node_specs.c.evolution == 0, _n.planned_wave.is_not(None))
                .order_by(node_specs.c.node_id)
            )
            nodes = [spec_from_text(text) for text in connection.execute(statement).scalars()]
            graph = select(graph_specs.c.document).where(graph_specs.c.run_id == whole)
            return graph_from_text(connection.execute(graph).scalar_one(), nodes)

        return self._of_run(run_id, tenant_id, read)

    def node_specs(self, run_id: str, tenant_id: str) -> dict[int, NodeSpec]:
        """Return the spec that each node runs now, by node id."""

        def read(connection: Connection, whole: str) -> dict[int, NodeSpec]:
            columns = (node_specs.c.node_id, node_specs.c.document)
            statement = select(*columns).join(node_runs, CURRENT_SPEC).where(_n.run_id == whole).order_by(_n.node_id)
            return {node_id: spec_from_text(text) for node_id, text in connection.execute(statement)}

        return self._of_run(run_id, tenant_id, read)

    def _of_run(self, run_id: str, tenant_id: str, read: Callable[[Connection, str], T]) -> T:
        return self.database.run_read(lambda connection: read(connection, whole_run_id(connection, run_id, tenant_id)))


def whole_run_id(connection: Connection, run_id: str, tenant_id: str) -> str:
    """Return the whole id of a run that a tenant names by its id or by a unique beginning of it.

    Raises:
        RunNotFoundError: there is none for this tenant; whether another tenant has one is not disclosed.
        LedgerError: the beginning is too short, or several runs begin so.
    """
    text = run_id.strip().lower()
    if len(text) < _MIN_PREFIX:
        raise LedgerError(f"{run_id!r} is too short for a run id: give at least {_MIN_PREFIX} characters")
    not_found = RunNotFoundError(f"there is no run {run_id!r}; `graphrun list` shows those that there are")
    if len(text) > RUN_ID_LENGTH or _PREFIX.fullmatch(text) is None:
        raise not_found
    statement = select(_r.run_id).where(_r.tenant_id == tenant_id, _r.run_id.like(f"{text}%"))
    found = connection.execute(statement.order_by(_r.run_id).limit(4)).scalars().all()
    if not found:
        raise not_found
    if len(found) > 1:
        listed = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")  # noqa: PLR2004 - three are shown
        raise LedgerError(f"several runs begin with {run_id!r}: {listed}; give more characters")
    return str(found[0])


def _events(connection: Connection, run_id: str, after: Mapping[int, int]) -> tuple[EventRow, ...]:
    """Read by stream, since in each numbers are given under a lock: a late commit cannot hide behind a higher one."""
    columns = (events.c.node_id, events.c.n, events.c.kind, events.c.data, events.c.at, events.c.position)
    statement = select(*columns).where(events.c.run_id == run_id).order_by(events.c.node_id, events.c.n)
    streams: dict[int, list[RowMapping]] = {}
    for part in [None] if not after else chunks(_ahead(connection, run_id, after)):
        wanted = statement if part is None else statement.where(events.c.node_id.in_(part))
        for row in connection.execute(wanted).mappings():
            if row["n"] > after.get(row["node_id"], 0):
                streams.setdefault(row["node_id"], []).append(row)
    # Merged and not sorted: whatever the clock did, the order within a stream is that of its numbers.
    merged = heapq.merge(*streams.values(), key=lambda row: (row["at"], row["position"]))
    return tuple(_event_row(row) for row in merged)


def _ahead(connection: Connection, run_id: str, after: Mapping[int, int]) -> list[int]:
    """Return the streams that have more events than a reader has."""
    of_run = select(literal(RUN_STREAM).label("stream"), _r.event_count).where(_r.run_id == run_id)
    of_nodes = select(_n.node_id.label("stream"), _n.event_count).where(_n.run_id == run_id)
    rows = connection.execute(union_all(of_run, of_nodes))
    return [stream for stream, count in rows if count > after.get(stream, 0)]


def _event_row(row: RowMapping) -> EventRow:
    event = event_from_text(row["kind"], row["data"])
    return EventRow(node_id=row["node_id"], n=row["n"], at=row["at"], event=event)


def _run_row(row: RowMapping) -> RunRow:
    return RunRow(
        run=run_from(row),
        tenant_id=row["tenant_id"],
        graph=row["graph_name"],
        schedule=row["schedule"],
        content_hash=row["content_hash"],
        idempotency_key=row["idempotency_key"],
        submitted_by=row["submitted_by"],
        sent=row["sent"],
        row_version=row["row_version"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        changed_at=row["changed_at"],
        finished_at=row["finished_at"],
    )


def _node_row(row: RowMapping) -> NodeRow:
    return NodeRow(
        node=node_from(row),
        task=row["task"],
        verify=row["verify"],
        owner=row["owner"],
        queue=row["queue"],
        planned_wave=row["planned_wave"],
        worker=row["worker"],
        output=output_from(row) if row["state"] == NodeState.SUCCEEDED.value else None,
        summary=row["summary"],
        missing_inputs=mapping_from_text(row["missing_inputs"]),
        verify_result=row["verify_result"],
        implemented=keys_from_text(row["implemented"]),
        not_before=row["not_before"],
        queued_at=row["queued_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        changed_at=row["changed_at"],
        finished_at=row["finished_at"],
    )


def _attempt_row(row: RowMapping) -> AttemptRow:
    return AttemptRow(
        node_id=row["node_id"],
        key=row["key"],
        attempt=row["attempt"],
        kind=AttemptKind(row["kind"]),
        status=row["status"],
        delivery=row["delivery"],
        worker=row["worker"],
        task_id=row["task_id"],
        claimed_at=row["claimed_at"],
        settled_at=row["settled_at"],
        error_type=row["error_type"],
        error=row["error"],
        traceback=row["traceback"],
        subgraph_hash=row["subgraph_hash"],
        summary=row["summary"],
        output=output_from(row),
        evolution=None if row["evolution"] is None else request_from_text(row["evolution"]),
    )


def _evolution_row(row: RowMapping) -> EvolutionRow:
    changes: dict[str, Any] = json.loads(row["changes"])
    return EvolutionRow(
        node_id=row["node_id"],
        key=row["key"],
        number=row["number"],
        original=spec_from_text(row["original"]),
        evolved=spec_from_text(row["evolved"]),
        added=tuple(changes.get("added", ())),
        added_edges=tuple((head, tail) for head, tail in changes.get("added_edges", ())),
        removed_edges=tuple((head, tail) for head, tail in changes.get("removed_edges", ())),
        moved=tuple((key, before, after) for key, before, after in changes.get("moved", ())),
        asked_by=row["asked_by"],
        reason=row["reason"],
        refused=row["refused"],
        at=row["at"],
    )
