"""The Celery tasks of graphrun: one a registered function, under its own name, and the gate.

They translate between Celery and ``attempt``/``coordinator``. A member of a chord returns one word and never raises; a
delivery that lost its claim raises ``Ignore``, so that it is not counted beside the owner (H2, H3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery import Celery, Task
from celery.exceptions import Ignore, Reject

from graphrun.engine.attempt import ClaimLostError
from graphrun.engine.message import GATE_TASK, GateMessage, NodeMessage
from graphrun.engine.soft_limit import soft_limit_held_back
from graphrun.errors import EngineError, LedgerUnavailableError

if TYPE_CHECKING:
    from graphrun.engine.app import Engine

log = logging.getLogger("graphrun.worker")


class NodeTask(Task):
    """A node's Celery task; its options hold in any app, the user's own included (§3.11)."""

    abstract = True
    Request = "graphrun.engine.node_request:NodeRequest"
    acks_late = True
    acks_on_failure_or_timeout = True
    reject_on_worker_lost = False
    track_started = True
    ignore_result = False
    store_errors_even_if_ignored = False
    max_retries = 0
    typing = False

    def run(self, *args: Any) -> str:
        """Run one delivery of an attempt; return ``done``, ``failed`` or ``evolved``.

        Raises:
            Ignore: this delivery is not the owner of the attempt.
        """
        engine: Engine = self.app.graphrun
        message = NodeMessage.from_args(args)
        with soft_limit_held_back():
            runner = engine.runner()
            try:
                settlement = runner.run(message, task_id=self.request.id, invoke=self._invoke())
            except ClaimLostError as lost:
                raise Ignore(str(lost)) from lost
            result = settlement.result
            if result.gate_due:
                engine.dispatcher.send_gate(
                    GateMessage(message.run_id, result.run.revision, result.run.wave, result.run.round)
                )
            return settlement.status

    def _invoke(self) -> Any:
        return None


class GateTask(Task):
    """The body of every chord; called any number of times, it decides once."""

    name = GATE_TASK
    acks_late = True
    reject_on_worker_lost = True
    ignore_result = False
    max_retries = 0
    typing = False

    def run(self, run_id: str, revision: int, wave: int, number: int) -> str:
        """Call the gate; return the state of the run after it."""
        engine: Engine = self.app.graphrun
        try:
            run = engine.coordinator().gate(GateMessage(run_id, revision, wave, number))
        except LedgerUnavailableError as away:
            raise Reject(str(away), requeue=True) from away
        return run.state.value


def register(app: Celery, name: str, base: type[NodeTask] = NodeTask, **attributes: Any) -> None:
    """Register a node task under a function's name, unless the app has it already.

    Raises:
        EngineError: the app has a plain Celery task of that name, which would be lost.
    """
    known = app.tasks.get(name)
    if isinstance(known, NodeTask):
        return
    if known is not None:
        raise EngineError(f"the Celery app has a task {name!r} of its own: give the @task function another name=")
    app.register_task(type("NodeTask", (base,), {"name": name, "__module__": __name__, **attributes})())
