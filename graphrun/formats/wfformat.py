"""WfFormat 1.3, 1.4 and 1.5 of WfCommons: measured scientific workflows.

A task's ``name`` repeats, its ``id`` does not. Since 1.5 the specification and the execution are separate lists, joined
on the id; before, ``workflow.tasks`` (1.4 and older: ``jobs``) held both. Edges are given twice, as ``parents`` and as
``children``; where the two lists disagree the union would hide a fault of the file, so it is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphrun.errors import FormatError
from graphrun.formats.measured import Mode, measured_node
from graphrun.model.spec import GraphSpec

_VERSIONS = ("1.3", "1.4", "1.5")


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
    version = str(document["schemaVersion"])
    if not version.startswith(_VERSIONS):
        raise FormatError(f"{source}: WfFormat {version} is not read; 1.3, 1.4 and 1.5 are")
    tasks = list(_tasks(document["workflow"], source))
    seconds = _seconds(document["workflow"], tasks)
    faults = list(_faults(tasks))
    if faults:
        raise FormatError(f"{source}: " + "; ".join(faults))
    limit = float("inf") if cap_seconds is None else cap_seconds
    nodes = [
        measured_node(
            task["id"],
            dict.fromkeys(task.get("parents", [])),
            seconds=max(0.0, min(seconds.get(task["id"], 0.0) * time_scale, limit)),
            mode=mode,
        ).to_document()
        for task in tasks
    ]
    name = str(document.get("name") or source)[:200]
    return GraphSpec.from_document({"name": name, "nodes": nodes}, source=source)


def _tasks(workflow: dict[str, Any], source: str) -> Iterator[dict[str, Any]]:
    specification = workflow.get("specification")
    tasks = specification.get("tasks") if isinstance(specification, dict) else None
    if tasks is None:
        tasks = workflow.get("tasks", workflow.get("jobs"))
    if not isinstance(tasks, list):
        raise FormatError(f"{source}: neither workflow.specification.tasks nor workflow.tasks is a list")
    for number, task in enumerate(tasks):
        if not isinstance(task, dict) or not isinstance(task.get("id", task.get("name")), str):
            raise FormatError(f"{source}: task {number} has no id")
        yield {**task, "id": task.get("id", task.get("name"))}


def _seconds(workflow: dict[str, Any], tasks: list[dict[str, Any]]) -> dict[str, float]:
    """Return measured seconds by id: from the execution list, or from the task itself in older versions."""
    execution = workflow.get("execution")
    entries = execution.get("tasks", []) if isinstance(execution, dict) else tasks
    return {
        str(entry.get("id", entry.get("name"))): float(entry.get("runtimeInSeconds", entry.get("runtime", 0.0)) or 0.0)
        for entry in entries
    }


def _faults(tasks: list[dict[str, Any]]) -> Iterator[str]:
    known: set[str] = set()
    for task in tasks:
        if task["id"] in known:
            yield f"task id {task['id']!r} is used twice"
        known.add(task["id"])
    by_parents = {(parent, task["id"]) for task in tasks for parent in task.get("parents", [])}
    by_children = {(task["id"], child) for task in tasks for child in task.get("children", [])}
    for end in sorted({end for pair in by_parents | by_children for end in pair} - known):
        yield f"{end!r} is named as parent or child and is no task"
    if all("children" in task for task in tasks):
        for head, tail in sorted(by_parents ^ by_children):
            where = "parents only" if (head, tail) in by_parents else "children only"
            yield f"edge {head} -> {tail} is given by {where}"
