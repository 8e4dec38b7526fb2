"""``@task`` and ``@condition``, and the one default registry that they fill.

It answers for how a function is declared. The default registry is the package's only module-level state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType, FrameType
from typing import Any, ParamSpec, TypeVar, overload

from graphrun.errors import RegistryError
from graphrun.registry.catalog import Condition, TaskRegistry
from graphrun.registry.task import AnyTask, Task, TaskOptions, default_name

P = ParamSpec("P")
R = TypeVar("R")

_DEFAULT = TaskRegistry()


def default_registry() -> TaskRegistry:
    """The registry that ``@task`` and ``@condition`` fill unless they are given another."""
    return _DEFAULT


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(
    *,
    name: str | None = ...,
    queue: str | None = ...,
    owner: str | None = ...,
    timeout_seconds: float | EllipsisType | None = ...,
    soft_timeout_seconds: float | None = ...,
    max_attempts: int = ...,
    priority: int | None = ...,
    resources: Sequence[str] = ...,
    verify: AnyTask | str | None = ...,
    done_when: Condition | str | None = ...,
    registry: TaskRegistry | None = ...,
) -> Callable[[Callable[P, R]], Task[P, R]]: ...


def task(  # noqa: PLR0913 - the options of a task, each by name
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    queue: str | None = None,
    owner: str | None = None,
    timeout_seconds: float | EllipsisType | None = ...,
    soft_timeout_seconds: float | None = None,
    max_attempts: int = 2,
    priority: int | None = None,
    resources: Sequence[str] = (),
    verify: AnyTask | str | None = None,
    done_when: Condition | str | None = None,
    registry: TaskRegistry | None = None,
) -> Any:
    """Declare a function a task, bare (``@task``) or with options (``@task(queue="io")``).

    Args:
        function: given by Python when it is used bare.
        name: default ``module.qualname``.
        queue: Celery queue.
        owner: agent that owns the nodes.
        timeout_seconds: limit of one attempt, in seconds; None is unbounded, left out it is an hour.
        soft_timeout_seconds: when the body is asked to end, in seconds.
        max_attempts: tries in all.
        priority: 0 to 9, 9 first.
        resources: names that two nodes of one wave never share.
        verify: the task, or its name, that verifies the output (X16).
        done_when: ``"output"``, or the condition, or its name, that says that nothing is left to do (X10).
        registry: where to register; the default registry if left out.

    Returns:
        The `Task`, in place of the function.

    Raises:
        RegistryError: the signature or an option cannot be used, or another function has the name.
    """
    if isinstance(resources, str):
        raise RegistryError(f"resources is a list of names: [{resources!r}]")
    options = TaskOptions(
        queue=queue,
        owner=owner,
        timeout_seconds=timeout_seconds,
        soft_timeout_seconds=soft_timeout_seconds,
        max_attempts=max_attempts,
        priority=priority,
        resources=tuple(resources),
        verify=_name_of(verify, "verify", Task),
        done_when=_name_of(done_when, "done_when", Condition),
    )

    def declare(body: Callable[..., Any], frame: FrameType | None) -> AnyTask:
        made: AnyTask = Task(body, name=name, options=options, local_names=_names_at(frame))
        (_DEFAULT if registry is None else registry).register(made)
        return made

    frame = inspect.currentframe()
    if function is not None:
        return declare(function, frame.f_back if frame else None)

    def decorate(body: Callable[..., Any]) -> AnyTask:
        here = inspect.currentframe()
        return declare(body, here.f_back if here else None)

    return decorate


@overload
def condition(function: Callable[..., bool], /) -> Condition: ...


@overload
def condition(
    *, name: str | None = ..., registry: TaskRegistry | None = ...
) -> Callable[[Callable[..., bool]], Condition]: ...


def condition(
    function: Callable[..., bool] | None = None,
    /,
    *,
    name: str | None = None,
    registry: TaskRegistry | None = None,
) -> Any:
    """Declare a predicate that a graph may name, bare or with options.

    Args:
        function: given by Python when it is used bare.
        name: default ``module.qualname``.
        registry: where to register; the default registry if left out.

    Raises:
        RegistryError: another function has the name.
    """

    def declare(body: Callable[..., bool]) -> Condition:
        made = Condition(name if name is not None else default_name(body), body)
        (_DEFAULT if registry is None else registry).register_condition(made)
        return made

    return declare if function is None else declare(function)


def _name_of(given: Any, option: str, wanted: type[AnyTask | Condition]) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, wanted):
        return str(given.name)
    raise RegistryError(
        f"{option} is a name or a {wanted.__name__}; declare the function with @{wanted.__name__.lower()}"
    )


def _names_at(frame: FrameType | None) -> Mapping[str, Any]:
    """What string annotations of a function that is written inside another one may name."""
    return dict(frame.f_locals) if frame is not None and frame.f_locals is not frame.f_globals else {}
