"""What a node body may hand back besides a plain value: done, failed or evolved (X7, D8).

It answers for the shape of the three. It must not judge whether an evolution is legal: the coordinator does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphrun.errors import GraphError


@dataclass(frozen=True, slots=True)
class Done:
    """The node is done.

    Attributes:
        value: the output, of the annotated return type.
        summary: a sentence for the report.
        implemented: what really ran, where a node has a subgraph of its own: one part or several.

    Raises:
        GraphError: a text is none.
    """

    value: Any = None
    summary: str | None = None
    implemented: str | Iterable[str] | None = None

    def __post_init__(self) -> None:
        _require_text("Done", "summary", self.summary)
        if self.implemented is not None and not isinstance(self.implemented, str):
            object.__setattr__(self, "implemented", tuple(self.implemented))
            for part in self.implemented:
                _require_text("Done", "each part of implemented", part)


@dataclass(frozen=True, slots=True)
class Failed:
    """The node failed without an exception; it gets its retry as any failed attempt does (X6).

    Attributes:
        reason: what went wrong, for a reader.
        kind: a word that a policy's ``retry_on`` may name, as it names exception classes.

    Raises:
        GraphError: reason or kind is no text.
    """

    reason: str
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.reason is None:
            raise GraphError("Failed: reason is a text, not None")
        _require_text("Failed", "reason", self.reason)
        _require_text("Failed", "kind", self.kind)


@dataclass(frozen=True, slots=True)
class Evolved:
    """The node asks for another plan: the coordinator rewrites the graph and runs the node again (X7).

    Attributes:
        scope: the node's new task in words; None keeps the old one.
        params: parameters that replace those of the same name; the others are kept.
        add: new nodes, each a document of the own format (``{"key": ..., "task": ..., "params": ...}``) or an object
            with ``to_document()``.
        edges: new edges, each ``{"head": ..., "tail": ..., ...}`` or a pair (head, tail), by node key.
        remove_edges: pairs (head, tail) of edges to take out.
        owner: who runs the node from now on; None keeps the old one.
        reason: why; it stands in the report.

    After construction ``add`` and ``edges`` are tuples of dicts and ``remove_edges`` is a tuple of pairs of keys.

    Raises:
        GraphError: an item has none of these shapes.
    """

    scope: str | None = None
    params: Mapping[str, Any] | None = None
    add: Iterable[Any] = ()
    edges: Iterable[Any] = ()
    remove_edges: Iterable[Any] = ()
    owner: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        for name in ("scope", "owner", "reason"):
            _require_text("Evolved", name, getattr(self, name))
        if self.params is not None:
            object.__setattr__(self, "params", dict(self.params))
        object.__setattr__(self, "add", tuple(_node(item) for item in self.add))
        object.__setattr__(self, "edges", tuple(_edge(item) for item in self.edges))
        object.__setattr__(self, "remove_edges", tuple(_pair(item, "remove_edges") for item in self.remove_edges))


Return: TypeAlias = Done | Failed | Evolved


def _require_text(what: str, name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise GraphError(f"{what}: {name} is a text, not {value!r}")


def normalise_return(value: object) -> Return:
    """The return itself, or a plain value as `Done`."""
    return value if isinstance(value, Done | Failed | Evolved) else Done(value)


def _node(item: Any) -> dict[str, Any]:
    document = item.to_document() if hasattr(item, "to_document") else item
    if not isinstance(document, Mapping) or "key" not in document:
        raise GraphError(
            f"Evolved(add=...): {type(item).__name__} is no node; give a dict with key and task, or a NodeSpec"
        )
    return dict(document)


def _edge(item: Any) -> dict[str, Any]:
    document = item.to_document() if hasattr(item, "to_document") else item
    if not isinstance(document, Mapping):
        head, tail = _pair(item, "edges")
        return {"head": head, "tail": tail}
    if not {"head", "tail"} <= document.keys():
        raise GraphError("Evolved(edges=...): an edge needs head and tail, both node keys")
    return dict(document) | {"head": _key(document["head"]), "tail": _key(document["tail"])}


def _pair(item: Any, where: str) -> tuple[str, str]:
    if isinstance(item, str) or not isinstance(item, Iterable):
        raise GraphError(
            f"Evolved({where}=...): {type(item).__name__} is no edge; give a pair (head, tail) of node keys"
        )
    ends = tuple(item)
    if len(ends) != 2:  # noqa: PLR2004 - head and tail
        raise GraphError(f"Evolved({where}=...): an edge is a pair (head, tail), not {len(ends)} items")
    return _key(ends[0]), _key(ends[1])


def _key(end: Any) -> str:
    key = getattr(end, "key", end)
    if not isinstance(key, str):
        raise GraphError(f"Evolved: an edge end is a node key or a node, not {type(end).__name__}")
    return key
