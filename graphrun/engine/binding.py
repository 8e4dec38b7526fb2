"""Binding what upstream nodes returned to a node's parameters, by key, in declared order (X4, X9).

It works on the stored plain form; the task's signature decodes it afterwards. No input or output here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrun.codec import from_plain
from graphrun.errors import GraphrunError
from graphrun.execution.run import Resolution
from graphrun.registry import AnyTask

_STEP = re.compile(r"""\.?(?P<name>[^\W\d]\w*)|\[(?P<index>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]""")
_ABSENT = object()


class InputError(GraphrunError):
    """An upstream output does not have the part that a parameter asks for."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """How one upstream node's edge into a parameter resolved; ``load`` reads its plain output."""

    resolution: Resolution
    cause: str | None
    load: Callable[[], Any]


@dataclass(slots=True)
class Bound:
    """Plain values by parameter, and the upstream nodes that gave none, with the cause (``ctx.missing_inputs``)."""

    values: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def bind_inputs(params: Mapping[str, Any], upstream: Mapping[tuple[str, str], Upstream], task: AnyTask) -> Bound:
    """Replace every reference in parameters by the output it stands for.

    A parameter that gets nothing is left to its default, else becomes None if its type allows it; an absent element of
    a list or dict is left out (X4).

    Args:
        params: the node's parameters, plain.
        upstream: by (head key, parameter).
        task: whose signature says what may be absent.

    Raises:
        InputError: a path is not in the output it points into.
    """
    bound = Bound()
    # An edge that an evolution adds onto another node gives its head's whole output; that node's spec is not rewritten.
    added = {name: {"$node": head} for head, name in upstream if name and name not in params}
    for name, value in {**params, **added}.items():
        resolved = _resolve(value, name, upstream, bound.missing)
        if resolved is not _ABSENT:
            bound.values[name] = resolved
            continue
        parameter = task.parameters.get(name)
        if parameter is not None and not parameter.has_default:
            bound.values[name] = None
    for (head, _parameter), item in upstream.items():
        if item.resolution is not Resolution.DELIVERED:
            bound.missing.setdefault(head, item.cause or item.resolution.value)
    return bound


def _resolve(value: Any, parameter: str, upstream: Mapping[tuple[str, str], Upstream], missing: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        if "$node" in value:
            return _referred(value, parameter, upstream, missing)
        if any(isinstance(key, str) and key.startswith("$") for key in value) and "$literal" not in value:
            return value
        if "$literal" in value:
            return value
        items = {key: _resolve(item, parameter, upstream, missing) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _ABSENT}
    if isinstance(value, (list, tuple)):
        elements = [_resolve(item, parameter, upstream, missing) for item in value]
        return [item for item in elements if item is not _ABSENT]
    return value


def _referred(
    reference: Mapping[str, Any],
    parameter: str,
    upstream: Mapping[tuple[str, str], Upstream],
    missing: dict[str, str],
) -> Any:
    head = reference["$node"]
    item = upstream.get((head, parameter))
    if item is None:
        raise InputError(f"parameter {parameter!r} reads node {head!r}, which has no edge to this node")
    if item.resolution is not Resolution.DELIVERED:
        missing[head] = item.cause or item.resolution.value
        return _ABSENT
    plain = item.load()
    path = reference.get("path")
    return plain if not path else part_of(plain, path, head)


def part_of(plain: Any, path: str, head: str) -> Any:
    """Return the part of a plain output that a path such as ``items[0].name`` names.

    Raises:
        InputError: the path cannot be read, or is not in the output.
    """
    position = 0
    current = plain
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or step.end() == position:
            raise InputError(f"path {path!r} into node {head!r} cannot be read at column {position + 1}")
        key: Any = step["name"]
        if key is None:
            key = int(step["index"]) if step["index"] is not None else from_plain(_unquoted(step["quoted"]))
        if isinstance(current, Mapping) and set(current) == {"$literal"}:
            current = current["$literal"]
        try:
            current = current[key]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"the output of node {head!r} has no {path[: step.end()]!r}") from None
        position = step.end()
    return current


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
