"""Ctrl-C and its kin: the first one ends the command in order, further ones do not disturb the ending."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """A signal asked the command to end; the exit code is the one that a shell expects after it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into ``Interrupted``; ignore what follows until the block is left."""

    def first(number: int, _frame: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(number)

    before = {one: signal.signal(one, first) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
