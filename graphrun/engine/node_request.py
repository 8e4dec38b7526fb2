"""What a worker's main process does when a child cannot: hard time limits, exits, deaths by signal (§3.6, X6, X15).

Celery calls these hooks in the process that consumes messages, after the child is gone. Each settles or re-queues first
and lets Celery go on afterwards.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from billiard.einfo import ExceptionWithTraceback
from billiard.exceptions import WorkerLostError
from celery.worker.request import Request

from graphrun.engine.message import GateMessage, NodeMessage
from graphrun.engine.patience import until_answered
from graphrun.errors import LedgerUnavailableError
from graphrun.execution.event import DeliveryLost, Settled
from graphrun.execution.run import Run
from graphrun.storage.records import AttemptRecord

if TYPE_CHECKING:
    from graphrun.engine.app import Engine

log = logging.getLogger("graphrun.worker")

_BY_SIGNAL = re.compile(r"signal \d+")


class NodeRequest(Request):
    """The main process' view of one delivery of a node."""

    def on_timeout(self, soft: bool, timeout: float) -> None:  # noqa: FBT001 - Celery's signature
        """Settle a node that the hard limit killed, before Celery records its own failure."""
        if not soft:
            grace = self._engine.settings.hard_limit_grace_seconds
            self._record(
                lambda: self._settle_outside(
                    "TimeLimitExceeded", f"running time limit of {timeout - grace:g} s exceeded"
                )
            )
        super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:  # noqa: FBT001, FBT002 - Celery's signature
        """Tell a child that left by itself, a failed attempt, from one that a signal killed, a lost delivery (X6)."""
        error = exc_info.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if isinstance(error, (WorkerLostError, SystemExit)):
            text = str(error)
            if isinstance(error, WorkerLostError) and _BY_SIGNAL.search(text):
                self._record(lambda: self._lose_delivery(text))
            else:
                left = f"the process of the node ended by itself: {text}"
                self._record(lambda: self._settle_outside("WorkerExited", left))
        return super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)

    def _record(self, write: Callable[[], None]) -> None:
        """Write down what became of the child; a fault of it must not take down the process that consumes messages."""
        try:
            write()
        except LedgerUnavailableError:
            # The consumer goes on meanwhile: with the database away for long, the broker would take it for dead.
            threading.Thread(target=until_answered, args=(write,), name="graphrun-record", daemon=True).start()
        except Exception:
            log.exception("what became of %s[%s] could not be recorded", self.name, self.id)

    @property
    def _engine(self) -> Engine:
        engine: Engine = self.app.graphrun
        return engine

    @property
    def _node(self) -> NodeMessage:
        return NodeMessage.from_args(tuple(self.args))

    def _settle_outside(self, error_type: str, error: str) -> None:
        message = self._node
        fact = Settled(
            node_id=message.node_id,
            attempt=message.attempt,
            kind=message.kind,
            status="failed",
            error_type=error_type,
            error=error,
            outside=True,
        )
        record = AttemptRecord(error_type=error_type, error=error)
        result = self._engine.main_ledger().settle_for(
            message.run_id, message.node_id, task_id=self.id, fact=fact, record=record
        )
        if not result.accepted:
            self._hand_back(message)
        elif result.gate_due:
            self._send_gate(result.run)

    def _lose_delivery(self, reason: str) -> None:
        message = self._node
        fact = DeliveryLost(node_id=message.node_id, attempt=message.attempt, reason=reason)
        engine = self._engine
        result = engine.main_ledger().lose_delivery(message.run_id, message.node_id, task_id=self.id, fact=fact)
        if not result.accepted:
            self._hand_back(message)
            return
        log.warning("run %s node %d: %s", message.run_id, message.node_id, reason)
        if result.gate_due:
            self._send_gate(result.run)
        else:
            engine.main_coordinator().send_one(result.run, message.node_id)

    def _hand_back(self, message: NodeMessage) -> None:
        """Let an attempt come again whose child ended before it could claim it: Celery drops the message now."""
        if self._engine.main_coordinator().hand_back(message, after_seconds=0.0):
            log.warning("run %s node %d: ended before it was taken; sent again", message.run_id, message.node_id)

    def _send_gate(self, run: Run) -> None:
        self._engine.dispatcher.send_gate(GateMessage(run.run_id, run.revision, run.wave, run.round))
