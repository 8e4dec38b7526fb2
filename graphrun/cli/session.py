"""Opening what a command works with: settings, database, client. The only place where the command line builds them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphrun.client import Client
from graphrun.errors import LedgerError
from graphrun.settings import Settings, masked
from graphrun.storage.database import Database
from graphrun.storage.migrate import ensure_ready
from graphrun.storage.records import NodeRow

LOCAL_DIRECTORY = Path(".graphrun")


def settings_of(database: str | None) -> Settings:
    """Return the settings, with the database that the command names."""
    return Settings.load(database_url=database)


def open_client(database: str | None) -> Client:
    """Return a client that may submit; a SQLite file that is not there yet is made."""
    return Client(settings_of(database))


def open_reader(database: str | None) -> Client:
    """Return a client for a command that only reads.

    Raises:
        LedgerError: the SQLite file is not there; reading makes none.
    """
    settings = settings_of(database)
    opened = Database(settings.database_url)
    is_new = opened.is_new_file()
    opened.dispose()
    if is_new:
        raise LedgerError(f"no database at {masked(settings.database_url)}: no run was ever kept there{_local_hint()}")
    return Client(settings)


def _local_hint() -> str:
    """Return where the runs of ``run --local`` are, each of which has a database of its own; the newest is named."""
    files = sorted(LOCAL_DIRECTORY.glob("*.db"), key=lambda file: file.stat().st_mtime)
    if not files:
        return ""
    return f"; the last of {len(files)} local runs is kept in sqlite:///{files[-1]}: say --database with it"


def open_database(database: str | None) -> Database:
    """Return the database alone, whatever its schema."""
    return Database(settings_of(database).database_url)


def wanted_by(nodes: Iterable[NodeRow], settings: Settings) -> list[tuple[str, str]]:
    """Return the queue and the task of each node, as a worker has to serve and to know them."""
    return [(node.queue or settings.queue, node.task) for node in nodes]


def require_schema(database: str | None) -> Settings:
    """Return the settings once the ledger's schema is known to be this graphrun's; a new SQLite file is made.

    Nothing stays open: whoever calls this is about to fork.

    Raises:
        SchemaVersionError: the database is older or newer than this graphrun, or has no schema.
    """
    settings = settings_of(database)
    opened = Database(settings.database_url, null_pool=True)
    ensure_ready(opened)
    opened.dispose()
    return settings
