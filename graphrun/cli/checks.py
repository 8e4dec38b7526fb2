"""What ``graphrun doctor`` looks at: one function a part, each yielding what it found and what to do about it.

It changes nothing, and one part that is broken does not keep the others from being looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from graphrun.cli.session import open_reader, settings_of, wanted_by
from graphrun.cli.terminal import startable
from graphrun.client import Client
from graphrun.engine.attendance import attendance
from graphrun.engine.loading import load_tasks
from graphrun.errors import BrokerDownError, GraphrunError, RegistryError
from graphrun.execution.state import NodeState, RunState
from graphrun.registry import default_registry
from graphrun.settings import Settings, masked
from graphrun.storage import migrate
from graphrun.storage.database import Database

_PING_SECONDS = 1.5
_DAY = 24 * 3600
_RUNS = 20


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; ``remedy`` is empty where nothing is to be done."""

    level: Level
    name: str
    text: str
    remedy: str = ""

    def line(self) -> str:
        """Return the finding as one line."""
        remedy = f" -> {self.remedy}" if self.remedy else ""
        return f"{self.level.value:<5}{self.name:<16} {' '.join(self.text.split())}{remedy}"

    def to_document(self) -> dict[str, str]:
        """Return the finding as JSON."""
        return {"level": self.level.value, "name": self.name, "text": self.text, "remedy": self.remedy}


def examine(app_name: str | None, tasks: Iterable[str], database: str | None) -> Iterator[Check]:
    """Look at everything that a run needs, in the order in which it is needed."""
    try:
        for name in tasks:
            load_tasks(name)
        settings = settings_of(database)
        app = _named_app(app_name) if app_name else Client(settings).engine.app
    except GraphrunError as error:
        yield Check(Level.FAIL, "settings", str(error), "correct it; nothing else was looked at")
        return
    yield Check(Level.OK, "settings", f"queue {settings.queue}, gates on {settings.control_queue}")
    yield _database(settings)
    broker = _broker(app, settings)
    yield broker
    backend = _backend(app)
    yield backend
    if backend.level is Level.OK:
        yield from _eviction(app)
    yield from _app_settings(app)
    yield _remap()
    if broker.level is Level.OK:
        yield from _workers(app, settings)


def _named_app(name: str) -> Any:
    home, _, attribute = name.rpartition(":")
    if not home:
        raise RegistryError(f"--app {name}: say MODULE:APP or file.py:APP")
    app = getattr(load_tasks(home), attribute, None)
    if not hasattr(app, "conf") or not hasattr(app, "control"):
        raise RegistryError(f"--app {name}: {home} has no Celery app of the name {attribute!r}")
    return app


def _database(settings: Settings) -> Check:
    shown = masked(settings.database_url)
    remedy = "graphrun db upgrade"
    try:
        opened = Database(settings.database_url)
        if opened.is_new_file():
            return Check(Level.WARN, "database", f"{shown} is not there yet", f"{remedy}, or the first run makes it")
        stands, needed = migrate.current(opened), migrate.head()
        opened.dispose()
    except Exception as error:  # noqa: BLE001 - drivers raise what they like; the finding is that it cannot be used
        return Check(Level.FAIL, "database", f"{shown}: {_brief(error)}", "is the server up, and the URL right?")
    if stands == needed:
        return Check(Level.OK, "database", f"{shown}, schema {stands}")
    if not migrate.is_known(stands):
        remedy = "install the graphrun that made it, or give another database"
    return Check(Level.FAIL, "database", f"{shown}: schema {stands or 'none'}, needed is {needed}", remedy)


def _broker(app: Any, settings: Settings) -> Check:
    shown = masked(str(app.conf.broker_url or app.connection_for_write().as_uri()))
    try:
        with app.connection_for_write(connect_timeout=2.0) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=3.0)
    except Exception as error:  # noqa: BLE001 - transports raise what they like; the finding is that it is not there
        remedy = "graphrun up starts one" if startable(settings.broker_url) else "is it up, and the URL right?"
        return Check(Level.FAIL, "broker", f"{shown} cannot be reached: {_brief(error)}", remedy)
    return Check(Level.OK, "broker", shown)


def _backend(app: Any) -> Check:
    client = getattr(app.backend, "client", None)
    if client is None or not hasattr(client, "ping"):
        kind = type(app.backend).__name__
        return Check(Level.FAIL, "result backend", f"{kind} cannot count chords", "set GRAPHRUN_RESULT_URL to a Redis")
    shown = app.backend.as_uri()
    try:
        client.ping()
    except Exception as error:  # noqa: BLE001 - the finding is that it is not there, whatever the driver raised
        return Check(Level.FAIL, "result backend", f"{shown}: {_brief(error)}", "is it up, and the URL right?")
    return Check(Level.OK, "result backend", shown)


def _eviction(app: Any) -> Iterator[Check]:
    """Warn of a Redis that drops keys when it is full: with them go messages and the counts of chords."""
    try:
        policy = app.backend.client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    except Exception:  # noqa: BLE001 - hosted servers refuse CONFIG; then there is nothing to say
        return
    if policy not in ("noeviction", b"noeviction"):
        yield Check(Level.WARN, "result backend", f"maxmemory-policy is {policy}", "set it to noeviction")


def _app_settings(app: Any) -> Iterator[Check]:
    faults = list(_unsafe(app.conf))
    yield from faults
    if not faults:
        yield Check(Level.OK, "Celery settings", f"{len(_RULES) + 2} looked at, all safe")


def _at_least(seconds: float) -> Callable[[Any], bool]:
    return lambda value: value is not None and value >= seconds


# (setting, what is safe, how bad it is otherwise, the remedy): the hazards H1 to H17 of Celery.
_RULES: tuple[tuple[str, Callable[[Any], bool], Level, str], ...] = (
    ("task_always_eager", lambda value: not value, Level.FAIL, "False; tests use Graph.run()"),
    ("accept_content", lambda value: list(value) == ["json"], Level.WARN, "['json']: pickle runs what it is sent"),
    ("result_chord_expires", _at_least(_DAY), Level.WARN, "longer than the longest wave, or its gate is lost"),
    ("worker_deduplicate_successful_tasks", lambda value: not value, Level.FAIL, "False: it hangs chords"),
    ("worker_prefetch_multiplier", lambda value: value == 1, Level.WARN, "1: else waiting nodes sit in one worker"),
    ("worker_soft_shutdown_timeout", _at_least(1), Level.WARN, "30: else SIGTERM cuts nodes off"),
    ("broker_connection_retry_on_startup", bool, Level.WARN, "True: else a worker ends when the broker is late"),
    ("result_serializer", lambda value: value == "json", Level.WARN, "'json'"),
)


def _unsafe(conf: Any) -> Iterator[Check]:
    for name, is_safe, level, remedy in _RULES:
        if not is_safe(conf.get(name)):
            yield Check(level, "Celery settings", f"{name} is {conf.get(name)!r}", remedy)
    transport = conf.broker_transport_options or {}
    if str(conf.broker_url or "").startswith(("redis", "rediss", "unix", "socket", "sentinel")):
        visibility = transport.get("visibility_timeout", 3600)
        if visibility < _DAY:
            text = f"visibility_timeout is {visibility} s: a longer node runs twice"
            yield Check(Level.WARN, "Celery settings", text, f"broker_transport_options visibility_timeout {_DAY}")
    if conf.task_ignore_result:
        yield Check(Level.FAIL, "Celery settings", "task_ignore_result is True", "False: chords count results")


def _remap() -> Check:
    if os.environ.get("REMAP_SIGTERM") in (None, "SIGQUIT"):
        return Check(Level.OK, "SIGTERM", "graphrun worker gives running nodes time to end")
    return Check(Level.WARN, "SIGTERM", f"REMAP_SIGTERM is {os.environ['REMAP_SIGTERM']}", "unset it, or say SIGQUIT")


def _workers(app: Any, settings: Settings) -> Iterator[Check]:
    try:
        found = attendance(app, seconds=_PING_SECONDS)
    except (BrokerDownError, OSError) as error:
        yield Check(Level.FAIL, "workers", _brief(error), "try again: the broker went away")
        return
    if not found.workers:
        yield Check(Level.WARN, "workers", "none answers", "graphrun worker")
        return
    yield Check(Level.OK, "workers", f"{len(found.workers)} answer: {', '.join(found.workers)}")
    for queue in (settings.queue, settings.control_queue):
        if queue not in found.queues:
            yield Check(Level.FAIL, "queues", f"no worker serves {queue}", f"graphrun worker --queues {queue}")
    for queue in default_registry().queues():
        if queue not in found.queues:
            yield Check(Level.WARN, "queues", f"no worker serves {queue}", f"graphrun worker --queues {queue}")
    for text, remedy in found.missing(_queued(settings)):
        yield Check(Level.FAIL, "queued nodes", text, remedy)


def _queued(settings: Settings) -> list[tuple[str, str]]:
    """Return queue and task of the nodes that wait for a worker, in the newest runs that go on."""
    try:
        with open_reader(settings.database_url) as client:  # it makes no file
            runs = [client.run(row.run_id) for row in client.runs(state=RunState.RUNNING, limit=_RUNS)]
            queued = [node for run in runs for node in run.nodes() if node.state is NodeState.QUEUED]
    except GraphrunError:
        return []  # what is wrong with the database stands in a line of its own
    return wanted_by(queued, settings)


def _brief(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
