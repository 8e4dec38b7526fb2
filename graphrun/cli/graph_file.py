"""FILE on a command line: reading a graph from a module, a Python file or a document, with the tasks that it needs.

It answers for the spellings of FILE. How a document is read is the business of ``formats``, importing that of
``engine.loading``; whether the graph may run is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import graphrun.builtin  # noqa: F401 - documents may name its tasks without importing anything
from graphrun.build import Graph
from graphrun.engine.loading import load_tasks
from graphrun.errors import GraphError, GraphrunError
from graphrun.model.spec import GraphSpec

USUAL_NAME = "graph"
_DOCUMENTS = (".json", ".yaml", ".yml", ".gz")


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """A graph, and what a worker has to import to know its tasks: modules and absolute ``.py`` files."""

    spec: GraphSpec
    tasks: tuple[str, ...]


def load_graph(source: str, tasks: Iterable[str] = ()) -> LoadedGraph:
    """Read FILE, after importing the modules with its tasks.

    Raises:
        GraphrunError: it is not there, cannot be imported, or holds no graph.
    """
    names = [_import(name) for name in tasks]
    home, attribute = _split(source)
    if home is None:
        path = _document(source)
        from graphrun.formats import read_graph  # noqa: PLC0415 - a graph in Python needs no reader of documents

        return LoadedGraph(read_graph(path), tuple(names))
    names.append(_import(home))
    found = _found(load_tasks(home), attribute, home)
    return LoadedGraph(found if isinstance(found, GraphSpec) else found.freeze(), tuple(dict.fromkeys(names)))


def absolute(name: str) -> str:
    """Return a task module's name as a process with another working directory finds it."""
    return str(Path(name).resolve()) if name.endswith(".py") else name


def _import(name: str) -> str:
    load_tasks(name)
    return absolute(name)


def _split(source: str) -> tuple[str | None, str | None]:
    """Return (module or ``.py`` file, name in it), or (None, None) for a document."""
    if Path(source).exists():
        return (source, None) if source.endswith(".py") else (None, None)
    head, colon, name = source.rpartition(":")
    if colon and head and name.isidentifier():
        return head, name
    if source.endswith(".py"):
        return source, None
    return None, None


def _document(source: str) -> Path:
    path = Path(source)
    if path.is_dir():
        raise GraphrunError(f"{source} is a directory; name a graph file in it")
    if not path.exists():
        is_module = source.replace(".", "").isidentifier() and path.suffix not in _DOCUMENTS
        remedy = f"; for a module say {source}:NAME" if is_module else ""
        raise GraphrunError(f"no such file: {source}{remedy}")
    return path


def _found(module: ModuleType, attribute: str | None, home: str) -> Graph | GraphSpec:
    if attribute is not None:
        if not hasattr(module, attribute):
            raise GraphError(f"{home} has no {attribute!r}{_offer(module)}")
        return _graph(getattr(module, attribute), f"{home}:{attribute}")
    if _is_graph(getattr(module, USUAL_NAME, None)) or callable(getattr(module, USUAL_NAME, None)):
        return _graph(getattr(module, USUAL_NAME), f"{home}:{USUAL_NAME}")
    names = _graphs(module)
    if len(names) != 1:
        offered = ", ".join(f"{home}:{name}" for name in names)
        none = f"{home} holds no graph; say which function makes one: {home}:NAME"
        raise GraphError(f"{home} holds {len(names)} graphs; say which: {offered}" if names else none)
    return _graph(getattr(module, names[0]), f"{home}:{names[0]}")


def _graph(value: Any, where: str) -> Graph | GraphSpec:
    if callable(value) and not _is_graph(value):
        value = _called(value, where)
        where += "()"
    if not isinstance(value, Graph | GraphSpec):
        raise GraphError(f"{where} is {_article(type(value).__name__)}, not a graph")
    return value


def _called(make: Callable[[], Any], where: str) -> Any:
    try:
        return make()
    except GraphrunError:
        raise
    except Exception as error:
        raise GraphError(f"{where}() failed: {type(error).__name__}: {error}") from error


def _is_graph(value: object) -> bool:
    return isinstance(value, Graph | GraphSpec)


def _graphs(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if _is_graph(value)]


def _offer(module: ModuleType) -> str:
    names = _graphs(module)
    return f"; it has {', '.join(names)}" if names else ""


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
