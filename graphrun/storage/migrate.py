"""Bringing a database to the schema of this graphrun. It knows no table; the revisions are in ``migrations``."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, inspect, select
from sqlalchemy.exc import DatabaseError

from graphrun.errors import LedgerError, SchemaVersionError
from graphrun.storage.database import Database

_SCRIPTS = "graphrun.storage:migrations"
# Any number will do, as long as every graphrun takes the same one.
_UPGRADE_LOCK = 6_072_114_503


def upgrade(database: Database) -> None:
    """Bring the schema up to date, in one transaction; several callers at once wait for each other.

    The directory of a SQLite file is made when it is missing.

    Raises:
        SchemaVersionError: the database is newer than this graphrun.
    """
    if database.is_sqlite and database.url.database:
        Path(database.url.database).parent.mkdir(parents=True, exist_ok=True)
    config = _config()
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
        stands = MigrationContext.configure(connection).get_current_revision()
        if stands is not None:
            _require_known(stands)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current(database: Database) -> str | None:
    """Return the revision that a database is at; None when it has no schema."""
    return database.run_read(lambda connection: MigrationContext.configure(connection).get_current_revision())


def head() -> str:
    """Return the revision that this graphrun needs."""
    newest = _scripts().get_current_head()
    if newest is None:
        raise SchemaVersionError("this installation of graphrun has no migrations; install it again")
    return newest


def require_current(database: Database) -> None:
    """Refuse a database whose schema is not that of this graphrun.

    Raises:
        SchemaVersionError: it is older, newer, or has no schema; the message says what to do.
    """
    stands, needed = current(database), head()
    if stands == needed:
        return
    where = database.url.render_as_string(hide_password=True)
    if stands is None:
        raise SchemaVersionError(f"database {where} has no graphrun schema; run: graphrun db upgrade")
    _require_known(stands)
    raise SchemaVersionError(
        f"database {where} is at schema {stands}, this graphrun needs {needed}; run: graphrun db upgrade"
    )


def ensure_ready(database: Database) -> None:
    """Make the schema in a SQLite file that holds nothing yet, and refuse any other database that is not current.

    Nobody else could have prepared a file that is not there; a database server is somebody's, who runs the upgrade.

    Raises:
        SchemaVersionError: it is older or newer than this graphrun, or has no schema.
        LedgerError: it cannot be opened.
    """
    try:
        _make_or_require(database)
    except (DatabaseError, OSError) as error:
        where = database.url.render_as_string(hide_password=True)
        why = error.orig if isinstance(error, DatabaseError) else error.strerror
        raise LedgerError(f"database {where} cannot be opened: {why}; check database_url") from error


def _make_or_require(database: Database) -> None:
    if database.is_sqlite and (database.is_new_file() or not database.run_read(_table_names)):
        upgrade(database)
    require_current(database)


def _table_names(connection: Connection) -> list[str]:
    names: list[str] = inspect(connection).get_table_names()
    return names


def is_known(stands: str | None) -> bool:
    """Say whether this graphrun has the revision that a database is at; none at all is where every one begins."""
    return stands is None or stands in {script.revision for script in _scripts().walk_revisions()}


def _require_known(stands: str) -> None:
    if not is_known(stands):
        raise SchemaVersionError(
            f"the database is at schema {stands}, which this graphrun ({head()}) does not know: it is newer, or of "
            "another program; upgrade graphrun, or give another database"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", _SCRIPTS)
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
