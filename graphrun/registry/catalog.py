"""The registry: task name -> task, condition name -> predicate, and names declared to live elsewhere (X1).

It answers for uniqueness and for finding. It must not import modules to find a task: whoever starts a worker does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from graphrun.errors import RegistryError
from graphrun.registry.binding import close_to
from graphrun.registry.task import AnyTask


@dataclass(frozen=True, slots=True)
class Condition:
    """A named predicate; calling it calls the function."""

    name: str
    function: Callable[..., bool]

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        """Call the function."""
        return self.function(*args, **kwargs)


class TaskRegistry:
    """The tasks and conditions that one process knows."""

    def __init__(self) -> None:
        self._tasks: dict[str, AnyTask] = {}
        self._conditions: dict[str, Condition] = {}
        self._external: set[str] = set()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return the registry itself: the tasks of a process are not copied with a graph that names them."""
        return self

    def register(self, task: AnyTask) -> None:
        """Add a task; the same function defined again, as by a reload, replaces itself.

        Raises:
            RegistryError: another function has the name.
        """
        known = self._tasks.get(task.name)
        if known is not None:
            _require_same("task", task.name, known.function, task.function)
        self._tasks[task.name] = task
        self._external.discard(task.name)

    def external(self, name: str) -> None:
        """Declare that workers elsewhere know the task `name`, so that a graph may use it without its signature."""
        if name not in self._tasks:
            self._external.add(name)

    def is_external(self, name: str) -> bool:
        """Whether `name` was only declared, and its signature is not known here."""
        return name in self._external

    def get(self, name: str) -> AnyTask:
        """The task of that name.

        Raises:
            RegistryError: there is none here; the message names the nearest, or says that it is external.
        """
        if name in self._tasks:
            return self._tasks[name]
        if name in self._external:
            raise RegistryError(f"task {name!r} is declared external: its function is not in this process")
        raise RegistryError(
            f"unknown task {name!r}{close_to(name, [*self._tasks, *self._external]) or '.'} "
            "Import the module that defines it, or declare it with registry.external(name)."
        )

    def __contains__(self, name: object) -> bool:
        """Whether a graph may name this task: it is registered, or declared external."""
        return name in self._tasks or name in self._external

    def names(self) -> tuple[str, ...]:
        """The registered names in order, without the external ones."""
        return tuple(sorted(self._tasks))

    def queues(self) -> tuple[str, ...]:
        """The queues that the registered tasks name, in order: what a worker of these tasks has to serve."""
        return tuple(sorted({task.defaults.queue for task in self._tasks.values() if task.defaults.queue}))

    def register_condition(self, condition: Condition) -> None:
        """Add a condition; the same function defined again replaces itself.

        Raises:
            RegistryError: another function has the name.
        """
        known = self._conditions.get(condition.name)
        if known is not None:
            _require_same("condition", condition.name, known.function, condition.function)
        self._conditions[condition.name] = condition

    def condition(self, name: str) -> Condition:
        """The condition of that name.

        Raises:
            RegistryError: there is none.
        """
        if name not in self._conditions:
            raise RegistryError(
                f"unknown condition {name!r}{close_to(name, self._conditions)} Define it with @condition."
            )
        return self._conditions[name]

    def condition_names(self) -> tuple[str, ...]:
        """The names of all conditions, in order."""
        return tuple(sorted(self._conditions))


def _require_same(what: str, name: str, known: Callable[..., Any], new: Callable[..., Any]) -> None:
    if known is new or _origin(known) == _origin(new):
        return
    raise RegistryError(
        f"{what} {name!r} is defined twice: {_place(known)} and {_place(new)}; give one of them another name="
    )


def _origin(function: Callable[..., Any]) -> tuple[object, ...]:
    """What stays the same when a module is loaded again; a notebook's cells are files of their own, so not theirs."""
    module = getattr(function, "__module__", None)
    code = getattr(function, "__code__", None)
    file = None if module == "__main__" else getattr(code, "co_filename", None)
    return module, getattr(function, "__qualname__", id(function)), file


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
