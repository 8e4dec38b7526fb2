"""graphrun: run a graph of tasks on Celery, wave by wave, and keep what really ran in SQL beside what was asked.

The names below are the public API. They are loaded when they are first used: importing the package loads neither
Celery nor SQLAlchemy nor Pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrun.build import Graph as Graph
    from graphrun.build import NodeHandle as NodeHandle
    from graphrun.client import Client as Client
    from graphrun.client import RunHandle as RunHandle
    from graphrun.engine.app import install as install
    from graphrun.errors import GraphrunError as GraphrunError
    from graphrun.model.spec import GraphSpec as GraphSpec
    from graphrun.registry import Context as Context
    from graphrun.registry import Done as Done
    from graphrun.registry import Evolved as Evolved
    from graphrun.registry import Failed as Failed
    from graphrun.registry import TaskRegistry as TaskRegistry
    from graphrun.registry import condition as condition
    from graphrun.registry import task as task
    from graphrun.settings import Settings as Settings

__version__ = "0.1.0"

_HOMES = {
    "Client": "graphrun.client",
    "Context": "graphrun.registry",
    "Done": "graphrun.registry",
    "Evolved": "graphrun.registry",
    "Failed": "graphrun.registry",
    "Graph": "graphrun.build",
    "GraphSpec": "graphrun.model.spec",
    "GraphrunError": "graphrun.errors",
    "NodeHandle": "graphrun.build",
    "RunHandle": "graphrun.client",
    "Settings": "graphrun.settings",
    "TaskRegistry": "graphrun.registry",
    "condition": "graphrun.registry",
    "install": "graphrun.engine.app",
    "task": "graphrun.registry",
}

__all__ = [
    "Client",
    "Context",
    "Done",
    "Evolved",
    "Failed",
    "Graph",
    "GraphSpec",
    "GraphrunError",
    "NodeHandle",
    "RunHandle",
    "Settings",
    "TaskRegistry",
    "condition",
    "install",
    "task",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphrun' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
