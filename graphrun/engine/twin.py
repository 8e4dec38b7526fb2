"""Plain Celery tasks as nodes, without any change to them (§3.11).

A plain task ``myapp.resize`` runs through a twin, ``graphrun:myapp.resize``, which has graphrun's base, claims, and
calls the original body under a request of its own. The original is not altered and still serves its other callers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery import Task as CeleryTask
from celery.exceptions import Ignore, Reject, Retry

from graphrun.engine.message import GATE_TASK, TWIN_PREFIX
from graphrun.engine.node_task import GateTask, NodeTask
from graphrun.errors import GraphrunError, RegistryError
from graphrun.registry import AnyTask, Task, TaskOptions, TaskRegistry


class TwinError(GraphrunError):
    """A plain Celery task asked for what only Celery's own canvas can give, such as ``replace``."""


class TwinTask(NodeTask):
    """The Celery task that runs a plain task's body as a node."""

    abstract = True
    original_name = ""

    def _invoke(self) -> Any:
        original = self.app.tasks[self.original_name]
        request_id = self.request.id

        def call(_task: AnyTask, arguments: Mapping[str, Any]) -> Any:
            return call_original(original, dict(arguments), request_id)

        return call


def is_plain(task: object) -> bool:
    """Say whether a Celery task is the user's own: neither Celery's nor graphrun's."""
    return (
        isinstance(task, CeleryTask)
        and not isinstance(task, (NodeTask, GateTask))
        and not task.name.startswith("celery.")
        and task.name != GATE_TASK
    )


def twin_name(name: str) -> str:
    """Return the name under which a plain task's twin is registered and sent."""
    return TWIN_PREFIX + name


def twin_of(original: CeleryTask) -> AnyTask:
    """Return the registry's view of a plain task: its name, its signature, its queue and its time limits."""
    function = original.run
    options = TaskOptions(queue=_queue(original), **_limits(original))
    try:
        return Task(function, name=twin_name(original.name), options=options)
    except RegistryError as error:
        raise RegistryError(f"Celery task {original.name!r} cannot be a node: {error}") from error


def register_twins(app: Celery, registry: TaskRegistry) -> None:
    """Give every plain task of an app its twin; a task whose signature cannot be a node's is left out."""
    for original in [task for task in app.tasks.values() if is_plain(task)]:
        name = twin_name(original.name)
        if name in app.tasks:
            continue
        if name not in registry:
            try:
                registry.register(twin_of(original))
            except RegistryError:
                continue  # ``*args`` cannot be bound by name; submit names the task and says so
        attributes = {"original_name": original.name, "rate_limit": original.rate_limit}
        app.register_task(type("TwinTask", (TwinTask,), {"name": name, "__module__": __name__, **attributes})())


def call_original(original: CeleryTask, arguments: dict[str, Any], request_id: str | None) -> Any:
    """Call a plain task's body under a request of its own; Retry, Ignore and Reject are failed attempts."""
    original.push_request(id=request_id, called_directly=True, args=[], kwargs=arguments, retries=0)
    try:
        with _no_replace(original):
            return original.run(**arguments)
    except (Retry, Ignore, Reject) as error:
        raise TwinError(f"the task raised {type(error).__name__}: {error}; the node's own policy retries it") from error
    finally:
        original.pop_request()


@contextmanager
def _no_replace(original: CeleryTask) -> Iterator[None]:
    def refuse(*_args: Any, **_kwargs: Any) -> None:
        raise TwinError("replace() is refused in a node: return Evolved to change the graph")

    original.__dict__["replace"] = refuse
    try:
        yield
    finally:
        original.__dict__.pop("replace", None)


def _queue(original: CeleryTask) -> str | None:
    """Return the queue that the task's own name is routed to; None where that is the app's default queue."""
    if getattr(original, "queue", None):
        return str(original.queue)
    queue = original.app.amqp.router.route({}, original.name).get("queue")
    name = getattr(queue, "name", queue)
    return None if name in (None, original.app.conf.task_default_queue) else str(name)


def _limits(original: CeleryTask) -> dict[str, Any]:
    hard, soft = original.time_limit, original.soft_time_limit
    limits: dict[str, Any] = {}
    if hard:
        limits["timeout_seconds"] = float(hard)
    if soft and (not hard or soft < hard):
        limits["soft_timeout_seconds"] = float(soft)
    return limits
