"""GraphSpec: the frozen, hashed document of a graph. It is what is stored, planned and run.

This module answers for the whole document: its JSON form, reading it, and its content hash; its parts are in ``parts``.
It must not judge whether the graph may run (``validation``), know a task's signature (``registry``) or read a file
(``formats``).

The classes are frozen dataclasses, checked by Pydantic at the boundary (``GraphSpec.from_document``) and built directly
everywhere else, since 100,000 nodes are frozen and planned in one go.

Parameters are kept as plain JSON. Three reserved shapes live in them (``contracts.md``)::

    {"$node": "b", "path": "items[0]"}   the output of node b, or a part of it: a data edge b -> this node
    {"$literal": {...}}                  a literal dict that has a key beginning with "$"
    {"$float": "nan"} and the like       what graphrun.codec writes for values that JSON lacks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from graphrun.errors import FormatError
from graphrun.model.edge_binding import EdgeBinder, EdgeEntry
from graphrun.model.parameters import copied, references
from graphrun.model.parts import (
    DEFAULT_POLICY,
    DEFAULT_RUN_POLICY,
    MAX_KEY_CHARACTERS,
    MAX_NAME_CHARACTERS,
    STRICT,
    Backoff,
    EdgeKind,
    EdgeSpec,
    FailurePolicy,
    Join,
    NodeSpec,
    Policy,
    RunPolicy,
    Schedule,
    command_of,
    document_of,
    hash_of,
    implied_edges,
    key_fault,
)

__all__ = [
    "DEFAULT_POLICY",
    "MAX_KEY_CHARACTERS",
    "Backoff",
    "EdgeKind",
    "EdgeSpec",
    "FailurePolicy",
    "GraphSpec",
    "Join",
    "NodeSpec",
    "Policy",
    "RunPolicy",
    "Schedule",
    "command_of",
    "edge_from_document",
    "implied_edges",
    "key_fault",
    "node_from_document",
    "policy_from",
    "references",
]

T = TypeVar("T")
_FAULTS_TOLD = 20


@dataclass(frozen=True, kw_only=True)
class GraphSpec:
    """A frozen graph: nodes and edges in declared order. ``content_hash`` is equal when the meaning is equal (Z8)."""

    name: str
    nodes: tuple[NodeSpec, ...] = ()
    edges: tuple[EdgeSpec, ...] = ()
    settings: RunPolicy = DEFAULT_RUN_POLICY

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Map each node key to its place in ``nodes``; of two equal keys the first counts (validation names them)."""
        positions: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            positions.setdefault(node.key, index)
        return positions

    def node(self, key: str) -> NodeSpec:
        """Return the node of that key; KeyError when there is none."""
        return self.nodes[self.position[key]]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256, in hexadecimal, of the canonical JSON of what the graph means: an edge given twice counts once."""
        return hash_of(self._document(tuple(dict.fromkeys(self.edges))))

    def with_settings(self, **changes: Any) -> Self:
        """Return the same graph under other run settings; None leaves a setting as it is.

        Raises:
            FormatError: a setting is unknown, or has a value that it cannot have.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        if not given:
            return self
        merged = {f.name: getattr(self.settings, f.name) for f in fields(self.settings)} | given
        return replace(self, settings=_checked(_settings_adapter(), merged, "settings"))

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form; ``from_document`` gives an equal graph back.

        Edges that a ``$node`` parameter implies are left out, unless something amends them.
        """
        return self._document(self.edges)

    def _document(self, edges: Sequence[EdgeSpec]) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "nodes": [node.to_document() for node in self.nodes]}
        declared = list(_declared(edges, {edge for node in self.nodes for edge in implied_edges(node)}))
        if declared:
            document["edges"] = declared
        settings = document_of(self.settings)
        if settings:
            document["settings"] = settings
        return document

    @classmethod
    def from_document(cls, document: object, *, source: str = "document") -> Self:
        """Read the JSON form.

        Args:
            document: what ``to_document`` gives, with or without defaults; it is not changed, and nothing of it is
                shared with the graph.
            source: what to call the document in an error, such as a file name.

        Raises:
            FormatError: with every fault and its place (``nodes[3].policy.queue``), when a field is unknown, missing
                or of the wrong type, a parameter is no plain JSON or holds a reference that cannot be read, or an edge
                names a parameter that already has another value.
        """
        document, faults = _with_own_params(document)
        try:
            shape = _document_adapter().validate_python(document)
        except ValidationError as error:
            raise _refused(source, [*_faults(error), *faults]) from error
        if isinstance(document, Mapping) and "nodes" not in document:
            faults.append("nodes: field required (use [] for an empty graph)")
        if faults:
            raise _refused(source, faults)
        binder = EdgeBinder(shape.nodes)
        for number, entry in enumerate(shape.edges):
            binder.declare(entry, f"edges[{number}]")
        if binder.faults:
            raise _refused(source, binder.faults)
        return cls(name=shape.name, nodes=tuple(binder.nodes), edges=binder.edges(), settings=shape.settings)


def node_from_document(document: Mapping[str, Any], *, source: str = "node") -> NodeSpec:
    """Read the JSON form of one node.

    Raises:
        FormatError: with every fault and its place.
    """
    return _checked(_node_adapter(), document, source)


def edge_from_document(document: Mapping[str, Any], *, source: str = "edge") -> EdgeSpec:
    """Read the JSON form of one edge.

    Raises:
        FormatError: with every fault and its place.
    """
    return _checked(_edge_adapter(), document, source)


def policy_from(default: Policy, changes: Mapping[str, Any]) -> Policy:
    """Return a policy with some fields changed.

    Raises:
        FormatError: with every unknown field and every value out of range.
    """
    merged = {f.name: getattr(default, f.name) for f in fields(default)} | dict(changes)
    return _checked(_policy_adapter(), merged, "policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)] = "graph"
    nodes: tuple[NodeSpec, ...] = ()
    edges: tuple[EdgeEntry, ...] = ()
    settings: RunPolicy = DEFAULT_RUN_POLICY


@lru_cache(maxsize=1)
def _document_adapter() -> TypeAdapter[_Shape]:
    return TypeAdapter(_Shape)


@lru_cache(maxsize=1)
def _node_adapter() -> TypeAdapter[NodeSpec]:
    return TypeAdapter(NodeSpec)


@lru_cache(maxsize=1)
def _edge_adapter() -> TypeAdapter[EdgeSpec]:
    return TypeAdapter(EdgeSpec)


@lru_cache(maxsize=1)
def _policy_adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


@lru_cache(maxsize=1)
def _settings_adapter() -> TypeAdapter[RunPolicy]:
    return TypeAdapter(RunPolicy)


def _checked(adapter: TypeAdapter[T], document: object, source: str) -> T:
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        raise FormatError(f"{source}: " + "; ".join(_faults(error))) from error


def _refused(source: str, faults: Iterable[str]) -> FormatError:
    told = list(faults)
    rest = len(told) - _FAULTS_TOLD
    more = f"; … {rest} more" if rest > 0 else ""
    return FormatError(f"{source} is not a graph: " + "; ".join(told[:_FAULTS_TOLD]) + more)


def _faults(error: ValidationError) -> list[str]:
    lines = []
    for fault in error.errors(include_url=False, include_context=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
        message = "unknown field" if fault["type"] == "unexpected_keyword_argument" else fault["msg"]
        lines.append(f"{place or 'document'}: {message}")
    return lines


def _with_own_params(document: object) -> tuple[object, list[str]]:
    """Return the document with a copy of each node's parameters, and what is wrong with them."""
    nodes = document.get("nodes") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(nodes, (list, tuple)):
        return document, []
    faults: list[str] = []
    own: list[object] = []
    for number, node in enumerate(nodes):
        params = node.get("params") if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and isinstance(params, Mapping):
            copy, found = copied(params, f"nodes[{number}].params")
            faults += found
            own.append({**node, "params": copy})
        else:
            own.append(node)
    return {**document, "nodes": own}, faults


def _declared(edges: Sequence[EdgeSpec], implied: set[EdgeSpec]) -> Iterator[dict[str, Any]]:
    """Yield the entries that ``from_document`` needs beside the parameters to give the same edges."""
    counts: dict[tuple[str, str, str | None], int] = {}
    joined: set[tuple[str, str]] = set()
    for edge in edges:
        if edge.kind == "data":
            place = (edge.head, edge.tail, edge.parameter)
            counts[place] = counts.get(place, 0) + 1
            joined.add((edge.head, edge.tail))
    for edge in edges:
        if edge.kind == "data":
            if counts[edge.head, edge.tail, edge.parameter] > 1 or edge not in implied:
                yield edge.to_document()
        elif (edge.head, edge.tail) in joined:
            yield {**edge.to_document(), "kind": edge.kind}  # else it would amend the data edge of the same ends
        else:
            yield edge.to_document()
