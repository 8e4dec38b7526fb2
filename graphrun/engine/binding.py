"""Binding what upstream nodes returned to a node's parameters, by key, in declared order (X4, X9).

It works on the stored plain form; the task's signature decodes it afterwards. No input or output here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrun.errors import GraphrunError
from graphrun.execution.run import Resolution
from graphrun.model.parameters import is_tagged, path_steps
from graphrun.registry import AnyTask

_ABSENT = object()
_NO_EDGE = "no edge"  # it is disabled, or an evolution took it out


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
        InputError: a path is not in the output it points into, or a parameter that needs a value has none.
    """
    bound = Bound()
    by_head: dict[str, Upstream] = {}
    for (head, _parameter), item in upstream.items():
        if item.resolution is Resolution.DELIVERED:
            by_head.setdefault(head, item)
    # An edge that an evolution adds onto another node gives its head's whole output; that node's spec is not rewritten.
    added = {name: {"$node": head} for head, name in upstream if name and name not in params}
    for name, value in {**params, **added}.items():
        resolve = _Resolver(name, upstream, by_head, bound.missing)
        resolved = resolve(value)
        if resolved is not _ABSENT:
            bound.values[name] = resolved
            continue
        parameter = task.parameters.get(name)
        if parameter is None or parameter.has_default:
            continue
        if not parameter.allows_none:
            raise InputError(f"parameter {name!r} has no value: {_listed(resolve.absent)}")
        bound.values[name] = None
    for (head, _parameter), item in upstream.items():
        if item.resolution is not Resolution.DELIVERED:
            bound.missing.setdefault(head, item.cause or item.resolution.value)
    return bound


class _Resolver:
    """Puts outputs where references stand in one parameter; ``absent`` keeps the heads that gave none, and why."""

    def __init__(
        self,
        parameter: str,
        upstream: Mapping[tuple[str, str], Upstream],
        by_head: Mapping[str, Upstream],
        missing: dict[str, str],
    ) -> None:
        self._parameter = parameter
        self._upstream = upstream
        self._by_head = by_head
        self._missing = missing
        self.absent: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if "$node" in value:
                return self._referred(value)
            if is_tagged(value):
                return value
            items = {key: self(item) for key, item in value.items()}
            return {key: item for key, item in items.items() if item is not _ABSENT}
        if isinstance(value, (list, tuple)):
            elements = [self(item) for item in value]
            return [item for item in elements if item is not _ABSENT]
        return value

    def _referred(self, reference: Mapping[str, Any]) -> Any:
        head = reference["$node"]
        # An evolution may set a parameter from a head whose edge gives another one.
        item = self._upstream.get((head, self._parameter)) or self._by_head.get(head)
        if item is None or item.resolution is not Resolution.DELIVERED:
            cause = _NO_EDGE if item is None else item.cause or item.resolution.value
            self._missing[head] = self.absent[head] = cause
            return _ABSENT
        plain = item.load()
        path = reference.get("path")
        return plain if not path else part_of(plain, path, head)


def part_of(plain: Any, path: str, head: str) -> Any:
    """Return the part of a plain output that a path such as ``items[0].name`` names.

    Raises:
        InputError: the path cannot be read, or is not in the output.
    """
    try:
        steps = path_steps(path)
    except ValueError as error:
        raise InputError(f"into node {head!r}: {error}") from None
    current = plain
    for step, end in steps:
        current = _content(current)
        # The keys of a stored dict are text, also where the annotation says int.
        key = str(step) if isinstance(current, Mapping) and isinstance(step, int) else step
        try:
            current = current[key]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"the output of node {head!r} has no {path[:end]!r}") from None
    return current


def _content(plain: Any) -> Any:
    """Look through what the codec puts around a dict with ``$`` keys and around a member of a union.

    Any other tag, such as a date, has no parts: None.
    """
    while isinstance(plain, Mapping) and is_tagged(plain):
        if set(plain) == {"$literal"}:
            return plain["$literal"]
        plain = plain["value"] if set(plain) == {"$variant", "value"} else None
    return plain


def _listed(absent: Mapping[str, str]) -> str:
    return ", ".join(f"{head} ({cause})" for head, cause in absent.items())
