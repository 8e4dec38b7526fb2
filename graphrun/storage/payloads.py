"""Where large outputs are kept: SQL blobs by default, any fsspec URL otherwise; addressed by their SHA-256 (§3.8).

Nothing is truncated and nothing is overwritten: the same content has the same address. It knows no run.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, Protocol
from uuid import uuid4

from sqlalchemy import Connection, select

from graphrun.errors import LedgerError, PayloadTooLargeError
from graphrun.storage.columns import insert_unless_there
from graphrun.storage.database import Database
from graphrun.storage.tables import payloads

DEFAULT_LIMIT_BYTES: Final = 256 * 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Payloads(Protocol):
    """A store of immutable bytes."""

    def put(self, content: bytes, *, connection: Connection | None = None) -> str:
        """Store bytes and return their address.

        Args:
            content: what to store; storing it again does nothing.
            connection: an open transaction to join, where the store is in the same database.

        Raises:
            PayloadTooLargeError: over the limit; nothing was stored.
        """

    def get(self, digest: str, *, connection: Connection | None = None) -> bytes:
        """Return stored bytes, read in an open transaction where that is given and the store is in its database.

        Raises:
            LedgerError: not an address, nothing there, or not what was stored.
        """


def payload_store(url: str | None, database: Database, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Payloads:
    """Return the store for a setting: blobs of the database when there is no URL."""
    return FsspecPayloads(url, limit_bytes=limit_bytes) if url else SqlPayloads(database, limit_bytes=limit_bytes)


class SqlPayloads:
    """Blobs in the ledger's database."""

    def __init__(self, database: Database, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._database = database
        self._limit = limit_bytes

    def put(self, content: bytes, *, connection: Connection | None = None) -> str:
        """Store bytes; see :class:`Payloads`."""
        digest = _address(content, self._limit)
        row = {"digest": digest, "size": len(content), "content": content}
        if connection is not None:
            insert_unless_there(connection, payloads, row)
        else:
            self._database.run_write(lambda writing: insert_unless_there(writing, payloads, row))
        return digest

    def get(self, digest: str, *, connection: Connection | None = None) -> bytes:
        """Return stored bytes; see :class:`Payloads`."""
        statement = select(payloads.c.content).where(payloads.c.digest == _checked(digest))

        def read(reading: Connection) -> bytes | None:
            content: bytes | None = reading.execute(statement).scalar_one_or_none()
            return content

        return _verified(digest, self._database.run_read(read) if connection is None else read(connection))


class FsspecPayloads:
    """Files under any URL that fsspec opens, such as ``file:///var/lib/graphrun`` or ``s3://bucket/prefix``."""

    def __init__(self, url: str, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        import fsspec  # noqa: PLC0415 - only who keeps payloads in files pays for the import

        self._files: Any
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._limit = limit_bytes

    def put(self, content: bytes, *, connection: Connection | None = None) -> str:  # noqa: ARG002 - files join no transaction
        """Store bytes; see :class:`Payloads`."""
        digest = _address(content, self._limit)
        path = self._path(digest)
        if self._files.exists(path):
            return digest
        self._files.makedirs(self._files._parent(path), exist_ok=True)  # noqa: SLF001 - fsspec has no public name for it
        # Written aside and moved: a reader never sees half of a file, and two writers of one content agree.
        aside = f"{path}.{uuid4().hex}"
        self._files.pipe_file(aside, content)
        self._files.mv(aside, path)
        return digest

    def get(self, digest: str, *, connection: Connection | None = None) -> bytes:  # noqa: ARG002 - files join no transaction
        """Return stored bytes; see :class:`Payloads`."""
        path = self._path(_checked(digest))
        try:
            content: bytes | None = self._files.cat_file(path)
        except FileNotFoundError:
            content = None
        return _verified(digest, content)

    def _path(self, digest: str) -> str:
        return f"{self._root.rstrip('/')}/{digest[:2]}/{digest}"


def digest_of(content: bytes) -> str:
    """Return the address of bytes."""
    return hashlib.sha256(content).hexdigest()


def _address(content: bytes, limit: int) -> str:
    if len(content) > limit:
        raise PayloadTooLargeError(
            f"an output of {len(content)} bytes is over the limit of {limit} bytes (setting payload_limit_bytes)"
        )
    return digest_of(content)


def _checked(digest: str) -> str:
    # An address becomes a path: nothing but a hash may pass.
    if _DIGEST.fullmatch(digest) is None:
        raise LedgerError(f"{digest!r} is not the address of a payload: it takes 64 hexadecimal characters")
    return digest


def _verified(digest: str, content: bytes | None) -> bytes:
    if content is None:
        raise LedgerError(f"payload {digest} is not in the store; was it written with another payload_url?")
    if digest_of(content) != digest:
        raise LedgerError(f"payload {digest} is damaged: its content has another hash")
    return content
