"""Waiting for a database that does not answer: what a node has done is not lost because SQL is away for a while (§3.4).

A child may not return to Celery before its attempt is settled or fenced, so there is no bound here: the hard time limit
of the node, and the end of its process, are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from graphrun.errors import LedgerUnavailableError

log = logging.getLogger("graphrun.attempt")

T = TypeVar("T")

_LONGEST_PAUSE_SECONDS = 5.0


def until_answered(ask: Callable[[], T]) -> T:
    """Return what the ledger answers, asking again for as long as the database is away."""
    pause = 0.5
    while True:
        try:
            return ask()
        except LedgerUnavailableError as error:
            log.warning("%s; asking again in %g s", error, pause)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
