"""Knowing that a node's body is running here: it must not wait for another node (§3.9, O26)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from graphrun.errors import EngineError

_NODE: ContextVar[str | None] = ContextVar("graphrun_node", default=None)


@contextmanager
def node_running(key: str) -> Iterator[None]:
    """Mark the body of a node as running in this context."""
    token = _NODE.set(key)
    try:
        yield
    finally:
        _NODE.reset(token)


def require_outside_of_a_node(what: str) -> None:
    """Refuse what would block a worker's slot.

    Raises:
        EngineError: a node's body is running here.
    """
    key = _NODE.get()
    if key is not None:
        raise EngineError(f"node {key!r} may not {what}: it would hold the slot that the run needs; return its id")
