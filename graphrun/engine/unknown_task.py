"""What a worker does with a node whose task it does not know: it hands the attempt back (§3.6, H2).

Celery drops such a message, and its chord then waits for ever. A worker of another release, or one that was started
with other ``--tasks``, is no reason to fail a node: it is sent again until a worker that knows its task takes it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from graphrun.engine.message import NodeMessage
from graphrun.errors import RunNotFoundError

if TYPE_CHECKING:
    from graphrun.engine.app import Engine

log = logging.getLogger("graphrun.worker")


def hand_back_unknown(
    engine: Engine, sender: Any = None, message: Any = None, name: str | None = None, **_kwargs: Any
) -> None:
    """Answer Celery's ``task_unknown``; a message that is no node's is nobody's business here."""
    if getattr(sender, "app", None) is not engine.app:
        return
    try:
        node = NodeMessage.from_args(tuple(message.payload[0]))
    except (LookupError, TypeError, ValueError):
        return
    pause = engine.settings.sweep_grace_seconds
    try:
        waits = engine.main_coordinator().hand_back(node, after_seconds=pause)
    except RunNotFoundError:
        return  # of another ledger
    except Exception:
        # This is the process that consumes messages: it must not end, whatever the database says.
        log.exception("run %s node %d: task %s is unknown here and could not be handed back", *node[:2], name)
        return
    if waits:
        log.warning("run %s node %d: this worker has no task %s; sent again in %g s", *node[:2], name, pause)
