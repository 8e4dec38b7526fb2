"""Claiming: a delivery takes an attempt by one conditional write (§3.3), and reads what the attempt needs.

Whether the attempt may start is the planner's word (promise 4); here it is made true under concurrency: the run row is
held FOR SHARE, so that no gate, pause or cancel is under way, and the node row changes only as it was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from graphrun.execution.event import Claimed
from graphrun.execution.planner import advance
from graphrun.execution.run import AttemptKind, EdgeRun, NodeRun, RunView
from graphrun.execution.state import NodeState, RunState
from graphrun.storage.database import ConcurrentChangeError, Database
from graphrun.storage.documents import spec_from_text
from graphrun.storage.recording import Basis, Marks, write_decision
from graphrun.storage.records import Claim, ClaimAbsent, ClaimLost, ClaimResult, InputEdge, OutputRef
from graphrun.storage.rows import (
    CURRENT_SPEC,
    EDGE_COLUMNS,
    OUTPUT_COLUMNS,
    STORED_NODE_COLUMNS,
    StoredNode,
    StoredRun,
    edge_from,
    output_from,
    read_run,
    share_run,
    stored_node_from,
)
from graphrun.storage.tables import edge_runs, node_runs, node_specs
from graphrun.storage.writing import Writer


class Claims:
    """Hands attempts to deliveries."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def claim(self, run_id: str, fact: Claimed, *, token: str, task_id: str, revision: int) -> ClaimResult:
        """Take an attempt; see ``Ledger.claim``."""

        def write(connection: Connection) -> ClaimResult:
            return _claim(connection, run_id, fact, token=token, task_id=task_id, revision=revision)

        def landed(connection: Connection) -> ClaimResult | None:
            run, found = read_run(connection, run_id), _find(connection, run_id, fact.node_id)
            if run is None or found is None or found.node.claim_token != token:
                return None
            return found.won(run, fact.kind)

        try:
            return self._writer.run(write, landed)
        except ConcurrentChangeError:
            return ClaimLost(reason="the row changed at every try")

    def inputs(self, run_id: str, node_id: int) -> tuple[InputEdge, ...]:
        """Return the inbound edges of a node in declared order; see ``Ledger.inputs``."""
        columns = (*EDGE_COLUMNS, node_runs.c.key, node_runs.c.state, *OUTPUT_COLUMNS)
        statement = (
            select(*columns)
            .join(node_runs, (node_runs.c.run_id == edge_runs.c.run_id) & (node_runs.c.node_id == edge_runs.c.head))
            .where(edge_runs.c.run_id == run_id, edge_runs.c.tail == node_id)
            .order_by(edge_runs.c.edge_id)
        )
        rows = self._database.run_read(lambda reading: reading.execute(statement).mappings().all())
        return tuple(_input_edge(row) for row in rows)

    def outbound(self, run_id: str, node_id: int) -> tuple[EdgeRun, ...]:
        """Return the edges out of a node that have a condition; see ``Ledger.outbound``."""
        statement = (
            select(*EDGE_COLUMNS)
            .where(edge_runs.c.run_id == run_id, edge_runs.c.head == node_id, edge_runs.c.condition.is_not(None))
            .order_by(edge_runs.c.edge_id)
        )
        rows = self._database.run_read(lambda reading: reading.execute(statement).mappings().all())
        return tuple(edge_from(row) for row in rows)


def _input_edge(row: RowMapping) -> InputEdge:
    # What a node left that then failed its verification is never delivered (X5, X16).
    output = output_from(row) if row["state"] == NodeState.SUCCEEDED.value else None
    return InputEdge(edge=edge_from(row), head_key=row["key"], output=output)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The node of a claim, with the spec that it runs and the output that a verification checks."""

    node: StoredNode
    document: str
    output: OutputRef | None

    def won(self, run: StoredRun, kind: AttemptKind, after: NodeRun | None = None) -> Claim:
        return Claim(
            node=after or self.node.node,
            spec=spec_from_text(self.document),
            run=run.run,
            tenant_id=run.tenant_id,
            node_output=self.output if kind is AttemptKind.VERIFY else None,
        )


def _find(connection: Connection, run_id: str, node_id: int) -> _Found | None:
    statement = (
        select(*STORED_NODE_COLUMNS, node_specs.c.document, *OUTPUT_COLUMNS)
        .join(node_specs, CURRENT_SPEC)
        .where(node_runs.c.run_id == run_id, node_runs.c.node_id == node_id)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        return None
    return _Found(node=stored_node_from(row), document=row["document"], output=output_from(row))


def _claim(
    connection: Connection, run_id: str, fact: Claimed, *, token: str, task_id: str, revision: int
) -> ClaimResult:
    run = share_run(connection, run_id)
    found = None if run is None else _find(connection, run_id, fact.node_id)
    if run is None or found is None:
        return ClaimAbsent()
    node = found.node
    if node.claim_token == token:
        return found.won(run, fact.kind)
    if (reason := _hindrance(run, node, fact, revision)) is not None:
        return ClaimLost(reason=reason)
    decision = advance(RunView(run=run.run, nodes={fact.node_id: node.node}), fact)
    if not decision.events:
        return ClaimLost(reason=f"the node is {node.node.state}")
    marks = {"claim_token": token, "claim_task_id": task_id, "started_at": node.started_at or run.now}
    # Two claims that both read "queued": the second waits for the first's row lock, finds the count of events changed,
    # and starts again to read who has it.
    basis = Basis(run=run, node_events={fact.node_id: node.event_count})
    write_decision(connection, basis, decision, Marks(nodes={fact.node_id: marks}))
    return found.won(run, fact.kind, decision.nodes[0])


def _hindrance(run: StoredRun, node: StoredNode, fact: Claimed, revision: int) -> str | None:
    """Return why a delivery may not have the attempt, for the log; the planner decides the same without words."""
    if run.run.state is not RunState.RUNNING:
        return f"the run is {run.run.state}"
    if run.run.revision != revision:
        return f"the run is at revision {run.run.revision}"
    if node.node.attempt != fact.attempt:
        return f"the node is at attempt {node.node.attempt}"
    if node.claim_token is not None:
        return f"claimed by {node.worker}"
    if node.not_before is not None and node.not_before > run.now:
        return f"not before {node.not_before.isoformat()}"
    return None
