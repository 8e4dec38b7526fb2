"""Submitting: run, nodes, edges and the delegated graph in one transaction, once for an idempotency key (X17).

It sends nothing and compiles nothing. Inside a caller's transaction it neither commits nor retries (O25).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from graphrun.errors import IdempotencyConflictError, LedgerError
from graphrun.execution.event import NodeSucceeded
from graphrun.execution.run import NodeRun
from graphrun.execution.state import TERMINAL_NODE
from graphrun.storage.columns import insert_unless_there, now
from graphrun.storage.documents import graph_to_text
from graphrun.storage.outputs import Outputs
from graphrun.storage.recording import event_row, insert_edges, insert_nodes, insert_rows
from graphrun.storage.records import OutputRef, Submission, Submitted
from graphrun.storage.rows import output_values
from graphrun.storage.tables import events, graph_specs, runs
from graphrun.storage.writing import Writer

_KEY_CHARACTERS = 500
_TENANT_CHARACTERS = 100


class Submissions:
    """Writes submitted graphs."""

    def __init__(self, writer: Writer, outputs: Outputs) -> None:
        self._writer = writer
        self._outputs = outputs

    def submit(self, submission: Submission, *, connection: Connection | None = None) -> Submitted:
        """Write a run as ``created``; see ``Ledger.submit``."""
        _check_names(submission)
        if connection is not None:
            return self._write(connection, submission, self._stored(submission, connection))
        # Large outputs are written before and outside: the transaction stays short.
        outputs = self._stored(submission, None)
        return self._writer.run(
            lambda writing: self._write(writing, submission, outputs),
            lambda reading: _landed(reading, submission),
        )

    def _stored(self, submission: Submission, connection: Connection | None) -> dict[int, OutputRef]:
        given = submission.outputs.items()
        return {node_id: self._outputs.store(text, connection=connection) for node_id, text in given}

    def _write(self, connection: Connection, submission: Submission, outputs: Mapping[int, OutputRef]) -> Submitted:
        at = now(connection)
        if not insert_unless_there(connection, runs, _run_row(submission, at)):
            return _existing(connection, submission)
        run_id = submission.run_id
        insert_rows(connection, graph_specs, [{"run_id": run_id, "document": graph_to_text(submission.spec)}])
        extra = {node.node_id: _done_before(node, outputs, at) for node in submission.nodes}
        insert_nodes(connection, run_id, submission.nodes, submission.spec.nodes, now=at, planned=True, extra=extra)
        insert_edges(connection, run_id, submission.edges)
        done = [
            NodeSucceeded(node_id=node.node_id, attempt=0, pre_done=True) for node in submission.nodes if node.pre_done
        ]
        log = [event_row(run_id, event, n=1, position=position, at=at) for position, event in enumerate(done)]
        insert_rows(connection, events, log)
        return Submitted(run_id=run_id, created=True)


def _check_names(submission: Submission) -> None:
    for what, text, most in (
        ("tenant id", submission.tenant_id, _TENANT_CHARACTERS),
        ("idempotency key", submission.idempotency_key, _KEY_CHARACTERS),
    ):
        if text is None:
            continue
        if not isinstance(text, str):
            raise LedgerError(f"the {what} is a text, not {text!r}")
        if not 0 < len(text) <= most:
            raise LedgerError(f"the {what} has {len(text)} characters; it takes 1 to {most}")
        if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise LedgerError(f"the {what} {text!r} has a NUL or a lone surrogate, which no database stores")


def _run_row(submission: Submission, at: datetime) -> dict[str, Any]:
    settings = submission.spec.settings
    return {
        "run_id": submission.run_id,
        "tenant_id": submission.tenant_id,
        "graph_name": submission.spec.name,
        "content_hash": submission.content_hash,
        "idempotency_key": submission.idempotency_key,
        "submitted_by": submission.submitted_by,
        "submit_token": submission.token,
        "waves": submission.waves,
        "failure_policy": settings.failure_policy,
        "schedule": settings.schedule,
        "created_at": at,
        "changed_at": at,
    }


def _done_before(node: NodeRun, outputs: Mapping[int, OutputRef], at: datetime) -> dict[str, Any]:
    """Return the columns of a node that is done before its run starts; nothing but NULLs for another (X10)."""
    finished = node.state in TERMINAL_NODE
    return {
        "finished_at": at if finished else None,
        "event_count": 1 if node.pre_done else 0,
        **output_values(outputs.get(node.node_id)),
    }


def _landed(connection: Connection, submission: Submission) -> Submitted | None:
    statement = select(runs.c.submit_token).where(runs.c.run_id == submission.run_id)
    if connection.execute(statement).scalar_one_or_none() != submission.token:
        return None
    return Submitted(run_id=submission.run_id, created=True)


def _existing(connection: Connection, submission: Submission) -> Submitted:
    """Say what stood in the way: this very submission, an earlier one with its key, or a strange run with its id."""
    if (landed := _landed(connection, submission)) is not None:
        return landed
    key = submission.idempotency_key
    statement = select(runs.c.run_id, runs.c.content_hash).where(
        runs.c.tenant_id == submission.tenant_id, runs.c.idempotency_key == key
    )
    earlier = None if key is None else connection.execute(statement).one_or_none()
    if earlier is None:
        raise LedgerError(f"run id {submission.run_id} is taken; every submission makes a new one")
    if earlier.content_hash != submission.content_hash:
        raise IdempotencyConflictError(
            f"idempotency key {key!r} was used for run {earlier.run_id} of another graph; "
            "use a new key, or submit the same graph"
        )
    return Submitted(run_id=earlier.run_id, created=False)
