"""Running a graph in this process, without a broker: the same planner, ledger and attempt code, one node at a time.

The second way to send besides Celery's, used by ``Graph.run`` and ``graphrun.testing``. Time limits and lost workers
are a worker's business and do not exist here.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import uuid4

from graphrun.codec import decode
from graphrun.engine.attempt import AttemptRunner, ClaimLostError
from graphrun.engine.coordinator import Coordinator
from graphrun.engine.message import GateMessage, NodeMessage
from graphrun.engine.reporting import make_report
from graphrun.engine.submitting import SubmitOptions, submit
from graphrun.execution.report import Report
from graphrun.execution.run import Run
from graphrun.execution.state import TERMINAL_RUN, RunState
from graphrun.model.spec import FailurePolicy, GraphSpec
from graphrun.registry import AnyTask, TaskRegistry, default_registry
from graphrun.settings import Settings
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import upgrade
from graphrun.storage.records import Dispatch, NodeRow

_INLINE = "inline"

T = TypeVar("T")


class InlineSender:
    """Keeps what is sent in a queue of this process."""

    def __init__(self) -> None:
        self.queue: deque[NodeMessage | GateMessage] = deque()

    def send_wave(self, run: Run, dispatches: tuple[Dispatch, ...], *, direct: bool) -> None:
        """Queue the attempts of a round, and its gate behind them."""
        for dispatch in dispatches:
            self.send_node(run, dispatch)
        if not direct:
            self.send_gate(GateMessage(run.run_id, run.revision, run.wave, run.round))

    def send_node(self, run: Run, dispatch: Dispatch) -> None:
        """Queue one attempt."""
        self.queue.append(
            NodeMessage(
                run.run_id, dispatch.node_id, dispatch.attempt, dispatch.kind, run.revision, run.wave, run.round
            )
        )

    def send_gate(self, message: GateMessage) -> None:
        """Queue a gate."""
        self.queue.append(message)


class InlineRun:
    """A run that has ended, as ``run_inline`` left it."""

    def __init__(self, ledger: Ledger, run_id: str, registry: TaskRegistry) -> None:
        self._ledger = ledger
        self._registry = registry
        self.run_id = run_id

    @property
    def status(self) -> RunState:
        """How the run ended."""
        return self._ledger.run(self.run_id, tenant_id=_INLINE).state

    def output(self, key: str, annotation: Any = Any) -> Any:
        """Return what a node returned, decoded by its task's return type, or by ``annotation`` when given."""
        text = self._ledger.output(self.run_id, key, tenant_id=_INLINE)
        if annotation is Any:
            node = next(node for node in self.nodes() if node.key == key)
            annotation = self._registry.get(node.task).return_annotation
        return decode(text, annotation)

    def report(self) -> Report:
        """Return the implemented graph with its verdict."""
        return make_report(self._ledger, self.run_id, tenant_id=_INLINE)

    def nodes(self) -> tuple[NodeRow, ...]:
        """Return the node rows, in declared order."""
        return tuple(self._ledger.nodes(self.run_id, tenant_id=_INLINE))


def run_inline(
    spec: GraphSpec,
    *,
    registry: TaskRegistry | None = None,
    settings: Settings | None = None,
    outputs: Mapping[str, Any] | None = None,
    failure_policy: FailurePolicy | None = None,
    ledger: Ledger | None = None,
) -> InlineRun:
    """Run a graph to its end in this process.

    Args:
        spec: the frozen graph.
        registry: where its tasks are; the default registry when None.
        settings: limits; read from environment and file when None.
        outputs: node key -> output, of nodes that need not run.
        failure_policy: overrides the graph's (X5).
        ledger: where to record; a SQLite file in a temporary directory when None.

    Raises:
        ValidationFailedError: the graph may not run.
    """
    registry = registry or default_registry()
    settings = settings or Settings.load()
    ledger = ledger or _TemporaryLedger()
    spec = spec.with_settings(failure_policy=failure_policy)
    submitted = submit(spec, registry, ledger, SubmitOptions(tenant_id=_INLINE, outputs=outputs))
    sender = InlineSender()
    coordinator = Coordinator(ledger, sender)
    runner = AttemptRunner(ledger, registry, settings, worker=_INLINE)
    run = coordinator.launch(submitted.run_id)
    with _Caller() as caller:
        _to_the_end(run, ledger, sender, coordinator, runner, caller)
    return InlineRun(ledger, run.run_id, registry)


def _to_the_end(
    run: Run,
    ledger: Ledger,
    sender: InlineSender,
    coordinator: Coordinator,
    runner: AttemptRunner,
    caller: _Caller,
) -> None:
    while True:
        while sender.queue:
            _take(sender, coordinator, runner, caller)
        if ledger.run(run.run_id, tenant_id=_INLINE).state in TERMINAL_RUN:
            return
        for owner, node_id in ledger.due_nodes(100):
            coordinator.send_one(owner, node_id)
        if not sender.queue:
            time.sleep(0.01)  # a retry's backoff is not over


def _take(sender: InlineSender, coordinator: Coordinator, runner: AttemptRunner, caller: _Caller) -> None:
    message = sender.queue.popleft()
    if isinstance(message, GateMessage):
        coordinator.gate(message)
        return
    try:
        settlement = runner.run(message, task_id=str(uuid4()), invoke=caller)
    except ClaimLostError:
        return
    if settlement.result.gate_due:
        run = settlement.result.run
        sender.send_gate(GateMessage(run.run_id, run.revision, run.wave, run.round))


class _Caller:
    """Calls bodies; those of async functions in one event loop, which is closed with the run.

    Where this thread has a running loop already, as in a notebook, theirs runs in a thread beside it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.Runner | None = None
        self._beside: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._loop is not None:
            self._wherever(self._loop.close)
        if self._beside is not None:
            self._beside.shutdown()

    def __call__(self, task: AnyTask, arguments: Mapping[str, Any]) -> Any:
        if not task.is_async:
            return task.function(**arguments)
        if self._loop is None:
            self._loop = asyncio.Runner()
        loop = self._loop
        return self._wherever(lambda: loop.run(task.function(**arguments)))

    def _wherever(self, act: Callable[[], T]) -> T:
        if self._beside is None and _loop_is_running():
            self._beside = ThreadPoolExecutor(1, thread_name_prefix="graphrun-inline")
        return act() if self._beside is None else self._beside.submit(copy_context().run, act).result()


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _TemporaryLedger(Ledger):
    """A ledger whose SQLite file lives as long as what was recorded in it can be read."""

    def __init__(self) -> None:
        directory = tempfile.mkdtemp(prefix="graphrun-inline-")
        database = Database(f"sqlite:///{Path(directory) / 'run.db'}")
        upgrade(database)
        super().__init__(database)
        weakref.finalize(self, _forget, database, directory)


def _forget(database: Database, directory: str) -> None:
    database.dispose()
    shutil.rmtree(directory, ignore_errors=True)
