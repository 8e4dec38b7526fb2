"""One database, SQLite or PostgreSQL: how transactions begin, what is retried, what a fork may inherit.

It knows no table. SQLite runs in WAL with ``synchronous=NORMAL``: a power cut may lose the last commits, a crash of the
process none, and no commit waits for the disk. Whoever cannot lose them uses PostgreSQL.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, NullPool, StaticPool, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from graphrun.errors import LedgerError, LedgerUnavailableError

T = TypeVar("T")

BUSY_TIMEOUT_MS = 30_000
_WRITING = "graphrun_writing"
_SQLITE_BUSY_OR_LOCKED = frozenset({5, 6})
# Deadlock, serialization failure, lock not available; the server shuts down, crashed, or starts up.
_TRANSIENT_STATES = frozenset({"40P01", "40001", "55P03", "57P01", "57P02", "57P03"})
_CONNECTION_LOST = "08"


class ConcurrentChangeError(Exception):
    """A row is no longer as this transaction read it; the transaction is rolled back and tried again."""


def is_transient(error: BaseException) -> bool:
    """Say whether the same transaction may succeed when it is tried again."""
    if isinstance(error, ConcurrentChangeError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    original = error.orig
    code = getattr(original, "sqlite_errorcode", None)
    if code is not None:
        return (int(code) & 0xFF) in _SQLITE_BUSY_OR_LOCKED
    state = getattr(original, "sqlstate", None)
    if state is not None:
        return state in _TRANSIENT_STATES or state.startswith(_CONNECTION_LOST)
    # psycopg gives no state when it could not speak to the server at all; sqlite3 always gives a code.
    return isinstance(error, (OperationalError, InterfaceError)) and type(original).__module__.startswith("psycopg")


def retrying(url: URL) -> Retrying:
    """Return the one way to repeat a transaction: jittered, bounded, transient faults only.

    It gives up with ``LedgerUnavailableError``; any other fault goes on as it came.
    """

    def give_up(state: RetryCallState) -> NoReturn:
        error = state.outcome.exception() if state.outcome else None
        why = error.orig if isinstance(error, DBAPIError) else error
        where = url.render_as_string(hide_password=True)
        raise LedgerUnavailableError(f"database {where} does not answer: {why}; check database_url") from error

    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(10),
        wait=wait_random_exponential(multiplier=0.05, max=3),
        retry_error_callback=give_up,
    )


class Database:
    """One database. Thread safe; transactions of one thread do not nest.

    Args:
        url: ``sqlite:///file`` or ``postgresql+psycopg://…``.
        echo: print every statement.
        null_pool: for the main process of a prefork worker: no connection stays open between transactions, and no fork
            happens while one is (§3.7).
    """

    def __init__(self, url: str, *, echo: bool = False, null_pool: bool = False) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        in_memory = self.is_sqlite and self.url.database in (None, "", ":memory:")
        self._serialised = null_pool or in_memory
        self._lock = threading.RLock()
        options: dict[str, Any] = {"echo": echo}
        if in_memory:
            options |= {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
        elif null_pool:
            options["poolclass"] = NullPool
        if not self.is_sqlite:
            options["isolation_level"] = "READ COMMITTED"
        try:
            self.engine = create_engine(self.url, **options)
        except ModuleNotFoundError as error:
            where = self.url.render_as_string(hide_password=True)
            raise LedgerError(
                f"database {where} needs the driver {error.name}: pip install 'graphrun[postgres]', and begin the URL "
                "with postgresql+psycopg://"
            ) from error
        if self.is_sqlite:
            _prepare_sqlite(self.engine)
        self._writing = self.engine.execution_options(**{_WRITING: True})
        # Under READ COMMITTED each statement sees a state of its own, in a transaction or not: two round trips saved.
        self._reading = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        _databases.add(self)

    def is_new_file(self) -> bool:
        """Say whether this is a SQLite file that is not there yet, or has nothing in it."""
        if not self.is_sqlite or not self.url.database or self.url.database == ":memory:":
            return False
        path = Path(self.url.database)
        return not path.exists() or path.stat().st_size == 0

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a writing transaction, committed at the end and rolled back by an exception."""
        with self._exclusive(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading: one snapshot on SQLite, one a statement on PostgreSQL."""
        with self._exclusive(), self._reading.begin() as connection:
            yield connection

    def run_read(self, function: Callable[[Connection], T]) -> T:
        """Call a function that only reads, again when a transient fault ended it."""

        def once() -> T:
            with self.read() as connection:
                return function(connection)

        return retrying(self.url)(once)

    def run_write(self, function: Callable[[Connection], T]) -> T:
        """Call a function that writes what may be written twice, again when a transient fault ended it.

        What may not be written twice goes through ``writing.Writer``.
        """

        def once() -> T:
            with self.write() as connection:
                return function(connection)

        return retrying(self.url)(once)

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    def dispose_after_fork(self) -> None:
        """Forget the parent's connections without closing them; a fork does this by itself."""
        self._lock = threading.RLock()
        self.engine.dispose(close=False)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self._serialised:
            yield
            return
        with self._lock:
            yield

    def _before_fork(self) -> None:
        if self._serialised:
            self._lock.acquire()

    def _after_fork_in_parent(self) -> None:
        if self._serialised:
            self._lock.release()


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connect(dbapi_connection: Any, _record: object) -> None:
        # The driver's own BEGIN is DEFERRED and late; ours is issued below.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A DEFERRED transaction that comes to write fails at once when another one wrote meanwhile.
        writing = connection.get_execution_options().get(_WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


# Hooks of a fork cannot be taken back, so there is one set for the process, over the databases that are alive. A child
# that was forked inside a transaction would inherit SQLite's lock with it (§3.7).
_databases: WeakSet[Database] = WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    for database in list(_databases):
        database._before_fork()  # noqa: SLF001 - the process-wide half of the same class
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop()._after_fork_in_parent()  # noqa: SLF001 - the process-wide half of the same class


def _after_fork_in_child() -> None:
    while _held:
        _held.pop().dispose_after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
