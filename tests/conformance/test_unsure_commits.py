"""Execute and raise: the commit happens, then the connection says that it failed (§3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from graphrun.execution.event import DeliveryLost, Settled
from graphrun.execution.run import AttemptKind
from graphrun.execution.state import NodeState, RunState
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import AttemptRecord, Claim

TENANT = "acme"


class Commits:
    """The driver's commit of one database, which can be told to raise, after it committed or instead."""

    def __init__(self, database: Database) -> None:
        self.failures = 0
        self.committing = True
        self._dialect = database.engine.dialect
        self._real: Callable[[Any], None] = self._dialect.do_commit
        self._error = self._dialect.dbapi.OperationalError  # type: ignore[union-attr]

    def __call__(self, connection: Any) -> None:
        if not self.failures:
            self._real(connection)
            return
        self.failures -= 1
        if self.committing:
            self._real(connection)
        raise self._error("the connection was lost")

    def fail(self, count: int = 1, *, committing: bool = True) -> None:
        self.failures = count
        self.committing = committing


@pytest.fixture
def commits(database: Database, monkeypatch: pytest.MonkeyPatch) -> Commits:
    commits = Commits(database)
    monkeypatch.setattr(database.engine.dialect, "do_commit", commits)
    return commits


def test_a_submit_that_landed_is_a_success(driver: Any, ledger: Ledger, commits: Commits) -> None:
    submission = driver.submission(driver.graph("a"), idempotency_key="k")
    commits.fail()
    assert ledger.submit(submission).created
    assert len(ledger.runs(tenant_id=TENANT)) == 1


def test_a_gate_that_landed_returns_the_decision_that_it_wrote(driver: Any, ledger: Ledger, commits: Commits) -> None:
    run_id = driver.submit(driver.graph("a")).run_id
    decided = []

    def decide(view: Any, now: Any) -> Any:
        from graphrun.execution.event import GateReached
        from graphrun.execution.planner import advance

        decided.append(advance(view, GateReached(revision=0, wave=0, round=0, now=now)))
        return decided[-1]

    commits.fail()
    decision = ledger.gate(run_id, decide, token=uuid4().hex)
    assert decision is decided[0]
    assert len(decided) == 1
    assert ledger.run(run_id, tenant_id=TENANT).row_version == 1


def test_a_claim_that_landed_is_won(driver: Any, commits: Commits) -> None:
    run_id = driver.start(driver.graph("a"))
    commits.fail()
    assert isinstance(driver.claim(run_id, 0), Claim)


def test_a_settle_that_landed_is_accepted_once(driver: Any, ledger: Ledger, commits: Commits) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0)
    commits.fail()
    assert driver.settle(run_id, 0, output="1").accepted
    assert len(ledger.attempts(run_id, tenant_id=TENANT)) == 1


def test_ends_reported_by_the_parent_that_landed_are_accepted(driver: Any, ledger: Ledger, commits: Commits) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0, task_id="t1")
    commits.fail()
    lost = ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    assert (lost.accepted, lost.state) == (True, NodeState.QUEUED)
    driver.claim(run_id, 0, task_id="t2")
    commits.fail()
    fact = Settled(node_id=0, attempt=1, kind=AttemptKind.BODY, status="failed", error="no", outside=True)
    assert ledger.settle_for(run_id, 0, task_id="t2", fact=fact, record=AttemptRecord(error="no")).accepted


def test_a_fault_that_lasts_is_raised_and_nothing_is_written(driver: Any, ledger: Ledger, commits: Commits) -> None:
    commits.fail(1, committing=False)
    if ledger.database.is_sqlite:
        # sqlite3 gives a code with each error of its own; one without is no reason to try again.
        with pytest.raises(OperationalError):
            driver.submit(driver.graph("a"))
        assert ledger.runs(tenant_id=TENANT) == ()
    else:
        assert driver.submit(driver.graph("a")).created


def test_connections_that_the_server_ended_are_replaced(driver: Any, ledger: Ledger) -> None:
    if ledger.database.is_sqlite:
        pytest.skip("SQLite has no server")
    run_id = driver.start(driver.graph("a"))
    admin = Database(ledger.database.url.render_as_string(hide_password=False), null_pool=True)
    end = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for step in (driver.claim, lambda run, node: driver.settle(run, node, output="1"), lambda run, _: driver.gate(run)):
        with admin.read() as connection:
            connection.execute(end)
        step(run_id, 0)
    assert driver.run(run_id).state is RunState.SUCCEEDED


def test_an_error_in_the_middle_of_a_transaction_leaves_nothing(
    driver: Any, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0)
    real = Connection.execute
    boom = RuntimeError("in between")

    def execute(connection: Connection, statement: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(connection, statement, *args, **kwargs)
        if str(statement).startswith("INSERT INTO attempts"):
            raise boom
        return result

    monkeypatch.setattr(Connection, "execute", execute)
    with pytest.raises(RuntimeError, match="in between"):
        driver.settle(run_id, 0, output="1")
    monkeypatch.undo()
    assert ledger.nodes(run_id, tenant_id=TENANT)[0].state is NodeState.RUNNING
    assert driver.settle(run_id, 0, output="1").accepted
