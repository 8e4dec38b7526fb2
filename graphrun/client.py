"""The facade: submit a graph, watch its run, read what became of it. The command line and users call only this.

It wires settings, ledger and Celery together and decides nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

from graphrun.codec import decode
from graphrun.engine.compiling import check
from graphrun.engine.inside import require_outside_of_a_node
from graphrun.engine.planning import Plan, make_plan
from graphrun.engine.reporting import make_report
from graphrun.engine.submitting import SubmitOptions, submit
from graphrun.errors import BrokerDownError, GraphError, WaitTimeoutError
from graphrun.execution.report import Report
from graphrun.execution.state import TERMINAL_RUN, RunState
from graphrun.model.spec import FailurePolicy, GraphSpec, Schedule
from graphrun.model.validation import Report as ValidationReport
from graphrun.registry import TaskRegistry, default_registry
from graphrun.settings import Settings
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import AttemptRow, EventRow, NodeRow, RunRow

if TYPE_CHECKING:
    from celery import Celery

    from graphrun.engine.app import Engine

log = logging.getLogger("graphrun.client")


class Freezable(Protocol):
    """Anything that freezes to a spec, as ``graphrun.Graph`` does."""

    def freeze(self) -> GraphSpec:
        """Return the frozen spec."""


class Client:
    """Submits graphs and reads runs.

    Args:
        settings: read from environment and file when None.
        app: a Celery app with graphrun installed; a ready-made one is made from the settings when None.
        registry: where ``@task`` functions are; the default registry when None.

    Raises:
        SettingsError: a setting is wrong.
    """

    def __init__(
        self, settings: Settings | None = None, *, app: Celery | None = None, registry: TaskRegistry | None = None
    ) -> None:
        self._app = app
        installed = getattr(app, "graphrun", None)
        self.settings = settings or (installed.settings if installed else Settings.load())
        self.registry = registry or (installed.registry if installed else default_registry())

    def check(self, graph: Freezable | GraphSpec) -> ValidationReport:
        """Return every fault that submit would refuse the graph for, and the warnings."""
        return check(_frozen(graph), self.registry)

    def plan(self, graph: Freezable | GraphSpec) -> Plan:
        """Return how a graph would run: waves, delegated graph, bound; nothing is written.

        Raises:
            ValidationFailedError: it may not run; the error carries every fault.
        """
        return make_plan(_frozen(graph), self.registry, self.settings)

    def submit(
        self,
        graph: Freezable | GraphSpec,
        *,
        outputs: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        schedule: Schedule | None = None,
        failure_policy: FailurePolicy | None = None,
        connection: Any = None,
        tenant_id: str | None = None,
    ) -> RunHandle:
        """Write a run and send its first wave.

        Args:
            graph: what to run.
            outputs: node key -> output, of nodes that need not run; they count as done (X10).
            idempotency_key: a second submit under it gives the same run (X17).
            schedule: ``waves``.
            failure_policy: overrides the graph's (X5).
            connection: a SQLAlchemy connection whose transaction the run joins; the sweeper sends it after the commit.
            tenant_id: whose run it is; the settings' when None.

        Returns:
            A handle. When the broker is down the run is kept as ``created``, the handle's ``warning`` says so, and the
            sweeper of the next worker sends it.

        Raises:
            ValidationFailedError: the graph may not run; nothing was written.
            IdempotencyConflictError: the key was used for another graph.
            SchemaVersionError: the database is older or newer than this graphrun.
            GraphError: what was given is no graph.
            EngineError: the Celery app runs tasks eagerly.
        """
        spec = _frozen(graph).with_settings(schedule=schedule, failure_policy=failure_policy)
        tenant = self.settings.tenant_id if tenant_id is None else tenant_id
        options = SubmitOptions(
            tenant_id=tenant, outputs=outputs, idempotency_key=idempotency_key, connection=connection
        )
        self.engine.require_not_eager()
        submitted = submit(spec, self.registry, self.ledger, options)
        handle = RunHandle(self, submitted.run_id, tenant)
        if submitted.created and connection is None:
            handle.warning = self._launch(submitted.run_id, send=bool(spec.nodes))
        return handle

    def run(self, run_id: str, *, tenant_id: str | None = None) -> RunHandle:
        """Return a handle to a run by its id, or by the first characters of it if they are unique.

        Raises:
            RunNotFoundError: the tenant has no such run.
        """
        tenant = tenant_id or self.settings.tenant_id
        return RunHandle(self, self.ledger.run(run_id, tenant_id=tenant).run_id, tenant)

    def runs(
        self, *, state: RunState | None = None, graph: str | None = None, limit: int = 50, tenant_id: str | None = None
    ) -> tuple[RunRow, ...]:
        """Return the newest runs first."""
        tenant = tenant_id or self.settings.tenant_id
        return tuple(self.ledger.runs(tenant_id=tenant, state=state, graph=graph, limit=limit, offset=0))

    @cached_property
    def engine(self) -> Engine:
        """The engine of the Celery app; Celery is loaded here and not before."""
        from graphrun.engine.app import install, make_app  # noqa: PLC0415 - `import graphrun` must not load Celery

        app = self._app if self._app is not None else make_app(self.settings, self.registry)
        return install(app, self.settings, self.registry)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger; its schema is checked on first use.

        Raises:
            SchemaVersionError: the database is older or newer than this graphrun.
        """
        return self.engine.checked_ledger()

    def close(self) -> None:
        """Close the connections to database and broker; the client can be used again and opens new ones."""
        if "engine" in self.__dict__:
            self.engine.close()
            self.__dict__.pop("ledger", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _launch(self, run_id: str, *, send: bool) -> str | None:
        """Start a run; say why when that could not be done now."""
        try:
            if send:
                self.engine.dispatcher.require_broker()
            self.engine.coordinator().launch(run_id)
        except BrokerDownError as error:
            text = f"{error}; run {run_id} is kept and starts when a worker with this database reaches the broker"
            log.warning(text)
            return text
        except Exception as error:
            # The run is committed: who submits it again because of an exception here would have it twice.
            log.exception("run %s could not be sent", run_id)
            return f"run {run_id} is kept and not sent yet, the sweeper will try: {type(error).__name__}: {error}"
        return None


class RunHandle:
    """One run: wait for it, read it.

    Attributes:
        run_id: the run's id, a UUID as text.
        warning: why it has not been sent yet, or None.
    """

    def __init__(self, client: Client, run_id: str, tenant_id: str) -> None:
        self._client = client
        self._tenant = tenant_id
        self.run_id = run_id
        self.warning: str | None = None

    def __repr__(self) -> str:
        return f"RunHandle({self.run_id!r})"

    @property
    def row(self) -> RunRow:
        """The run's row as it stands now."""
        return self._client.ledger.run(self.run_id, tenant_id=self._tenant)

    @property
    def status(self) -> RunState:
        """The run's state as it stands now."""
        return self.row.state

    def wait(self, timeout: float | None = None) -> RunState:
        """Wait until the run has ended.

        Args:
            timeout: seconds; None waits as long as it takes.

        Returns:
            ``succeeded``, ``failed`` or ``cancelled``.

        Raises:
            WaitTimeoutError: it has not ended in time; it goes on.
            EngineError: called inside a node, which would hold the slot that the run may need.
        """
        require_outside_of_a_node("wait for a run")
        for state in self.states(timeout):
            if state in TERMINAL_RUN:
                return state
        raise WaitTimeoutError(f"run {self.run_id} is {self.status.value} after {timeout:g} s; it goes on")

    def states(self, timeout: float | None = None) -> Iterator[RunState]:
        """Yield the run's state again and again, until it has ended or the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.02
        while True:
            state = self.status
            yield state
            if state in TERMINAL_RUN or (deadline is not None and time.monotonic() >= deadline):
                return
            time.sleep(pause)
            pause = min(pause * 1.5, self._client.settings.poll_seconds)

    def output(self, key: str, annotation: Any = Any) -> Any:
        """Return what a node returned, decoded by its task's return type, or by ``annotation`` when given.

        Raises:
            LedgerError: the run has no such node, or the node no output.
        """
        ledger = self._client.ledger
        text = ledger.output(self.run_id, key, tenant_id=self._tenant)
        if annotation is Any:
            node = next(node for node in self.nodes() if node.key == key)
            if node.task in self._client.registry.names():
                annotation = self._client.registry.get(node.task).return_annotation
        return decode(text, annotation)

    def report(self) -> Report:
        """Return the implemented graph with its verdict, as it stands now."""
        return make_report(self._client.ledger, self.run_id, tenant_id=self._tenant)

    def nodes(self) -> tuple[NodeRow, ...]:
        """Return the node rows, in declared order."""
        return tuple(self._client.ledger.nodes(self.run_id, tenant_id=self._tenant))

    def attempts(self, key: str | None = None) -> tuple[AttemptRow, ...]:
        """Return the ended attempts of one node, or of all."""
        return tuple(self._client.ledger.attempts(self.run_id, tenant_id=self._tenant, key=key))

    def events(self) -> tuple[EventRow, ...]:
        """Return the run's event log: the run's stream, then each node's, each in order."""
        return tuple(self._client.ledger.events(self.run_id, tenant_id=self._tenant))

    def spec(self) -> GraphSpec:
        """Return the delegated graph: what was asked."""
        return self._client.ledger.spec(self.run_id, tenant_id=self._tenant)


def _frozen(graph: Freezable | GraphSpec) -> GraphSpec:
    if isinstance(graph, GraphSpec):
        return graph
    if not hasattr(graph, "freeze"):
        raise GraphError(f"{graph!r} is no graph: give a graphrun.Graph or a GraphSpec")
    return graph.freeze()
