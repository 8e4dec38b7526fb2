"""Sending: one flat chord a round, published in one burst; single nodes and gates by themselves (§3.2).

A round is what Celery's ``chord(list of node tasks, gate)`` puts on the wire, written by ``send_task`` with
``group_id`` and ``chord`` in one ``Producer.batch``: the canvas form of the same chord is over the limit of 1.5 kB a
message. It decides nothing and reads no SQL.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from uuid import uuid4

from celery import Celery
from kombu.exceptions import OperationalError

from graphrun.engine.message import COMMAND_TASK, GATE_TASK, GateMessage, NodeMessage
from graphrun.errors import BrokerDownError
from graphrun.execution.report import shown
from graphrun.execution.run import Run
from graphrun.settings import Settings, masked
from graphrun.storage.records import Dispatch

_KEY_BYTES = 40
_TOP_PRIORITY = 9


class CeleryDispatcher:
    """Sends attempts and gates through a Celery app."""

    def __init__(self, app: Celery, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    def require_broker(self) -> None:
        """Find out quickly whether the broker can be reached.

        Raises:
            BrokerDownError: it cannot; the message names it without its password.
        """
        connection = self._app.connection_for_write(connect_timeout=2.0)
        try:
            with connection:
                connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=3.0)
        except (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors) as error:
            where = masked(str(self._app.conf.broker_write_url or self._app.conf.broker_url))
            raise BrokerDownError(f"broker {where} cannot be reached: {str(error).rstrip('.')}") from error

    def send_wave(self, run: Run, dispatches: tuple[Dispatch, ...], *, direct: bool) -> None:
        """Send the attempts of a round; unless ``direct``, as a chord whose body is the round's gate."""
        group = None if direct else str(uuid4())
        if group is not None:
            # Before the members: the first may end before the last is sent.
            self._app.backend.set_chord_size(group, len(dispatches))
        gate = None if group is None else self._gate_body(run, len(dispatches))
        with self._app.producer_pool.acquire(block=True) as producer, producer.batch():
            for index, dispatch in enumerate(dispatches):
                chord = {} if group is None else {"group_id": group, "group_index": index, "chord": gate}
                self._send(run, dispatch, producer, **chord)

    def send_node(self, run: Run, dispatch: Dispatch) -> None:
        """Send one attempt again, under a fresh id and outside any chord: it must not be counted twice."""
        with self._app.producer_pool.acquire(block=True) as producer:
            self._send(run, dispatch, producer)

    def send_gate(self, message: GateMessage) -> None:
        """Send a gate by itself."""
        self._app.send_task(
            GATE_TASK, args=tuple(message), queue=self._settings.control_queue, add_to_parent=False, ignore_result=True
        )

    def _gate_body(self, run: Run, size: int) -> dict[str, Any]:
        """Return the chord's body as small as Celery reads it: it is copied into every member's message (H10)."""
        args = [run.run_id, run.revision, run.wave, run.round]
        return {
            "task": GATE_TASK,
            "args": args,
            "options": {"queue": self._settings.control_queue},
            "immutable": True,
            "chord_size": size,
        }

    def _send(self, run: Run, dispatch: Dispatch, producer: Any, **chord: Any) -> None:
        message = NodeMessage(
            run.run_id, dispatch.node_id, dispatch.attempt, dispatch.kind, run.revision, run.wave, run.round
        )
        grace = self._settings.hard_limit_grace_seconds
        limit = dispatch.timeout_seconds
        self._app.send_task(
            COMMAND_TASK if dispatch.task.startswith("$ ") else dispatch.task,
            args=message.to_args(),
            task_id=str(uuid4()),
            producer=producer,
            queue=dispatch.queue or self._settings.queue,
            argsrepr=f"{run.run_id[:8]} {_short(dispatch.key)}",
            kwargsrepr="{}",
            # The soft limit ends the body with an exception it may clean up after; the hard one kills the process.
            soft_time_limit=dispatch.soft_timeout_seconds or limit,
            time_limit=None if limit is None else limit + grace,
            add_to_parent=False,
            **self._priority(dispatch.priority),
            **chord,
        )

    def _priority(self, priority: int | None) -> dict[str, int]:
        """Translate 0 to 9, 9 first, into what the transport counts: Redis serves 0 first (H14)."""
        if priority is None:
            return {}
        return {"priority": _TOP_PRIORITY - priority if self._is_redis else priority}

    @cached_property
    def _is_redis(self) -> bool:
        with self._app.connection_for_write() as connection:  # an object of its own, which connects to nothing
            return bool(connection.transport.driver_type == "redis")


def _short(key: str) -> str:
    """Return a node key for Flower, cut so that its escaped form fits the message."""
    text = shown(key, limit=_KEY_BYTES)
    while len(text.encode("ascii", "backslashreplace")) > _KEY_BYTES:
        text = text[:-2] + "…"
        if len(text) <= 1:
            break
    return text
