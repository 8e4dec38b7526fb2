"""Who serves: the workers that answer, the queues they consume and the tasks they know.

It asks the workers through the broker and reads no SQL; a worker that is busy starting or ending may not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from celery import Celery

from graphrun.engine.message import COMMAND_TASK


@dataclass(frozen=True, slots=True)
class Attendance:
    """What the workers that answered say of themselves."""

    workers: tuple[str, ...]
    queues: frozenset[str]
    tasks: frozenset[str]

    def missing(self, wanted: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield what no worker that answered can do, each once, as a sentence and its remedy.

        Args:
            wanted: (queue, task name) of nodes; a task of no name asks for the queue alone.
        """
        known: set[str] = set()
        for queue, task in wanted:
            if queue not in self.queues and queue not in known:
                yield f"no worker serves queue {queue}", f"graphrun worker --queues {queue}"
            name = COMMAND_TASK if task.startswith("$ ") else task
            if name and name not in self.tasks and name not in known:
                yield f"no worker knows task {name}", "start a worker with the module that defines it: --tasks MODULE"
            known.update((queue, name))


def attendance(app: Celery, *, seconds: float) -> Attendance:
    """Ask every worker; each of the two questions waits ``seconds`` for answers."""
    asked = app.control.inspect(timeout=seconds)
    served = asked.active_queues() or {}
    if not served:
        return Attendance((), frozenset(), frozenset())
    known = asked.registered() or {}
    return Attendance(
        workers=tuple(sorted(served)),
        queues=frozenset(queue["name"] for queues in served.values() for queue in queues),
        tasks=frozenset(text.partition(" ")[0] for names in known.values() for text in names),
    )
