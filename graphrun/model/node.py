"""Node: a vertex of a graph, with a key and, if it is to be run, the name of a task and its parameters.

This module answers for what a node says. It must not interpret parameters or options, nor know its edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrun.errors import FormatError
from graphrun.model import serialisation
from graphrun.model.element import Element


class Node(Element):
    """A vertex.

    Args:
        key: its name, unique in a graph and fixed, since the graph finds the node by it; the id as a string by default.
        task: the name of a registered function.
        params: what the task is called with; copied, one level deep.
        options: how it is to be run (policy, resources, owner, join and the like); copied, one level deep. Opaque here.

    Raises:
        ValueError: the key is not a string or is empty.
    """

    __slots__ = ("_key", "_options", "_params", "task")

    payload_fields = Element.payload_fields | {"key", "task", "params", "options"}

    def __init__(
        self,
        key: str | None = None,
        task: str | None = None,
        params: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **envelope: Any,
    ) -> None:
        super().__init__(**envelope)
        if key is not None and (not isinstance(key, str) or not key):
            raise ValueError(f"a node key is a string that is not empty, got {key!r}")
        self._key = key
        self.task = task
        self._params: dict[str, Any] | None = dict(params) if params else None
        self._options: dict[str, Any] | None = dict(options) if options else None

    @property
    def key(self) -> str:
        """The name of the node in its graph."""
        return str(self.id) if self._key is None else self._key

    @property
    def params(self) -> dict[str, Any]:
        """What the task is called with."""
        if self._params is None:
            self._params = {}
        return self._params

    @property
    def options(self) -> dict[str, Any]:
        """How the node is to be run."""
        if self._options is None:
            self._options = {}
        return self._options

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object.

        Raises:
            EncodingError: a parameter or option is not plain JSON; names the type and the place.
        """
        return super().to_dict() | {
            "key": self.key,
            "task": self.task,
            "params": serialisation.plain_json(self._params or {}, "$.params"),
            "options": serialisation.plain_json(self._options or {}, "$.options"),
        }

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new node."""
        super().load_fields(payload, place)
        key = serialisation.read(payload, "key", str, place)
        if not key:
            raise FormatError(f"{place}.key: is empty")
        self._key = key
        self.task = serialisation.read_optional_text(payload, "task", place)
        self._params = serialisation.read_json_object(payload, "params", place)
        self._options = serialisation.read_json_object(payload, "options", place)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"
