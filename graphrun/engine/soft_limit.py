"""Where a soft time limit may land: inside the body of a node, and nowhere else (X15).

Celery's pool raises the limit from a signal handler, wherever the child's main thread stands by then: in a claim, in a
settle, or after it, where a chord's member would raise (H3). Blocking the signal would not do: another thread, one that
a body left behind for instance, takes it, and Python runs the handler in the main thread all the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNAL = getattr(signal, "SIGUSR1", None)


class _Limit:
    """The handler while a node runs: it hands the signal on inside the body, and keeps it before and drops it after."""

    def __init__(self, handler: Any) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = handler if callable(handler) else None
        self._in_body = False
        self._passed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._in_body and self._handler is not None:
            self._handler(number, frame)
        else:
            self._passed = True

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let the limit through; one that has passed already lands at once."""
        self._in_body = True
        try:
            if self._passed and self._handler is not None and _SIGNAL is not None:
                self._handler(_SIGNAL, None)
            yield
        finally:
            self._in_body = False


_current: _Limit | None = None  # one node at a time runs in the main thread of a child


@contextmanager
def soft_limit_held_back() -> Iterator[None]:
    """Keep the soft limit out of everything but what is inside :func:`soft_limit_allowed`."""
    global _current  # noqa: PLW0603 - signal handlers belong to the process
    if _SIGNAL is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(_SIGNAL)
    _current = _Limit(before)
    signal.signal(_SIGNAL, _current)
    try:
        yield
    finally:
        signal.signal(_SIGNAL, before)
        _current = None


@contextmanager
def soft_limit_allowed() -> Iterator[None]:
    """Let the soft limit reach a node's body."""
    if _current is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _current.allowed():
        yield
