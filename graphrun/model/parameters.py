"""Parameters as a document holds them: plain JSON, with references to what other nodes return.

This module answers for the reserved shapes (see ``spec``), for copying parameters so that nobody else can change them,
and for paths into outputs. It must not know nodes, edges or tasks, nor read an output.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 250
MAX_REPEATED = 100_000
_FIELDS = {"$node", "path"}
_NAME = re.compile(r"[^\W\d]\w*")
_STEP = re.compile(r"""\.?(?P<name>[^\W\d]\w*)|\[(?P<index>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]""")


def is_reference(value: object) -> bool:
    """Say whether a parameter value stands for another node's output."""
    return isinstance(value, Mapping) and "$node" in value


def is_tagged(value: Mapping[Any, Any]) -> bool:
    """Say whether a dict is a literal or a tag of the codec: nothing in it is a reference."""
    return any(isinstance(key, str) and key.startswith("$") for key in value)


def references(params: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None, bool]]:
    """Yield each ``$node`` reference in parameters, in declared order (X9).

    Yields:
        ``(parameter, head key, path or None, nested)``; nested is true inside a list or dict, where an absent element
        is left out (X4).
    """
    for name, value in params.items():
        stack: list[tuple[object, bool]] = [(value, False)]
        while stack:
            item, nested = stack.pop()
            if isinstance(item, Mapping):
                if "$node" in item:
                    yield name, item["$node"], item.get("path"), nested
                elif not is_tagged(item):
                    stack.extend((child, True) for child in reversed(list(item.values())))
            elif isinstance(item, (list, tuple)):
                stack.extend((child, True) for child in reversed(item))


def copied(params: Mapping[Any, Any], place: str) -> tuple[dict[str, Any], list[str]]:
    """Copy parameters whole, tuples as lists, so that nobody changes them from outside.

    Args:
        params: what a document or a node holds.
        place: what to call them in a fault, as in ``nodes[3].params``.

    Returns:
        The copy, and every fault with its place: what is no plain JSON, and references that cannot be read. The copy is
        of use only if there is no fault.
    """
    copier = _Copier()
    copy: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(name, str):
            copy[str.__str__(name)] = copier.copy(value, f"{place}.{name}")
        else:
            copier.faults.append(f"{place}: the key {name!r} is not text; put it in quotes")
    return copy, copier.faults


def path_steps(path: str) -> list[tuple[str | int, int]]:
    """Split a path such as ``items[0].name`` into its steps.

    Returns:
        Each step, a key or an index, with the place in the text where it ends.

    Raises:
        ValueError: it cannot be read; says at which column.
    """
    steps: list[tuple[str | int, int]] = []
    position = 0
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            raise ValueError(f"path {path!r} cannot be read at column {position + 1}")
        position = found.end()
        if found["name"] is not None:
            steps.append((found["name"], position))
        elif found["index"] is not None:
            steps.append((int(found["index"]), position))
        else:
            steps.append((re.sub(r"\\(.)", r"\1", found["quoted"][1:-1], flags=re.DOTALL), position))
    return steps


def path_step(step: str | int, *, first: bool) -> str:
    """Write one step of a path; ``path_steps`` reads it."""
    if isinstance(step, int):
        return f"[{step}]"
    if _NAME.fullmatch(step):
        return step if first else f".{step}"
    escaped = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{escaped}"]'


class _Copier:
    """Copies one node's parameters and collects what is wrong with them.

    What stands in several places is copied for each, up to a limit: aliases of aliases in YAML double at each level.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._repeating = 0
        self._repeated = 0
        self._full = False

    def copy(self, value: Any, place: str, *, literal: bool = False) -> Any:
        self._repeated += self._repeating > 0
        match value:
            case None | bool():
                return value
            case str():
                return str.__str__(value)
            case int():
                return int(value)
            case float():
                if not math.isfinite(value):
                    self.faults.append(f'{place}: {value} is not JSON; write {{"$float": "{value}"}}')
                return float(value)
            case Mapping() | list() | tuple():
                return self._container(value, place, literal=literal)
        self.faults.append(f"{place}: type {type(value).__name__} is not plain JSON")
        return None

    def _container(self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], place: str, *, literal: bool) -> Any:
        if id(value) in self._open:
            self.faults.append(f"{place}: it contains itself")
            return None
        if len(self._open) >= MAX_DEPTH:
            self.faults.append(f"{place}: nested deeper than {MAX_DEPTH}")
            return None
        if self._repeated > MAX_REPEATED:
            if not self._full:
                self.faults.append(f"{place}: more than {MAX_REPEATED} values are repeated by aliases")
            self._full = True
            return None
        repeats = id(value) in self._seen
        self._repeating += repeats
        self._open.add(id(value))
        self._seen.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._dict(value, place, literal=literal)
            items: list[Any] = []
            for index, item in enumerate(value):
                items.append(self.copy(item, f"{place}[{index}]", literal=literal))
            return items
        finally:
            self._open.discard(id(value))
            self._repeating -= repeats

    def _dict(self, value: Mapping[Any, Any], place: str, *, literal: bool) -> dict[str, Any]:
        if not literal and "$node" in value:
            return self._reference(value, place)
        literal = literal or is_tagged(value)
        items: dict[str, Any] = {}
        for key, item in value.items():
            if isinstance(key, str):
                items[str.__str__(key)] = self.copy(item, f"{place}.{key}", literal=literal)
            else:
                self.faults.append(f"{place}: the key {key!r} is not text; put it in quotes")
        return items

    def _reference(self, value: Mapping[Any, Any], place: str) -> dict[str, Any]:
        """Copy a reference; the path of the whole output is left out, so that equal references are equal."""
        head, path = value["$node"], value.get("path")
        self.faults += [
            f"{place}.{key}: unknown field; a reference has $node and path" for key in value if key not in _FIELDS
        ]
        if not isinstance(head, str):
            self.faults.append(f"{place}.$node: a node key is text, not {type(head).__name__}")
        if path is not None and not isinstance(path, str):
            self.faults.append(f"{place}.path: a path is text, not {type(path).__name__}")
        elif path:
            try:
                path_steps(path)
            except ValueError as error:
                self.faults.append(f"{place}.path: {error}")
        return {"$node": head, "path": path} if path else {"$node": head}
