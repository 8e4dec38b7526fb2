"""Joining graphrun to a Celery app: ``install`` for the user's own, ``make_app`` for a ready-made one.

Options are set on graphrun's own tasks; global settings belong to the ready-made app alone (§3.11).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from celery import Celery, signals

from graphrun.engine.attempt import AttemptRunner
from graphrun.engine.coordinator import Coordinator
from graphrun.engine.dispatcher import CeleryDispatcher
from graphrun.engine.message import COMMAND_TASK
from graphrun.engine.node_task import GateTask, register
from graphrun.engine.soft_limit import soft_limit_allowed
from graphrun.engine.sweeper import Sweeper, SweeperStep
from graphrun.engine.twin import register_twins
from graphrun.engine.unknown_task import hand_back_unknown
from graphrun.errors import EngineError, GraphrunError
from graphrun.registry import TaskRegistry, default_registry
from graphrun.settings import Settings
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import ensure_ready
from graphrun.storage.payloads import payload_store

T = TypeVar("T")


class Engine:
    """What one process needs to carry out runs: ledger, dispatcher, coordinator, runner; made on first use.

    A prefork worker's main process and each of its children make their own: a database connection does not survive a
    fork (§3.7), so everything is keyed to the process id.
    """

    def __init__(self, app: Celery, settings: Settings, registry: TaskRegistry) -> None:
        self.app = app
        self.settings = settings
        self.registry = registry
        self.dispatcher = CeleryDispatcher(app, settings)
        self.worker = f"{socket.gethostname()}:{uuid4().hex[:12]}"
        self._pid = 0
        self._parts: dict[str, Any] = {}

    def ledger(self) -> Ledger:
        """Return this process' ledger, with pooled connections."""
        return self._part("ledger", lambda: self._make_ledger(null_pool=False))

    def checked_ledger(self) -> Ledger:
        """Return this process' ledger once its schema is known to be this graphrun's.

        A SQLite file that does not exist yet is made, since nobody else could have prepared it.

        Raises:
            SchemaVersionError: the database is older or newer than this graphrun, or has no schema.
        """
        return self._part("checked", self._checked)

    def _checked(self) -> Ledger:
        ledger = self.ledger()
        ensure_ready(ledger.database)
        return ledger

    def close(self) -> None:
        """Close the connections of this process to database and broker; what is used afterwards opens new ones."""
        for part in self._parts.values():
            if isinstance(part, Ledger):
                part.database.dispose()
            elif isinstance(part, AttemptRunner):
                part.close()
        self._parts = {}
        self.app.close()

    def main_ledger(self) -> Ledger:
        """Return the ledger of a process that forks: no pool, and no transaction open across a fork."""
        return self._part("main_ledger", lambda: self._make_ledger(null_pool=True))

    def coordinator(self) -> Coordinator:
        """Return this process' coordinator."""
        return self._part("coordinator", lambda: Coordinator(self.ledger(), self.dispatcher))

    def main_coordinator(self) -> Coordinator:
        """Return the coordinator of a process that forks."""
        return self._part("main_coordinator", lambda: Coordinator(self.main_ledger(), self.dispatcher))

    def sweeper(self) -> Sweeper:
        """Return the sweeper, which works on the ledger of a process that forks."""
        return self._part(
            "sweeper", lambda: Sweeper(self.main_ledger(), self.main_coordinator(), self.dispatcher, self.settings)
        )

    def runner(self) -> AttemptRunner:
        """Return this process' attempt runner."""
        return self._part(
            "runner",
            lambda: AttemptRunner(
                self.ledger(),
                self.registry,
                self.settings,
                worker=self.worker,
                guard=soft_limit_allowed,
                reraise=_asked_to_exit,
            ),
        )

    def require_not_eager(self) -> None:
        """Refuse an app that was made eager after ``install``; see :func:`require_not_eager`."""
        require_not_eager(self.app)

    def register_tasks(self) -> None:
        """Give every registered function and every plain Celery task of the app its node task."""
        if GateTask.name not in self.app.tasks:
            self.app.register_task(GateTask())
        for name in (COMMAND_TASK, *self.registry.names()):
            register(self.app, name)
        register_twins(self.app, self.registry)

    def _make_ledger(self, *, null_pool: bool) -> Ledger:
        database = Database(self.settings.database_url, null_pool=null_pool)
        return Ledger(
            database,
            payload_store(self.settings.payload_url, database, limit_bytes=self.settings.payload_limit_bytes),
            inline_limit_bytes=self.settings.inline_limit_bytes,
        )

    def _part(self, name: str, make: Callable[[], T]) -> T:
        if self._pid != os.getpid():
            # A fork: what the parent opened belongs to the parent.
            self._pid = os.getpid()
            self._parts = {}
        if name not in self._parts:
            self._parts[name] = make()
        part: T = self._parts[name]
        return part


def install(app: Celery, settings: Settings | None = None, registry: TaskRegistry | None = None) -> Engine:
    """Add graphrun to a Celery app; the app's own tasks and settings stay as they are.

    Args:
        app: the application's Celery app, with a Redis result backend.
        settings: graphrun's settings; read from environment and file when None.
        registry: where ``@task`` functions are; the default registry when None.

    Returns:
        The engine, also found as ``app.graphrun``. Installing twice gives the first one.

    Raises:
        EngineError: the app runs tasks eagerly, which graphrun cannot use.
    """
    known = getattr(app, "graphrun", None)
    if isinstance(known, Engine):
        return known
    require_not_eager(app)
    engine = Engine(app, settings or Settings.load(), registry or default_registry())
    app.graphrun = engine
    app.steps["worker"].add(SweeperStep)
    engine.register_tasks()

    def prepare_worker(**_kwargs: Any) -> None:
        # Modules with tasks may be imported after ``install``, up to the start of the worker.
        engine.register_tasks()
        try:
            ensure_ready(engine.main_ledger().database)
        except GraphrunError as error:
            raise SystemExit(f"graphrun: {error}") from error

    signals.worker_init.connect(prepare_worker, weak=False)
    signals.celeryd_after_setup.connect(partial(_serve_queues, engine), weak=False)
    signals.worker_ready.connect(_tell_ready, weak=False)
    signals.task_unknown.connect(partial(hand_back_unknown, engine), weak=False)
    return engine


def require_not_eager(app: Celery) -> None:
    """Refuse an app that runs tasks where they are sent (§3.11).

    Raises:
        EngineError: it does.
    """
    if app.conf.task_always_eager:
        raise EngineError("task_always_eager is on: graphrun needs a broker; in tests use Graph.run()")


def make_app(settings: Settings | None = None, registry: TaskRegistry | None = None) -> Celery:
    """Return a ready-made Celery app with graphrun installed and the settings that the hazards ask for (§4)."""
    chosen = settings or Settings.load()
    app = Celery("graphrun", broker=chosen.broker_url, backend=chosen.effective_result_url)
    app.conf.update(
        accept_content=["json"],
        broker_connection_retry_on_startup=True,
        broker_transport_options=_transport_options(chosen.broker_url),
        result_accept_content=["json"],
        result_backend_always_retry=True,
        result_chord_expires=chosen.result_chord_expires_seconds,
        result_extended=True,
        result_serializer="json",
        task_acks_late=True,
        task_default_queue=chosen.queue,
        task_reject_on_worker_lost=False,
        task_send_sent_event=True,
        task_serializer="json",
        task_track_started=True,
        worker_deduplicate_successful_tasks=False,
        worker_prefetch_multiplier=1,
        worker_send_task_events=True,
        worker_soft_shutdown_timeout=30.0,
    )
    install(app, chosen, registry)
    return app


def _serve_queues(engine: Engine, instance: Any = None, **_kwargs: Any) -> None:
    """Let a worker serve the gates whatever its ``-Q``, and the nodes' default queue when it has no ``-Q`` (§3.9).

    A run whose gates nobody serves stands still, so a worker has to be told not to (``serve_gates``).
    """
    queues = instance.app.amqp.queues
    if queues._consume_from is None:  # noqa: SLF001 - Celery says nowhere else whether -Q was given
        queues.select_add(engine.settings.queue)
    if engine.settings.serve_gates:
        # First: Redis is asked for messages in this order, and a gate that waits behind nodes holds its whole run.
        control = engine.settings.control_queue
        queues.select_add(control)
        served = queues.consume_from
        others = {name: queue for name, queue in served.items() if name != control}
        first = served[control]
        served.clear()
        served.update({control: first, **others})


def _tell_ready(**_kwargs: Any) -> None:
    """Write the file by which whoever started this worker knows that it serves."""
    path = os.environ.get("GRAPHRUN_READY_FILE")
    if path:
        Path(path).write_text(str(os.getpid()), encoding="ascii")


def _transport_options(broker_url: str) -> dict[str, Any]:
    """Return a long visibility timeout for Redis: shorter than a node, it would run that node twice (H6)."""
    if not broker_url.startswith(("redis", "rediss", "unix", "socket")):
        return {}
    return {"visibility_timeout": 24 * 3600, "unacked_restore_throttle": 1, "queue_order_strategy": "priority"}


def _asked_to_exit(error: BaseException) -> bool:
    """Say whether an exit was asked for from outside, by a revoke, and is not the body's own (X15)."""
    from billiard.common import terminate_handler_fired  # noqa: PLC0415 - only where a pool child may be told to end

    return isinstance(error, SystemExit) and bool(terminate_handler_fired())
