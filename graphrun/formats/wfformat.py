"""WfFormat 1.3, 1.4 and 1.5 of WfCommons: measured scientific workflows.

Since 1.5 a task's ``name`` repeats and its ``id`` does not; specification and execution are separate lists, joined on
the id. Before, ``workflow.tasks`` (or ``jobs``) held both, and tasks named each other by ``name``, unique then.

Edges are given as ``parents``, as ``children`` or as both; where the two disagree the union would hide a fault of the
file, so it is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrun.errors import FormatError
from graphrun.formats.measured import Mode, measured_node
from graphrun.model.parts import MAX_NAME_CHARACTERS
from graphrun.model.spec import GraphSpec

_BY_NAME = ("1.3", "1.4")
_VERSIONS = (*_BY_NAME, "1.5")


def matches(document: Any) -> bool:
    """Say whether a document looks like WfFormat."""
    return isinstance(document, dict) and "schemaVersion" in document and isinstance(document.get("workflow"), dict)


def read(
    document: Any, source: str, *, time_scale: float = 1.0, cap_seconds: float | None = None, mode: Mode = "sleep"
) -> GraphSpec:
    """Read a document; each task becomes a node that takes the measured time, scaled.

    Args:
        document: the parsed file.
        source: what to call it in errors.
        time_scale: factor on every measured time.
        cap_seconds: no node takes longer than this.
        mode: ``sleep``, or ``burn`` CPU time.

    Raises:
        FormatError: the version is not read here, an id is used twice, or the edges are at odds; every fault is named.
    """
    version = ".".join(str(document["schemaVersion"]).split(".")[:2])
    if version not in _VERSIONS:
        raise FormatError(f"{source}: WfFormat {document['schemaVersion']} is not read; {', '.join(_VERSIONS)} are")
    tasks, faults = _tasks(document["workflow"], source, by_name=version in _BY_NAME)
    seconds, more = _seconds(document["workflow"], tasks)
    heads, still_more = _heads(tasks)
    if faults := [*faults, *more, *still_more]:
        raise FormatError(f"{source}: " + "; ".join(faults))
    limit = float("inf") if cap_seconds is None else cap_seconds
    nodes = [
        measured_node(
            task.key,
            heads[task.key],
            seconds=max(0.0, min(seconds.get(task.key, 0.0) * time_scale, limit)),
            mode=mode,
        ).to_document()
        for task in tasks
    ]
    name = str(document.get("name") or source)[:MAX_NAME_CHARACTERS]
    return GraphSpec.from_document({"name": name, "nodes": nodes}, source=source)


@dataclass(frozen=True, slots=True)
class _Task:
    """A task as it stands in the file; ``parents`` and ``children`` are None where it does not say."""

    key: str
    place: str
    parents: tuple[str, ...] | None
    children: tuple[str, ...] | None
    entry: Mapping[str, Any]


def _tasks(workflow: Mapping[str, Any], source: str, *, by_name: bool) -> tuple[list[_Task], list[str]]:
    specification = workflow.get("specification")
    entries = specification.get("tasks") if isinstance(specification, dict) else None
    if entries is None:
        entries = workflow.get("tasks", workflow.get("jobs"))
    if not isinstance(entries, list):
        raise FormatError(f"{source}: neither workflow.specification.tasks nor workflow.tasks is a list")
    faults: list[str] = []
    named: list[tuple[str, str, Mapping[str, Any]]] = []
    keys: dict[str, str] = {}
    for number, entry in enumerate(entries):
        place = f"tasks[{number}]"
        key = entry.get("id", entry.get("name")) if isinstance(entry, dict) else None
        if not isinstance(key, str):
            faults.append(f"{place} has no id")
            continue
        if key in keys:
            faults.append(f"{place}: task id {key!r} is used twice")
        keys[key] = key
        named.append((key, place, entry))
    if by_name:
        names = [(str(entry["name"]), key) for key, _place, entry in named if "name" in entry]
        twice = {name for name, count in Counter(name for name, _key in names).items() if count > 1}
        keys = {name: key for name, key in names if name not in twice} | keys
    tasks = [
        _Task(
            key,
            place,
            _keys(entry, "parents", place, keys, faults),
            _keys(entry, "children", place, keys, faults),
            entry,
        )
        for key, place, entry in named
    ]
    return tasks, faults


def _keys(
    entry: Mapping[str, Any], field: str, place: str, keys: Mapping[str, str], faults: list[str]
) -> tuple[str, ...] | None:
    """Return the tasks that a task names, by id."""
    named = entry.get(field)
    if named is None:
        return None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        faults.append(f"{place}.{field}: a list of ids is wanted")
        return None
    faults += [f"{place}.{field}: {name!r} is no task" for name in named if name not in keys]
    return tuple(dict.fromkeys(keys[name] for name in named if name in keys))


def _seconds(workflow: Mapping[str, Any], tasks: list[_Task]) -> tuple[dict[str, float], list[str]]:
    """Return measured seconds by id, from the execution list, or from the tasks themselves in older versions."""
    execution = workflow.get("execution")
    entries: object = [task.entry for task in tasks]
    if isinstance(execution, dict):
        entries = execution.get("tasks", [])
    if not isinstance(entries, list):
        return {}, ["workflow.execution.tasks: a list is wanted"]
    seconds: dict[str, float] = {}
    faults: list[str] = []
    for number, entry in enumerate(entries):
        key = entry.get("id", entry.get("name")) if isinstance(entry, dict) else None
        if not isinstance(key, str):
            faults.append(f"execution.tasks[{number}] has no id")
            continue
        measured = entry.get("runtimeInSeconds", entry.get("runtime"))
        if measured is None:
            continue
        if isinstance(measured, bool) or not isinstance(measured, int | float):
            faults.append(f"the run time of task {key!r} is {measured!r}, which is no number")
            continue
        seconds[key] = float(measured)
    return seconds, faults


def _heads(tasks: list[_Task]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the heads of each task in the order they are named, and where parents and children disagree."""
    silent = {task.key for task in tasks if task.parents is None}
    childless = {task.key for task in tasks if task.children is None}
    by_parents = {(parent, task.key): None for task in tasks for parent in task.parents or ()}
    by_children = {(task.key, child): None for task in tasks for child in task.children or ()}
    faults = [
        f"edge {head} -> {tail} is given by parents only"
        for head, tail in by_parents
        if head not in childless and (head, tail) not in by_children
    ]
    faults += [
        f"edge {head} -> {tail} is given by children only"
        for head, tail in by_children
        if tail not in silent and (head, tail) not in by_parents
    ]
    heads: dict[str, list[str]] = {task.key: [] for task in tasks}
    for head, tail in by_parents | by_children:
        heads[tail].append(head)
    return heads, faults
