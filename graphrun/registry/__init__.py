"""Knows which Python functions are tasks, what their signatures accept, and what they may hand back (X1).

It answers for ``@task``, ``@condition``, `TaskRegistry`, the checking of literal parameters, the decoding of arguments,
and the types that a node body meets. It must not import Celery or SQL, run anything, or know graphs and runs.
"""

from __future__ import annotations

from graphrun.registry.binding import Fault
from graphrun.registry.catalog import Condition, TaskRegistry
from graphrun.registry.context import Context
from graphrun.registry.decorators import condition, default_registry, task
from graphrun.registry.returns import Done, Evolved, Failed, Return, normalise_return
from graphrun.registry.signature import Parameter, ParameterKind
from graphrun.registry.task import AnyTask, Task, TaskOptions

__all__ = [
    "AnyTask",
    "Condition",
    "Context",
    "Done",
    "Evolved",
    "Failed",
    "Fault",
    "Parameter",
    "ParameterKind",
    "Return",
    "Task",
    "TaskOptions",
    "TaskRegistry",
    "condition",
    "default_registry",
    "normalise_return",
    "task",
]
