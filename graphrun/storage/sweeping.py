"""What is still to be sent, and what stands still: the questions of dispatcher and sweeper (§3.7).

Ages are told by the database's clock. It sends nothing and decides nothing; what it hands out is claimed and decided
once like anything else, so handing it out twice does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, or_, select, update

from graphrun.execution.run import AttemptKind, Run
from graphrun.execution.state import NodeState, RunState
from graphrun.storage.columns import chunks, now
from graphrun.storage.database import Database
from graphrun.storage.documents import policy_from_text
from graphrun.storage.records import Dispatch, Unsent
from graphrun.storage.rows import IS_SENDABLE, RUN_COLUMNS, is_open, run_from
from graphrun.storage.tables import node_runs, runs

_r, _n = runs.c, node_runs.c
_DUE_AGAIN_SECONDS = 60.0


class Sweeping:
    """Finds what to send."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dispatches(self, run_id: str, node_ids: Sequence[int]) -> tuple[Dispatch, ...]:
        """Return what the messages of nodes need; see ``Ledger.dispatches``."""
        found = self._database.run_read(lambda reading: _dispatches(reading, run_id, node_ids))
        return tuple(found[node_id] for node_id in node_ids if node_id in found)

    def queued(self, run_id: str) -> tuple[int, ...]:
        """Return the nodes of the open round that nobody has claimed; see ``Ledger.queued``."""

        def read(reading: Connection) -> tuple[int, ...]:
            statement = (
                select(_n.node_id)
                .join(runs, _r.run_id == _n.run_id)
                .where(_n.run_id == run_id, _n.wave == _r.wave, IS_SENDABLE, _is_due(reading))
                .order_by(_n.node_id)
            )
            return tuple(reading.execute(statement).scalars())

        return self._database.run_read(read)

    def mark_sent(self, run_id: str, token: str) -> None:
        """Note that a round was sent; see ``Ledger.mark_sent``."""
        statement = update(runs).where(_r.run_id == run_id, _r.sent_token == token).values(sent=True)
        self._database.run_write(lambda writing: writing.execute(statement).rowcount)

    def unsent(self, older_than_seconds: float, limit: int) -> tuple[Unsent, ...]:
        """Return rounds that are not known to be sent; see ``Ledger.unsent``."""

        def read(reading: Connection) -> tuple[Unsent, ...]:
            statement = (
                select(*RUN_COLUMNS, _r.sent_token)
                .where(_r.state == RunState.RUNNING.value, _r.sent.is_(False), _older(reading, older_than_seconds))
                .order_by(_r.changed_at)
                .limit(limit)
            )
            rows = reading.execute(statement).mappings().all()
            return tuple(Unsent(run=run_from(row), token=row["sent_token"]) for row in rows)

        return self._database.run_read(read)

    def created(self, older_than_seconds: float, limit: int) -> tuple[Run, ...]:
        """Return runs that were submitted and not started; see ``Ledger.created``."""

        def read(reading: Connection) -> tuple[Run, ...]:
            statement = (
                select(*RUN_COLUMNS)
                .where(_r.state == RunState.CREATED.value, _older(reading, older_than_seconds))
                .order_by(_r.changed_at)
                .limit(limit)
            )
            return tuple(run_from(row) for row in reading.execute(statement).mappings())

        return self._database.run_read(read)

    def stalled_gates(self, older_than_seconds: float, limit: int) -> tuple[tuple[str, int, int, int], ...]:
        """Return gates that should have fired; see ``Ledger.stalled_gates``."""
        # Asked first, as for nodes that are due: usually there is none.
        if not self._database.run_read(
            lambda reading: reading.execute(_stalled(now(reading), older_than_seconds).limit(1)).first()
        ):
            return ()
        return self._database.run_write(lambda writing: _take_stalled(writing, older_than_seconds, limit))

    def hand_back(self, run_id: str, node_id: int, attempt: int, *, after_seconds: float) -> bool:
        """Let an attempt that nobody took be sent again; see ``Ledger.hand_back``."""

        def write(writing: Connection) -> int:
            at = now(writing) + timedelta(seconds=after_seconds)
            which = and_(_n.run_id == run_id, _n.node_id == node_id, _n.attempt == attempt, IS_SENDABLE)
            return writing.execute(update(node_runs).where(which).values(not_before=at, sent_at=None)).rowcount

        return bool(self._database.run_write(write))

    def due_nodes(self, limit: int) -> tuple[tuple[Run, int], ...]:
        """Hand out nodes whose backoff is over; see ``Ledger.due_nodes``."""
        # Asked first: usually nothing is due, and a write would take SQLite's only lock at every sweep.
        if not self._database.run_read(lambda reading: reading.execute(_due(now(reading)).limit(1)).first()):
            return ()
        return self._database.run_write(lambda writing: _take_due(writing, limit))


def _older(connection: Connection, seconds: float) -> ColumnElement[bool]:
    return _r.changed_at <= now(connection) - timedelta(seconds=seconds)


def _is_due(connection: Connection) -> ColumnElement[bool]:
    return or_(_n.not_before.is_(None), _n.not_before <= now(connection))


def _stalled(at: datetime, older_than_seconds: float) -> Select[Any]:
    """Ask for rounds without an open node whose gate nobody called, or called and lost (X8)."""
    still = at - timedelta(seconds=older_than_seconds)
    busy = exists().where(_n.run_id == _r.run_id, _n.wave == _r.wave, or_(is_open(_n), _n.changed_at > still))
    again = at - timedelta(seconds=_DUE_AGAIN_SECONDS)
    sent = and_(_r.gate_sent_at >= _r.changed_at, _r.gate_sent_at > again)
    return (
        select(_r.run_id, _r.revision, _r.wave, _r.round)
        .where(_r.state == RunState.RUNNING.value, _r.changed_at <= still, ~busy)
        .where(or_(_r.gate_sent_at.is_(None), ~sent))
        .order_by(_r.changed_at)
    )


def _take_stalled(connection: Connection, seconds: float, limit: int) -> tuple[tuple[str, int, int, int], ...]:
    """Take gates for sending: a queue that is slow must not be filled with the same gate at every sweep."""
    at = now(connection)
    taken = _stalled(at, seconds).limit(limit).with_for_update(of=runs, skip_locked=True, key_share=True)
    rows = connection.execute(taken).all()
    for row in rows:
        connection.execute(update(runs).where(_r.run_id == row.run_id).values(gate_sent_at=at))
    return tuple((row.run_id, row.revision, row.wave, row.round) for row in rows)


def _due(at: datetime) -> Select[Any]:
    again = at - timedelta(seconds=_DUE_AGAIN_SECONDS)
    return (
        select(*RUN_COLUMNS, _n.node_id)
        .join(runs, _r.run_id == _n.run_id)
        .where(
            IS_SENDABLE,
            _n.not_before.is_not(None),
            _n.not_before <= at,
            or_(_n.sent_at.is_(None), _n.sent_at <= again),
            _r.state == RunState.RUNNING.value,
        )
        .order_by(_n.not_before, _n.run_id, _n.node_id)
    )


def _take_due(connection: Connection, limit: int) -> tuple[tuple[Run, int], ...]:
    """Take due nodes for sending, so that the next sweep does not send them again at once."""
    at = now(connection)
    taken = _due(at).limit(limit).with_for_update(of=node_runs, skip_locked=True)
    rows = connection.execute(taken).mappings().all()
    for row in rows:
        which = and_(_n.run_id == row["run_id"], _n.node_id == row["node_id"])
        connection.execute(update(node_runs).where(which).values(sent_at=at))
    return tuple((run_from(row), row["node_id"]) for row in rows)


def _dispatches(connection: Connection, run_id: str, node_ids: Sequence[int]) -> dict[int, Dispatch]:
    found: dict[int, Dispatch] = {}
    columns = (_n.node_id, _n.key, _n.task, _n.verify, _n.state, _n.attempt, _n.queue, _n.policy)
    for part in chunks(node_ids):
        statement = select(*columns).where(_n.run_id == run_id, _n.node_id.in_(part), IS_SENDABLE)
        for row in connection.execute(statement):
            policy = policy_from_text(row.policy)
            verifies = row.state == NodeState.WAITING.value
            found[row.node_id] = Dispatch(
                node_id=row.node_id,
                key=row.key,
                task=row.verify if verifies else row.task,
                kind=AttemptKind.VERIFY if verifies else AttemptKind.BODY,
                attempt=row.attempt,
                queue=row.queue,
                priority=policy.priority,
                timeout_seconds=policy.timeout_seconds,
                soft_timeout_seconds=policy.soft_timeout_seconds,
            )
    return found
