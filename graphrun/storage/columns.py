"""Column types and small SQL that read the same on SQLite and PostgreSQL; no table and no connection lives here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    String,
    Table,
    Text,
    TypeDecorator,
    func,
    literal,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

# SQLite before 3.32 allows 999 variables in a statement.
CHUNK = 500


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time on every database; SQLite keeps it as text without a zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time: it would be read as another one elsewhere."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; the ledger stores aware times")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class Prose(TypeDecorator[str]):
    """Text for people. What no database stores, NUL and lone surrogates, is written as an escape (O23)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Escape what cannot be stored."""
        return prose(value)


def identifier(length: int) -> String:
    """Return a type for identifiers, compared byte by byte so that a prefix search uses the index."""
    plain: String = String(length)
    return plain.with_variant(String(length, collation="C"), "postgresql")


def prose(text: str | None) -> str | None:
    """Return a text that every database stores and that reads back equal."""
    if text is None:
        return None
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def key_digest(key: str) -> str:
    """Return 32 hexadecimal characters that stand for a node key in indexes.

    A key of 1,000 characters has up to 4,000 bytes, and an index row of PostgreSQL holds 2,704.
    """
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def now(connection: Connection) -> datetime:
    """Return the database's clock (§3.10). SQLite runs in this process: its clock is ours."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = connection.execute(select(clock(connection))).scalar_one()
    return moment


def clock(connection: Connection) -> ColumnElement[datetime]:
    """Return the database's clock as a column, to be read along with a row."""
    if connection.dialect.name == "sqlite":
        return literal(datetime.now(UTC), UtcTime())
    return func.clock_timestamp(type_=UtcTime())


def insert_unless_there(connection: Connection, table: Table, values: dict[str, Any]) -> bool:
    """Insert one row; return False, changing nothing, when a unique constraint already has it.

    PostgreSQL waits for a concurrent transaction that holds the same key, and leaves the transaction usable.
    """
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    # What comes back tells more surely than a count of rows, which drivers give for some inserts only.
    statement = insert(table).values(values).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement).first() is not None


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces that one statement takes."""
    return (items[start : start + size] for start in range(0, len(items), size))
