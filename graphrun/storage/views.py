"""Loading the part of a run that a gate needs (§3.12): joined by wave, so no list of ids travels. It only reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, select

from graphrun.errors import ExpressionError
from graphrun.execution.run import EdgeRun, EvolutionRequest, NodeRun, Run, RunView, Structure
from graphrun.execution.state import Awaiting, NodeState
from graphrun.model.expression import compile_expression
from graphrun.storage.columns import chunks
from graphrun.storage.documents import request_from_text
from graphrun.storage.rows import CURRENT_SPEC, EDGE_COLUMNS, NODE_COLUMNS, edge_from, node_from
from graphrun.storage.tables import attempts, edge_runs, node_runs, node_specs

_n = node_runs.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A view, and the count of events of each of its nodes."""

    view: RunView
    node_events: Mapping[int, int]


def load_view(connection: Connection, run: Run) -> Loaded:
    """Read what a gate of a run decides on."""
    near = _nodes(connection, _n.run_id == run.run_id, _n.wave.in_((run.wave, run.wave + 1)))
    inbound = _inbound(connection, run)
    rows = near | _heads(connection, run)
    nodes = {node_id: node_from(row) for node_id, row in rows.items()}
    requests = _requests(connection, run, nodes)
    structure = None
    if requests:
        rows = _nodes(connection, _n.run_id == run.run_id)
        structure = Structure(
            nodes={node_id: node_from(row) for node_id, row in rows.items()}, edges=_all_edges(connection, run.run_id)
        )
    view = RunView(
        run=run,
        nodes=nodes,
        inbound=inbound,
        params=_params(connection, run.run_id, nodes, inbound),
        requests=requests,
        structure=structure,
    )
    return Loaded(view=view, node_events={node_id: row["event_count"] for node_id, row in rows.items()})


def current_document(connection: Connection, run_id: str, node_id: int) -> str:
    """Return the spec that a node runs now, as JSON."""
    statement = select(node_specs.c.document).where(node_specs.c.run_id == run_id, node_specs.c.node_id == node_id)
    document: str = connection.execute(statement.order_by(node_specs.c.evolution.desc()).limit(1)).scalar_one()
    return document


def _nodes(connection: Connection, *conditions: ColumnElement[bool]) -> dict[int, RowMapping]:
    statement = select(*NODE_COLUMNS, _n.event_count).where(*conditions).order_by(_n.node_id)
    return {row["node_id"]: row for row in connection.execute(statement).mappings()}


def _inbound(connection: Connection, run: Run) -> dict[int, tuple[EdgeRun, ...]]:
    statement = (
        select(*EDGE_COLUMNS)
        .join(node_runs, and_(_n.run_id == edge_runs.c.run_id, _n.node_id == edge_runs.c.tail))
        .where(_n.run_id == run.run_id, _n.wave == run.wave + 1)
        .order_by(edge_runs.c.edge_id)
    )
    inbound: dict[int, list[EdgeRun]] = {}
    for row in connection.execute(statement).mappings():
        inbound.setdefault(row["tail"], []).append(edge_from(row))
    return {tail: tuple(edges) for tail, edges in inbound.items()}


def _heads(connection: Connection, run: Run) -> dict[int, RowMapping]:
    """Read the heads of edges into the next wave that stand before the open one."""
    if run.wave < 1:
        return {}
    tails = node_runs.alias("tails")
    heads = (
        select(edge_runs.c.head)
        .join(tails, and_(tails.c.run_id == edge_runs.c.run_id, tails.c.node_id == edge_runs.c.tail))
        .where(edge_runs.c.run_id == run.run_id, tails.c.wave == run.wave + 1)
    )
    return _nodes(connection, _n.run_id == run.run_id, _n.wave < run.wave, _n.node_id.in_(heads))


def _all_edges(connection: Connection, run_id: str) -> dict[int, EdgeRun]:
    statement = select(*EDGE_COLUMNS).where(edge_runs.c.run_id == run_id).order_by(edge_runs.c.edge_id)
    return {row["edge_id"]: edge_from(row) for row in connection.execute(statement).mappings()}


def _requests(connection: Connection, run: Run, nodes: Mapping[int, NodeRun]) -> dict[int, EvolutionRequest]:
    if all(node.awaiting is not Awaiting.EVOLUTION for node in nodes.values()):
        return {}
    statement = (
        select(attempts.c.node_id, attempts.c.evolution)
        .join(
            node_runs,
            and_(
                _n.run_id == attempts.c.run_id,
                _n.node_id == attempts.c.node_id,
                _n.attempt == attempts.c.attempt,
            ),
        )
        .where(
            _n.run_id == run.run_id,
            _n.wave == run.wave,
            _n.awaiting == Awaiting.EVOLUTION.value,
            attempts.c.status == "evolved",
            attempts.c.evolution.is_not(None),
        )
        .order_by(attempts.c.node_id)
    )
    return {node_id: request_from_text(text) for node_id, text in connection.execute(statement)}


def _params(
    connection: Connection,
    run_id: str,
    nodes: Mapping[int, NodeRun],
    inbound: Mapping[int, Iterable[EdgeRun]],
) -> dict[int, Mapping[str, Any]]:
    """Read the parameters of heads that did not succeed and whose condition on ``status`` reads them (X3)."""
    wanted = sorted(
        {
            edge.head
            for edges in inbound.values()
            for edge in edges
            if edge.when is not None
            and edge.head in nodes
            and nodes[edge.head].state is not NodeState.SUCCEEDED
            and _reads_status_and_params(edge.when)
        }
    )
    params: dict[int, Mapping[str, Any]] = {}
    for part in chunks(wanted):
        statement = (
            select(node_specs.c.node_id, node_specs.c.document)
            .join(node_runs, CURRENT_SPEC)
            .where(_n.run_id == run_id, _n.node_id.in_(part))
        )
        for node_id, text in connection.execute(statement):
            params[node_id] = json.loads(text).get("params", {})
    return params


def _reads_status_and_params(when: str) -> bool:
    try:
        return {"status", "params"} <= compile_expression(when).names
    except ExpressionError:
        return False
