"""One registered function: its name, its signature, and the options that its author gave.

It answers for what a node may be given and how it is called. It must not run it for a graph: the engine does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import EllipsisType, MappingProxyType
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from graphrun.errors import RegistryError
from graphrun.model.spec import Policy
from graphrun.registry import binding
from graphrun.registry.binding import Fault
from graphrun.registry.signature import Parameter, is_async, read_signature

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What the author said about every node of a task; a node's own policy says more.

    Attributes:
        queue: Celery queue; None is the default one.
        owner: agent that owns the nodes; None is ``local``.
        timeout_seconds: running time of one attempt, in seconds; None is unbounded, ``...`` leaves it to the settings.
        soft_timeout_seconds: when the body is asked to end, in seconds; below the timeout.
        max_attempts: how often a failing node is tried in all; 2 is once and its retry (X6).
        priority: 0 to 9, 9 first (H14).
        resources: names of what no two nodes of one wave may use together (X2).
        verify: name of the task that verifies the output (X16).
        done_when: ``"output"`` or the name of a condition: the node counts as done before it starts (X10).
    """

    queue: str | None = None
    owner: str | None = None
    timeout_seconds: float | EllipsisType | None = ...
    soft_timeout_seconds: float | None = None
    max_attempts: int = 2
    priority: int | None = None
    resources: tuple[str, ...] = ()
    verify: str | None = None
    done_when: str | None = None

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise RegistryError(fault)

    def _faults(self) -> list[str]:
        timeout, soft = self.timeout_seconds, self.soft_timeout_seconds
        checks = {
            f"timeout_seconds is above 0 or None, not {timeout}": isinstance(timeout, int | float) and timeout <= 0,
            f"soft_timeout_seconds is above 0 or None, not {soft}": soft is not None and soft <= 0,
            f"soft_timeout_seconds {soft} is not below timeout_seconds {timeout}": soft is not None
            and isinstance(timeout, int | float)
            and soft >= timeout,
            f"max_attempts is 1 or more, not {self.max_attempts}": self.max_attempts < 1,
            f"priority is 0 to 9, 9 first, not {self.priority}": self.priority is not None
            and not 0 <= self.priority <= 9,  # noqa: PLR2004 - the scale of H14
        }
        return [message for message, broken in checks.items() if broken]

    def policy(self, default_timeout_seconds: float | None = Policy().timeout_seconds) -> Policy:
        """The policy of a node that says nothing itself."""
        timeout = default_timeout_seconds if isinstance(self.timeout_seconds, EllipsisType) else self.timeout_seconds
        return Policy(
            max_attempts=self.max_attempts,
            timeout_seconds=timeout,
            soft_timeout_seconds=self.soft_timeout_seconds,
            queue=self.queue,
            priority=self.priority,
        )


class Task(Generic[P, R]):
    """A function that can be a node; calling it calls the function.

    Attributes:
        name: unique in its registry; ``module.qualname`` unless given.
        function: the body as written.
        is_async: whether the body is a coroutine function.
        parameters: name -> `Parameter`, in declared order, without the context.
        return_annotation: the type of the output, without `Done`, `Failed` and `Evolved`.
        wants_context: the parameter that is annotated `Context`, or None.
        defaults: the options given to ``@task``.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        options: TaskOptions | None = None,
        local_names: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.name = name if name is not None else default_name(function)
        if not self.name:
            raise RegistryError("a task's name is not empty")
        self.function = function
        self.is_async = is_async(function)
        self.defaults = options or TaskOptions()
        self._signature = read_signature(self.name, function, local_names)
        functools.update_wrapper(self, function, updated=())

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name -> `Parameter`, in declared order, without the context."""
        return self._signature.parameters

    @property
    def return_annotation(self) -> Any:
        """The type of the output, without `Done`, `Failed` and `Evolved`; `Any` if there is none."""
        return self._signature.return_annotation

    @property
    def wants_context(self) -> str | None:
        """The name of the parameter that is annotated `Context`, or None."""
        return self._signature.wants_context

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, here and now, without a graph."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Task({self.name!r})"

    def bind(
        self, params: Mapping[str, Any], is_reference: Callable[[object], bool]
    ) -> tuple[dict[str, Any], list[Fault]]:
        """Check literal parameters as Pydantic converts them, and encode them.

        Args:
            params: name -> value; a value may be a reference, or hold some inside lists, tuples and dicts.
            is_reference: tells the references: they are left where they stand, and what holds one is checked again when
                the node runs. A tuple that holds one becomes a list until then.

        Returns:
            The parameters in plain form with the references in place, and every fault: unknown and missing names,
            values that do not fit or cannot be stored. The parameters are of use only if there is no fault.
        """
        return binding.bind(self._signature, params, is_reference)

    def call_arguments(self, values: Mapping[str, Any]) -> dict[str, object]:
        """Decode plain values, references replaced by outputs, by the annotations; the context is not among them.

        Raises:
            RegistryError: ``parameter 'x' of task T: ...``, when a value does not fit or is missing.
        """
        return binding.call_arguments(self.name, self._signature, values)


AnyTask: TypeAlias = Task[..., Any]


def default_name(function: Callable[..., Any]) -> str:
    """``module.qualname`` of a function.

    Raises:
        RegistryError: it has none, as a ``functools.partial``.
    """
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not qualname:
        raise RegistryError(f"{function!r} has no name of its own; give name=")
    return f"{module}.{qualname}"
