"""Outputs of nodes: small ones inline in their row, larger ones in the payload store (§3.8)."""

from __future__ import annotations

from sqlalchemy import Connection

from graphrun.storage.payloads import Payloads, digest_of
from graphrun.storage.records import OutputRef


class Outputs:
    """Stores and loads encoded outputs."""

    def __init__(self, payloads: Payloads, inline_limit_bytes: int) -> None:
        self._payloads = payloads
        self._inline_limit = inline_limit_bytes

    def store(self, text: str, *, connection: Connection | None = None) -> OutputRef:
        """Return where an encoded output is; writes it to the payload store when it is over the inline limit.

        Raises:
            PayloadTooLargeError: over the store's limit.
        """
        content = text.encode()
        if len(content) <= self._inline_limit:
            return OutputRef(digest=digest_of(content), size=len(content), inline=text)
        digest = self._payloads.put(content, connection=connection)
        return OutputRef(digest=digest, size=len(content))

    def load(self, reference: OutputRef, *, connection: Connection | None = None) -> str:
        """Return an encoded output."""
        if reference.inline is not None:
            return reference.inline
        return self._payloads.get(reference.digest, connection=connection).decode()
