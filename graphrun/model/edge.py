"""Edge: a directed relation head -> tail with properties, among them a label and a condition.

This module answers for one edge: its ends, its properties and whether its condition holds. It must not know whether its
ends exist: the graph does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any
from uuid import UUID

from graphrun.errors import FormatError, RelationError
from graphrun.model import serialisation
from graphrun.model.condition import Condition, EdgeCondition, condition_from_dict
from graphrun.model.element import Element, Ref, raw_id_of

_NO_PROPERTIES: Mapping[str, Any] = MappingProxyType({})


class Edge(Element):
    """A directed relation, with an id of its own, so that parallel edges and self-loops are different edges (G7).

    It belongs to one graph, which alone moves its ends.

    Args:
        head: where it comes from: UUID, Element, UUID string or node key (G2).
        tail: where it goes to.
        condition: decides whether it is taken; a nominal Condition (G4).
        label: a string or a list of strings; absent when None (G5).
        properties: any further keyword (G3).

    Raises:
        ValueError: an end is no reference, the condition no Condition, or the label not made of strings.
    """

    __slots__ = ("_head", "_properties", "_tail")

    _head: int | str
    _tail: int | str

    payload_fields = Element.payload_fields | {"head", "tail", "properties"}

    def __init__(
        self,
        head: Ref,
        tail: Ref,
        condition: Condition | None = None,
        label: str | list[str] | None = None,
        **properties: Any,
    ) -> None:
        super().__init__()
        # A string stays as it is until the graph resolves it, since only the graph knows whether it is a key (G2).
        self._head = _end(head)
        self._tail = _end(tail)
        self._properties: dict[str, Any] | None = properties or None
        if label is not None:
            self.label = label
        if condition is not None:
            self.condition = condition

    @property
    def head(self) -> UUID:
        """The id of the node that the edge comes from.

        Raises:
            RelationError: it was given as a node key, which only a graph can resolve.
        """
        return _resolved(self._head)

    @property
    def tail(self) -> UUID:
        """The id of the node that the edge goes to.

        Raises:
            RelationError: it was given as a node key, which only a graph can resolve.
        """
        return _resolved(self._tail)

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties, condition and label included; read-only, see ``update_property``."""
        return _NO_PROPERTIES if self._properties is None else MappingProxyType(self._properties)

    def update_property(self, name: str, value: Any) -> None:
        """Set one property; for ``condition`` and ``label`` by their own rules (G3).

        Raises:
            ValueError: it is a condition or label that their setters refuse.
        """
        if name == "condition":
            self.condition = value
        elif name == "label":
            self.label = value
        else:
            self._set(name, value)

    @property
    def condition(self) -> Condition | None:
        """What decides whether the edge is taken."""
        condition: Condition | None = self.properties.get("condition")
        return condition

    @condition.setter
    def condition(self, condition: Condition | None) -> None:
        if condition is not None and not isinstance(condition, Condition):
            raise ValueError(f"an edge's condition must be a graphrun Condition, got {type(condition).__name__}")
        self._set("condition", condition)

    @property
    def label(self) -> list[str] | None:
        """The label, as a list of the caller's own; None when absent (G5)."""
        label = self.properties.get("label")
        return None if label is None else list(label)

    @label.setter
    def label(self, label: str | list[str] | None) -> None:
        labels = [label] if isinstance(label, str) else label
        if labels is not None and not (isinstance(labels, list) and all(isinstance(text, str) for text in labels)):
            raise ValueError(f"an edge's label is a string or a list of strings, got {label!r}")
        self._set("label", None if labels is None else list(labels))

    def update_condition_source(self, source: Any) -> None:
        """Change the ``source`` of the condition; without a condition nothing happens (G4).

        Raises:
            TypeError: the condition has no source.
        """
        condition = self.condition
        if isinstance(condition, EdgeCondition):
            condition.source = source
        elif condition is not None:
            raise TypeError(f"a {type(condition).__name__} has no source; assign another condition")

    async def check_condition(self, *args: Any, **kwargs: Any) -> bool:
        """Return whether the condition holds, true where there is none; what it raises propagates (G6)."""
        condition = self.condition
        return condition is None or bool(await condition.apply(*args, **kwargs))

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object.

        Raises:
            EncodingError: a property is not plain JSON, or the condition cannot be serialised.
        """
        properties = {
            name: value.to_dict() if name == "condition" else serialisation.plain_json(value, f"$.properties.{name}")
            for name, value in self.properties.items()
        }
        return super().to_dict() | {"head": str(self.head), "tail": str(self.tail), "properties": properties}

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new edge; the properties stay one level, and the rules for label and condition hold (G29)."""
        super().load_fields(payload, place)
        self._head = serialisation.read_id(payload, "head", place).int
        self._tail = serialisation.read_id(payload, "tail", place).int
        self._properties = None
        properties = serialisation.read_json_object(payload, "properties", place) or {}
        for name, value in properties.items():
            where = f"{place}.properties.{name}"
            if name == "condition" and value is not None:
                self.condition = condition_from_dict(value, where)
                continue
            try:
                self.update_property(name, value)
            except ValueError as error:
                raise FormatError(f"{where}: {error}") from None

    def __repr__(self) -> str:
        head, tail = (end if isinstance(end, str) else UUID(int=end) for end in (self._head, self._tail))
        return f"<{type(self).__name__} {head} -> {tail}>"

    # How

    def _set(self, name: str, value: Any) -> None:
        if value is None and name in {"condition", "label"}:
            if self._properties is not None:
                self._properties.pop(name, None)
            return
        if self._properties is None:
            self._properties = {}
        self._properties[name] = value

    def _move(self, head: int, tail: int) -> None:
        self._head, self._tail = head, tail


raw_ends: Callable[[Edge], tuple[int | str, int | str]] = attrgetter("_head", "_tail")
"""Head and tail as stored: strings as given until a graph has resolved them, raw ids ever after."""


def _end(ref: object) -> int | str:
    return ref if isinstance(ref, str) and ref else raw_id_of(ref)


def _resolved(end: int | str) -> UUID:
    if isinstance(end, int):
        return UUID(int=end)
    try:
        return UUID(end)
    except ValueError:
        raise RelationError(f"edge end {end!r} is a node key: add the edge to a graph, which knows its id") from None
