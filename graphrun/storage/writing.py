"""How the engine writes: once, though a commit may happen and then raise (§3.3).

Every write carries a token made before it. After any error the ledger is read again, and the own token there means that
the write happened. It knows no table; each role says how its token is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from graphrun.errors import GraphrunError
from graphrun.storage.database import ConcurrentChangeError, Database, retrying

T = TypeVar("T")


class Writer:
    """Writes to one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, write: Callable[[Connection], T], landed: Callable[[Connection], T | None]) -> T:
        """Carry out a write exactly once.

        Args:
            write: writes in the transaction it is given, and returns the result. It must itself find its own token
                under the locks it takes: a commit whose answer was lost may still be on its way when it is repeated.
            landed: reads whether the token of this write is there; returns the write's result, or None.

        Raises:
            GraphrunError: the write was refused; nothing was written.
            LedgerUnavailableError: the database did not answer; nothing was written, as far as can be read.
            sqlalchemy.exc.DBAPIError: a fault that no repetition mends; nothing was written.
        """

        def once() -> T:
            try:
                with self._database.write() as connection:
                    return write(connection)
            except (GraphrunError, ConcurrentChangeError):
                raise
            except Exception:
                found = self._database.run_read(landed)
                if found is None:
                    raise
                return found

        return retrying(self._database.url)(once)
