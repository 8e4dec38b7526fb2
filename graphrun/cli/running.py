"""Carrying out ``run``: submit, watch, report; with ``--local`` on servers that live as long as the command.

It answers for the order of things, for what is said when it is interrupted, and for the exit code. How processes are
started and stopped is the business of ``engine.local``.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from graphrun.cli.console import say, show, show_json, width
from graphrun.cli.graph_file import load_graph
from graphrun.cli.interrupts import Interrupted, stopped_by_signals
from graphrun.cli.rendering import beside, outputs_text, planned_waves, report_text
from graphrun.cli.session import LOCAL_DIRECTORY, open_client, require_schema, settings_of, wanted_by
from graphrun.cli.watching import follow
from graphrun.client import Client, RunHandle
from graphrun.engine.attendance import attendance
from graphrun.engine.local import LocalCluster
from graphrun.errors import WaitTimeoutError
from graphrun.execution.state import NodeState, RunState
from graphrun.model.spec import FailurePolicy, GraphSpec
from graphrun.registry import default_registry
from graphrun.settings import Settings, masked

_DEFAULT_DATABASE = Settings.model_fields["database_url"].default
_NAME_CHARACTERS = 40
_PATIENCE_SECONDS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a person asked ``run`` for."""

    file: str
    tasks: tuple[str, ...] = ()
    failure_policy: FailurePolicy | None = None
    timeout: float | None = None
    idempotency_key: str | None = None
    database: str | None = None
    as_json: bool = False


def run_graph(request: RunRequest) -> int:
    """Run a graph on the broker and the workers that the settings name; return the exit code."""
    spec = load_graph(request.file, request.tasks).spec
    with open_client(request.database) as client, stopped_by_signals():
        handle = _submit(client, spec, request)
        if handle.warning is not None:
            say(f"graphrun: {handle.warning}")
            return 1
        try:
            follow(handle, timeout=request.timeout, check=_NobodyThere(client, handle))
        except (Interrupted, WaitTimeoutError):
            say(f"graphrun: no longer watching; run {handle.run_id} goes on: graphrun show {handle.run_id[:8]}")
            raise
        return _conclude(handle, request)


def _queues(spec: GraphSpec) -> list[str]:
    """Return the queues that the graph's nodes name, and those of tasks that an evolution may add."""
    named = {node.policy.queue for node in spec.nodes if node.policy.queue}
    return sorted(named | set(default_registry().queues()))


def run_locally(request: RunRequest, concurrency: int) -> int:
    """Run a graph on a private Redis and a worker of this machine's; return the exit code."""
    loaded = load_graph(request.file, request.tasks)
    settings = _local_settings(request.database, loaded.spec.name)
    Client(settings).plan(loaded.spec)  # a graph that is refused costs no start of a server
    require_schema(settings.database_url)  # before the workers look at it
    say(f"graphrun: starting a private Redis and a worker with {concurrency} processes")
    handle: RunHandle | None = None
    with stopped_by_signals():
        try:
            with (
                LocalCluster(
                    settings, concurrency=concurrency, tasks=loaded.tasks, queues=_queues(loaded.spec)
                ) as cluster,
                Client(cluster.settings) as client,
            ):
                handle = _submit(client, loaded.spec, request)
                return _watched(handle, request, cluster)
        finally:
            if handle is not None:
                say(_kept(handle, settings))


def _watched(handle: RunHandle, request: RunRequest, cluster: LocalCluster) -> int:
    try:
        follow(handle, timeout=request.timeout, check=cluster.check)
        return _conclude(handle, request)
    except BaseException:
        say("graphrun: stopping the worker and Redis; what was not finished does not go on")
        raise


def _kept(handle: RunHandle, settings: Settings) -> str:
    url, shown = settings.database_url, masked(settings.database_url)
    again = f"\n  graphrun show {handle.run_id[:8]} --database {url}" if url == shown else ""
    return f"graphrun: run {handle.run_id[:8]} is kept in {shown}{again}"


def _submit(client: Client, spec: GraphSpec, request: RunRequest) -> RunHandle:
    return client.submit(spec, failure_policy=request.failure_policy, idempotency_key=request.idempotency_key)


def _conclude(handle: RunHandle, request: RunRequest) -> int:
    """Print what became of a run; only a success is exit code 0 (X19)."""
    report = handle.report()
    if request.as_json:
        show_json(report.to_document())
    else:
        show(beside(planned_waves(handle.nodes()), report, width=width()) + "\n")
        show(report_text(report))
        if outputs := outputs_text(report):
            show("\n" + outputs)
    return 0 if report.state is RunState.SUCCEEDED else 1


def _local_settings(database: str | None, graph: str) -> Settings:
    """Return the settings with a SQLite file of this run's own, unless a database was chosen.

    Two local clusters on one file would sweep each other's runs onto the wrong broker.
    """
    settings = settings_of(database)
    if settings.database_url != _DEFAULT_DATABASE:
        return settings
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", graph)[:_NAME_CHARACTERS].strip("-.") or "graph"
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    file = LOCAL_DIRECTORY / f"{name}-{stamp}-{uuid4().hex[:4]}.db"
    return settings_of(f"sqlite:///{file}")


class _NobodyThere:
    """Says once, after a while in which nothing was taken from the queue, which worker is missing."""

    def __init__(self, client: Client, handle: RunHandle) -> None:
        self._client = client
        self._handle = handle
        self._seen: object = None
        self._at = time.monotonic() + _PATIENCE_SECONDS

    def __call__(self) -> None:
        if time.monotonic() < self._at:
            return
        self._at = time.monotonic() + _PATIENCE_SECONDS
        nodes = self._handle.nodes()
        queued = [node for node in nodes if node.state is NodeState.QUEUED]
        now = [(node.key, node.state) for node in nodes]
        stands, self._seen = now == self._seen, now
        if not queued or not (stands or not any(node.worker for node in nodes)):
            return
        self._at = float("inf")
        found = attendance(self._client.engine.app, seconds=1.0)
        if not found.workers:
            say("graphrun: no worker answers; start one in another terminal: graphrun worker")
            return
        for text, remedy in found.missing(wanted_by(queued, self._client.settings)):
            say(f"graphrun: {text}: {remedy}")
