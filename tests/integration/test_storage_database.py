from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.exc import DBAPIError, OperationalError

from graphrun.errors import LedgerUnavailableError
from graphrun.execution.run import planned_node
from graphrun.model.spec import GraphSpec, NodeSpec
from graphrun.storage.database import ConcurrentChangeError, Database, is_transient
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import upgrade
from graphrun.storage.records import Submission

# Newer Pythons warn of what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

TENANT = "acme"
PROCESSES = 8
SUBMITS = 15


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'graphrun.db'}"
    database = Database(address)
    upgrade(database)
    database.dispose()
    return address


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.dispose()


def _submission() -> Submission:
    spec = GraphSpec(name="g", nodes=(NodeSpec(key="a", task="work"),))
    return Submission(
        run_id=str(uuid4()),
        tenant_id=TENANT,
        spec=spec,
        nodes=(planned_node(0, spec.nodes[0], wave=1),),
        edges=(),
        waves=1,
        content_hash=spec.content_hash,
        token=uuid4().hex,
    )


def _submit_many(url: str) -> None:
    database = Database(url)
    ledger = Ledger(database)
    for _ in range(SUBMITS):
        ledger.submit(_submission())
    database.dispose()


def test_eight_processes_write_to_one_sqlite_file_without_a_lock_error(url: str, database: Database) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_submit_many, args=(url,)) for _ in range(PROCESSES)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * PROCESSES
    assert len(Ledger(database).runs(tenant_id=TENANT, limit=1_000)) == PROCESSES * SUBMITS


def test_sqlite_is_opened_as_the_design_says(database: Database) -> None:
    with database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 30_000, "synchronous": 1}


def test_a_writing_transaction_takes_the_lock_at_its_beginning_and_a_reading_one_does_not(
    database: Database, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "graphrun.db", timeout=0, isolation_level=None)
    with database.read():
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    with database.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()


def test_a_lock_that_outlasts_the_busy_timeout_is_waited_for_again(database: Database, tmp_path: Path) -> None:
    ledger = Ledger(database)
    with database.read() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=1")
    holder = sqlite3.connect(tmp_path / "graphrun.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    released = threading.Timer(0.3, holder.rollback)
    released.start()
    assert ledger.submit(_submission()).created
    released.join()
    holder.close()


def test_an_exception_rolls_back(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(text("CREATE TABLE leftover (x INTEGER)"))
        raise ZeroDivisionError
    with database.read() as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'leftover'").all()
    assert tables == []


def test_a_child_never_inherits_a_transaction_of_another_thread(url: str) -> None:
    database = Database(url, null_pool=True)
    ledger = Ledger(database)
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            ledger.submit(_submission())

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    children = []
    try:
        for _ in range(10):
            child = os.fork()  # the prefork pool of a worker, while its sweeper writes
            if child == 0:
                code = 1
                try:
                    Ledger(Database(url)).submit(_submission())
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    finally:
        stop.set()
        sweeper.join()
        database.dispose()
    assert codes == [0] * 10


def test_a_fork_waits_for_the_transaction_that_is_open(url: str) -> None:
    database = Database(url, null_pool=True)
    entered, forked = threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        with database.write():
            entered.set()
            forked.wait(0.3)
            order.append("committed")

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0)
    order.append("forked")
    forked.set()
    os.waitpid(child, 0)
    thread.join()
    assert order == ["committed", "forked"]


def test_a_child_of_a_pooled_parent_uses_connections_of_its_own(database: Database) -> None:
    with database.read() as connection:
        connection.execute(text("SELECT 1"))
    assert database.engine.pool.checkedin() == 1  # type: ignore[attr-defined]
    child = os.fork()
    if child == 0:
        os._exit(database.engine.pool.checkedin())  # type: ignore[attr-defined]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert database.engine.pool.checkedin() == 1  # type: ignore[attr-defined]


def test_a_database_without_a_pool_keeps_no_connection_open(url: str) -> None:
    assert isinstance(Database(url, null_pool=True).engine.pool, NullPool)


def test_a_database_in_memory_is_one_for_all_threads() -> None:
    database = Database("sqlite://")
    upgrade(database)
    ledger = Ledger(database)
    threads = [threading.Thread(target=ledger.submit, args=(_submission(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.runs(tenant_id=TENANT)) == 8
    database.dispose()


def test_a_new_file_is_told_from_one_with_tables(url: str, tmp_path: Path) -> None:
    assert Database(f"sqlite:///{tmp_path / 'none.db'}").is_new_file()
    assert not Database(url).is_new_file()
    assert not Database("sqlite://").is_new_file()


@pytest.mark.parametrize(
    ("original", "transient"),
    [
        (psycopg.errors.DeadlockDetected(), True),
        (psycopg.errors.SerializationFailure(), True),
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.errors.UniqueViolation(), False),
        (psycopg.errors.CheckViolation(), False),
        (psycopg.errors.DiskFull(), False),
        (sqlite3.OperationalError("no code"), False),
    ],
)
def test_only_faults_that_may_pass_are_tried_again(original: Exception, transient: bool) -> None:
    assert is_transient(OperationalError("statement", {}, original)) is transient


def test_a_lost_connection_and_a_changed_row_are_tried_again() -> None:
    assert is_transient(DBAPIError("statement", {}, Exception(), connection_invalidated=True))
    assert is_transient(ConcurrentChangeError())
    assert not is_transient(ValueError())


def test_retries_are_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    tries = []

    def write(_connection: object) -> None:
        tries.append(1)
        raise ConcurrentChangeError("a row changed")

    with pytest.raises(LedgerUnavailableError, match=r"graphrun\.db does not answer: a row changed"):
        database.run_write(write)
    assert len(tries) == 10
