"""Settling: the end of an attempt, recorded once and fenced by its claim (§3.4, promise 2).

Three doors lead here: the worker that holds the claim's token, the parent process that knows the delivery's task id,
and a lost delivery. What follows from the end is the planner's word. No gate is sent from here; the result says when
the caller has to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, exists, select

from graphrun.errors import RunNotFoundError
from graphrun.execution.command import Decision
from graphrun.execution.event import DeliveryLost, Settled
from graphrun.execution.planner import advance
from graphrun.execution.run import AttemptKind, Run, RunView, Truth
from graphrun.execution.state import Awaiting, NodeState
from graphrun.storage.columns import insert_unless_there, prose
from graphrun.storage.database import Database
from graphrun.storage.documents import keys_to_text, mapping_to_text, request_to_text
from graphrun.storage.outputs import Outputs
from graphrun.storage.recording import Basis, Marks, write_decision, write_truths
from graphrun.storage.records import AttemptRecord, LostResult, OutputRef, SettleResult
from graphrun.storage.rows import (
    RUN_COLUMNS,
    StoredNode,
    StoredRun,
    is_open,
    lock_run,
    output_values,
    read_node,
    read_run,
    run_from,
)
from graphrun.storage.tables import attempts, node_runs, runs
from graphrun.storage.writing import Writer

log = logging.getLogger("graphrun.ledger")

_NOTHING = AttemptRecord()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """One end of an attempt, on its way to the ledger. ``holds`` says whether the claim is still the one that ends."""

    run_id: str
    fact: Settled | DeliveryLost
    writer: str
    holds: Callable[[StoredNode], bool]
    kept_when_refused: bool
    record: AttemptRecord = _NOTHING
    output: OutputRef | None = None
    truths: Mapping[int, Truth] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return self.fact.status if isinstance(self.fact, Settled) else "lost"


class Settlements:
    """Records the ends of attempts."""

    def __init__(self, database: Database, writer: Writer, outputs: Outputs) -> None:
        self._database = database
        self._writer = writer
        self._outputs = outputs

    def settle(
        self, run_id: str, fact: Settled, *, token: str, record: AttemptRecord, truths: Mapping[int, Truth]
    ) -> SettleResult:
        """Record an outcome under a claim token; see ``Ledger.settle``."""
        ending = _Ending(
            run_id=run_id,
            fact=_readable(fact),
            writer=token,
            holds=lambda node: node.claim_token == token,
            kept_when_refused=True,
            record=record,
            output=self._stored(record),
            truths=truths,
        )
        return self._settled(ending)

    def settle_for(
        self, run_id: str, fact: Settled, *, task_id: str, writer: str, record: AttemptRecord
    ) -> SettleResult:
        """Record an outcome for a delivery that cannot; see ``Ledger.settle_for``."""
        ending = _Ending(
            run_id=run_id,
            fact=_readable(fact),
            writer=writer,
            holds=lambda node: node.claim_task_id == task_id and _claimed_for(node, fact.kind),
            kept_when_refused=False,
            record=record,
            output=self._stored(record),
        )
        return self._settled(ending)

    def lose(self, run_id: str, fact: DeliveryLost, *, task_id: str, writer: str) -> LostResult:
        """Record a lost delivery; see ``Ledger.lose_delivery``."""
        ending = _Ending(
            run_id=run_id,
            fact=replace(fact, reason=prose(fact.reason) or "lost"),
            writer=writer,
            holds=lambda node: node.claim_task_id == task_id,
            kept_when_refused=False,
            record=AttemptRecord(error=fact.reason),
        )
        accepted = self._end(ending)
        now = self._database.run_read(lambda reading: _standing(reading, ending, accepted=accepted))
        return LostResult(accepted=accepted, state=now.state, attempt=now.attempt, gate_due=now.gate_due, run=now.run)

    def _settled(self, ending: _Ending) -> SettleResult:
        accepted = self._end(ending)
        # Read after the commit: of two last settles at least one sees that no node is open any more.
        now = self._database.run_read(lambda reading: _standing(reading, ending, accepted=accepted))
        return SettleResult(accepted=accepted, state=now.state, gate_due=now.gate_due, run=now.run)

    def _stored(self, record: AttemptRecord) -> OutputRef | None:
        return self._outputs.store(record.output) if isinstance(record.output, str) else record.output

    def _end(self, ending: _Ending) -> bool:
        accepted = self._writer.run(lambda writing: _end(writing, ending), lambda reading: _landed(reading, ending))
        if not accepted:
            log.warning(
                "run %s node %d attempt %d: a %s outcome was refused, its claim is over",
                ending.run_id,
                ending.fact.node_id,
                ending.fact.attempt,
                ending.status,
            )
        return accepted


def _readable(fact: Settled) -> Settled:
    """Return the fact with texts that every database stores, so that log and rows stay equal (X18)."""
    return replace(fact, error_type=prose(fact.error_type), error=prose(fact.error))


def _claimed_for(node: StoredNode, kind: AttemptKind) -> bool:
    if kind is AttemptKind.VERIFY:
        return node.node.awaiting is Awaiting.VERDICT
    return node.node.state is NodeState.RUNNING


def _landed(connection: Connection, ending: _Ending) -> bool | None:
    status = connection.execute(
        select(attempts.c.status).where(
            attempts.c.run_id == ending.run_id,
            attempts.c.node_id == ending.fact.node_id,
            attempts.c.attempt == ending.fact.attempt,
            attempts.c.writer == ending.writer,
        )
    ).scalar_one_or_none()
    return None if status is None else status != "refused"


def _end(connection: Connection, ending: _Ending) -> bool:
    """Write the end of an attempt; False when its claim is over and somebody else decided."""
    run, node = _read(connection, ending)
    decision = _decide(run, node, ending)
    if decision is not None and decision.run != run.run:
        # The run row changes too: it is locked before the node is written, as everywhere, and all is read again.
        locked = lock_run(connection, ending.run_id)
        if locked is None:
            raise _absent(ending)
        run, node = locked, _read_node(connection, ending)
        decision = _decide(run, node, ending)
    if decision is None:
        if (landed := _landed(connection, ending)) is not None:
            return landed
        if ending.kept_when_refused:
            insert_unless_there(connection, attempts, _attempt_row(ending, run, node, "refused"))
        return False
    _write(connection, ending, run, node, decision)
    return True


def _read(connection: Connection, ending: _Ending) -> tuple[StoredRun, StoredNode]:
    run = read_run(connection, ending.run_id)
    if run is None:
        raise _absent(ending)
    return run, _read_node(connection, ending)


def _read_node(connection: Connection, ending: _Ending) -> StoredNode:
    node = read_node(connection, ending.run_id, ending.fact.node_id)
    if node is None:
        raise _absent(ending)
    return node


def _absent(ending: _Ending) -> RunNotFoundError:
    return RunNotFoundError(f"run {ending.run_id} has no node {ending.fact.node_id}")


def _decide(run: StoredRun, node: StoredNode, ending: _Ending) -> Decision | None:
    if not ending.holds(node):
        return None
    decision = advance(RunView(run=run.run, nodes={node.node.node_id: node.node}), ending.fact)
    return decision if decision.events else None


def _write(connection: Connection, ending: _Ending, run: StoredRun, node: StoredNode, decision: Decision) -> None:
    node_id = node.node.node_id
    basis = Basis(run=run, node_events={node_id: node.event_count})
    write_decision(connection, basis, decision, Marks(nodes={node_id: _node_marks(ending)}))
    connection.execute(attempts.insert().values(_attempt_row(ending, run, node, ending.status)))
    write_truths(connection, ending.run_id, ending.truths)


def _node_marks(ending: _Ending) -> dict[str, Any]:
    """Return what the outcome leaves on the node row; the outcome of an earlier attempt is overwritten."""
    record = ending.record
    if isinstance(ending.fact, DeliveryLost):
        return {}
    if ending.fact.kind is AttemptKind.VERIFY:
        return {"verify_result": record.verify_result}
    return {
        "summary": record.summary,
        "missing_inputs": mapping_to_text(record.missing_inputs),
        "implemented": keys_to_text(record.implemented),
        "verify_result": record.verify_result,
        **output_values(ending.output if ending.fact.status == "done" else None),
    }


def _attempt_row(ending: _Ending, run: StoredRun, node: StoredNode, status: str) -> dict[str, Any]:
    fact, record = ending.fact, ending.record
    held = status != "refused"  # a refused writer's claim is over; whose claim the row shows now is not its own
    return {
        "run_id": ending.run_id,
        "node_id": fact.node_id,
        "attempt": fact.attempt,
        "kind": _kind(ending, node).value,
        "writer": ending.writer,
        "status": status,
        "delivery": node.node.deliveries,
        "token": node.claim_token if held else ending.writer,
        "task_id": node.claim_task_id if held else None,
        "worker": node.worker if held else None,
        "claimed_at": node.claimed_at if held else None,
        "settled_at": run.now,
        "error_type": record.error_type,
        "error": record.error,
        "traceback": record.traceback,
        "subgraph_hash": record.subgraph_hash,
        "summary": record.summary,
        "evolution": None if record.evolution is None else request_to_text(record.evolution),
        **output_values(ending.output),
    }


def _kind(ending: _Ending, node: StoredNode) -> AttemptKind:
    if isinstance(ending.fact, Settled):
        return ending.fact.kind
    return AttemptKind.VERIFY if node.node.awaiting is Awaiting.VERDICT else AttemptKind.BODY


@dataclass(frozen=True, slots=True)
class _Standing:
    """Run and node after the commit, and whether the caller has to send the gate."""

    run: Run
    state: NodeState
    attempt: int
    gate_due: bool


def _standing(connection: Connection, ending: _Ending, *, accepted: bool) -> _Standing:
    others = node_runs.alias()
    any_open = exists().where(others.c.run_id == runs.c.run_id, others.c.wave == runs.c.wave, is_open(others.c))
    columns = (node_runs.c.state.label("node_state"), node_runs.c.attempt, any_open.label("any_open"))
    statement = (
        select(*RUN_COLUMNS, *columns)
        .join(node_runs, node_runs.c.run_id == runs.c.run_id)
        .where(runs.c.run_id == ending.run_id, node_runs.c.node_id == ending.fact.node_id)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise _absent(ending)
    run, state = run_from(row), NodeState(row["node_state"])
    due = accepted and (
        (run.failure_policy == "fail_fast" and state is NodeState.FAILED) or (run.direct_gate and not row["any_open"])
    )
    return _Standing(run, state, row["attempt"], gate_due=due)
