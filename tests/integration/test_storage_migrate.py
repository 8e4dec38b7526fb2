from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import inspect, text

from graphrun.errors import LedgerError, SchemaVersionError
from graphrun.storage.database import Database
from graphrun.storage.migrate import _config, current, ensure_ready, head, require_current, upgrade
from graphrun.storage.tables import metadata


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'deep' / 'down' / 'graphrun.db'}")
    yield opened
    opened.dispose()


def test_an_upgrade_makes_directory_file_and_schema(database: Database) -> None:
    upgrade(database)
    assert current(database) == head()
    require_current(database)


def test_an_upgrade_of_a_current_database_changes_nothing(database: Database) -> None:
    upgrade(database)
    upgrade(database)
    assert current(database) == head()


def test_a_database_without_a_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    assert current(database) is None
    with pytest.raises(SchemaVersionError, match="has no graphrun schema; run: graphrun db upgrade"):
        require_current(database)


def test_a_newer_database_is_refused(database: Database) -> None:
    upgrade(database)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for refuse in (require_current, upgrade):
        with pytest.raises(SchemaVersionError, match=r"9999, which this graphrun \(0001\) does not know: it is newer"):
            refuse(database)


def test_several_upgrades_at_once_are_one(database: Database) -> None:
    upgrade_errors: list[BaseException] = []

    def run() -> None:
        try:
            upgrade(database)
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's finding
            upgrade_errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert upgrade_errors == []
    assert current(database) == head()


def test_a_downgrade_takes_every_table_away(database: Database) -> None:
    upgrade(database)
    config = _config()
    with database.write() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    with database.read() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]


def test_the_conditions_of_the_migrations_are_those_of_the_tables(database: Database, tmp_path: Path) -> None:
    upgrade(database)
    fresh = Database(f"sqlite:///{tmp_path / 'fresh.db'}")
    with fresh.write() as connection:
        metadata.create_all(connection)
    with database.read() as migrated, fresh.read() as made:
        for table in metadata.tables:
            found = {item["name"]: item["sqltext"] for item in inspect(migrated).get_check_constraints(table)}
            wanted = {item["name"]: item["sqltext"] for item in inspect(made).get_check_constraints(table)}
            assert found == wanted, table
    fresh.dispose()


def test_a_file_that_holds_nothing_is_made_ready_and_a_stranger_is_not(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    ensure_ready(database)
    assert current(database) == head()
    strange = Database(f"sqlite:///{tmp_path / 'strange.db'}")
    with strange.write() as connection:
        connection.execute(text("CREATE TABLE theirs (x INTEGER)"))
    with pytest.raises(SchemaVersionError, match="has no graphrun schema"):
        ensure_ready(strange)


@pytest.mark.parametrize(
    ("name", "content"), [("junk.db", b"this is no database " * 60), ("none/such/directory/graphrun.db", None)]
)
def test_a_database_that_cannot_be_opened_is_named_with_the_remedy(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    else:
        (tmp_path / "none").write_text("a file where a directory is wanted")
    with pytest.raises(LedgerError, match="cannot be opened"):
        ensure_ready(Database(f"sqlite:///{file}"))
