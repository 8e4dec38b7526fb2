"""§3.5: what is locked how on PostgreSQL, read from the statements: the run first, FOR NO KEY UPDATE, claims FOR SHARE.

That a lock is missing shows only under load, if at all: the counts of events make such a decision again. SQLite has one
lock, taken at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event

from graphrun.storage.ledger import Ledger


@pytest.fixture
def statements(ledger: Ledger) -> Iterator[list[str]]:
    """The statements that were sent to PostgreSQL, as they come."""
    if ledger.database.is_sqlite:
        pytest.skip("SQLite locks the whole file")
    sent: list[str] = []

    def keep(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(" ".join(statement.split()))

    event.listen(ledger.database.engine, "before_cursor_execute", keep)
    yield sent
    event.remove(ledger.database.engine, "before_cursor_execute", keep)


def _writes(statements: list[str]) -> list[int]:
    return [number for number, text in enumerate(statements) if text.startswith(("UPDATE", "INSERT", "DELETE"))]


def test_a_gate_locks_the_run_before_it_reads_or_writes_anything_else(driver: Any, statements: list[str]) -> None:
    run_id = driver.submit(driver.graph("a")).run_id
    run = driver.run(run_id)
    statements.clear()
    driver.gate(run_id)
    locks = [number for number, text in enumerate(statements) if text.endswith("FOR NO KEY UPDATE")]
    assert "FROM runs" in statements[locks[0]]
    assert locks[0] < min(_writes(statements))
    assert not any(text.endswith("FOR UPDATE") for text in statements)
    assert run.run_id == run_id


def test_a_claim_shares_the_run_so_that_no_gate_and_no_pause_is_under_way(driver: Any, statements: list[str]) -> None:
    run_id = driver.start(driver.graph("a"))
    statements.clear()
    driver.claim(run_id, 0)
    shared = [number for number, text in enumerate(statements) if text.endswith("FOR SHARE")]
    assert len(shared) == 1
    assert "FROM runs" in statements[shared[0]]
    assert shared[0] < min(_writes(statements))


def test_a_settle_that_changes_the_run_locks_it_before_the_node(driver: Any, statements: list[str]) -> None:
    """A failure for good is noted on the run: locked after the node, a gate would deadlock with it."""
    run_id = driver.start(driver.graph({"key": "a", "policy": {"max_attempts": 1}}))
    driver.claim(run_id, 0)
    statements.clear()
    driver.settle(run_id, 0, status="failed", error="no")
    locks = [number for number, text in enumerate(statements) if text.endswith("FOR NO KEY UPDATE")]
    assert locks
    assert "FROM runs" in statements[locks[0]]
    assert locks[0] < min(_writes(statements))


def test_writing_transactions_are_read_committed(ledger: Ledger, statements: list[str]) -> None:
    with ledger.database.write() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar_one() == "read committed"
    assert statements
