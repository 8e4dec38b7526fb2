"""GraphSpec: the frozen, hashed document of a graph. It is what is stored, planned and run.

This module answers for the document's shape: its fields, its defaults, its JSON form and its content hash. It must not
judge whether the graph may run (``validation``), know a task's signature (``registry``) or read a file (``formats``).

The classes are frozen slotted dataclasses, checked by Pydantic at the boundary (``GraphSpec.from_document``) and built
directly everywhere else, since 100,000 nodes are frozen and planned in one go.

Parameters are kept as plain JSON. Three reserved shapes live in them (``contracts.md``)::

    {"$node": "b", "path": "items[0]"}   the output of node b, or a part of it: a data edge b -> this node
    {"$literal": {...}}                  a literal dict that has a key beginning with "$"
    {"$float": "nan"} and the like       what graphrun.codec writes for values that JSON lacks
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from graphrun.errors import FormatError

Join = Literal["any", "all"]
EdgeKind = Literal["data", "order"]
FailurePolicy = Literal["proceed", "skip_dependents", "fail_fast"]
Schedule = Literal["waves"]

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
MAX_KEY_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before a retry (X6).

    That is ``initial * factor ** (attempt - 1)``, capped, plus up to ``jitter`` of it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    initial_seconds: Annotated[float, Field(ge=0)] = 1.0
    factor: Annotated[float, Field(ge=1)] = 2.0
    max_seconds: Annotated[float, Field(ge=0)] = 600.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.1

    def seconds(self, attempt: int, fraction: float) -> float:
        """Return the delay after failed ``attempt`` (from 1), with ``fraction`` in [0, 1) as the random part."""
        delay = min(self.initial_seconds * self.factor ** min(attempt - 1, 64), self.max_seconds)
        return delay * (1 + self.jitter * fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a node is tried: attempts, time limits, queue.

    ``None`` as a timeout means unbounded, and plan says so (X15).
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 2
    retry_on: tuple[str, ...] = ()
    backoff: Backoff | None = None
    timeout_seconds: Annotated[float | None, Field(gt=0)] = 3600.0
    soft_timeout_seconds: Annotated[float | None, Field(gt=0)] = None
    queue: Annotated[str | None, Field(min_length=1)] = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    max_deliveries: Annotated[int, Field(ge=1, le=100)] = 3
    max_evolutions: Annotated[int, Field(ge=0, le=100)] = 2


DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node: a key, the name of a registered task, its parameters and how it is to be run.

    ``done_when`` is ``"output"`` (the declared output exists and is not empty) or the name of a registered condition
    (X10). ``verify`` is the name of a registered task, run by the engine on the node's output, or a command as
    ``"$ pytest -q"`` that gets the output as JSON on its standard input (X16).
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    key: str
    task: str
    params: Mapping[str, Any] = field(default_factory=dict)
    policy: Policy = DEFAULT_POLICY
    join: Join = "any"
    resources: tuple[str, ...] = ()
    owner: str | None = None
    output: str | None = None
    done_when: str | None = None
    verify: str | None = None
    why: str | None = None
    scope: str | None = None
    subgraph: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form; a field that equals its default is absent (Z9)."""
        return _document(self)

    def subgraph_hash(self) -> str:
        """Return the hash of what a retry must keep: everything of this node (X6)."""
        return _hash(self.to_document())


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """One edge, head -> tail, by node key.

    ``required`` decides what a failed head does to the tail: None leaves it to the run's failure policy (X5).
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    head: str
    tail: str
    kind: EdgeKind = "order"
    parameter: str | None = None
    when: str | None = None
    required: bool | None = None
    enabled: bool = True

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form; ``kind`` is absent, since a parameter makes an edge a data edge."""
        document = _document(self)
        document.pop("kind", None)
        return document

    @property
    def identity(self) -> tuple[str, str, str | None, str | None]:
        """Two edges are duplicates when these are equal (X2)."""
        return (self.head, self.tail, self.parameter, self.when)

    def __str__(self) -> str:
        return f"{self.head} -> {self.tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What holds for a whole run of the graph."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    failure_policy: FailurePolicy = "proceed"
    schedule: Schedule = "waves"


@dataclass(frozen=True, kw_only=True)
class GraphSpec:
    """A frozen graph: nodes and edges in declared order. Equal when the meaning is equal."""

    name: str
    nodes: tuple[NodeSpec, ...] = ()
    edges: tuple[EdgeSpec, ...] = ()
    settings: RunPolicy = RunPolicy()

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
        """SHA-256, in hexadecimal, of the canonical JSON of what the graph means."""
        return _hash(self.to_document())

    def with_settings(self, **changes: Any) -> Self:
        """Return the same graph under other run settings; None leaves a setting as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings=replace(self.settings, **given)) if given else self

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form. Edges that a ``$node`` parameter implies are left out unless something amends them."""
        amended = [edge.to_document() for edge in self.edges if edge != _implied(edge)]
        document: dict[str, Any] = {"name": self.name, "nodes": [node.to_document() for node in self.nodes]}
        if amended:
            document["edges"] = amended
        settings = _document(self.settings)
        if settings:
            document["settings"] = settings
        return document

    @classmethod
    def from_document(cls, document: object, *, source: str = "document") -> Self:
        """Read the JSON form.

        Args:
            document: what ``to_document`` gives, with or without defaults; it is not changed.
            source: what to call the document in an error, such as a file name.

        Raises:
            FormatError: with every fault and its place (``nodes[3].policy.queue``), when a field is unknown, missing
                or of the wrong type, or an edge names a parameter that already has another value.
        """
        try:
            shape = _document_adapter().validate_python(document)
        except ValidationError as error:
            raise FormatError(f"{source} is not a graph: {_faults(error)}") from error
        if "nodes" not in (document if isinstance(document, Mapping) else {}):
            raise FormatError(f"{source} is not a graph: nodes: field required (use [] for an empty graph)")
        binder = _EdgeBinder(shape.nodes)
        for number, edge in enumerate(shape.edges):
            binder.declare(number, edge)
        if binder.faults:
            raise FormatError(f"{source} is not a graph: " + "; ".join(binder.faults))
        return cls(name=shape.name, nodes=tuple(binder.nodes), edges=binder.edges(), settings=shape.settings)


@lru_cache(maxsize=1)
def _node_adapter() -> TypeAdapter[NodeSpec]:
    return TypeAdapter(NodeSpec)


@lru_cache(maxsize=1)
def _policy_adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def node_from_document(document: Mapping[str, Any], *, source: str = "node") -> NodeSpec:
    """Read the JSON form of one node.

    Raises:
        FormatError: with every fault and its place.
    """
    try:
        return _node_adapter().validate_python(document)
    except ValidationError as error:
        raise FormatError(f"{source}: {_faults(error)}") from error


def policy_from(default: Policy, changes: Mapping[str, Any]) -> Policy:
    """Return a policy with some fields changed.

    Raises:
        FormatError: with every unknown field and every value out of range.
    """
    try:
        return _policy_adapter().validate_python(
            {f.name: getattr(default, f.name) for f in fields(default)} | dict(changes)
        )
    except ValidationError as error:
        raise FormatError(f"policy: {_faults(error)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    name: Annotated[str, Field(min_length=1, max_length=200)] = "graph"
    nodes: tuple[NodeSpec, ...] = ()
    edges: tuple[EdgeSpec, ...] = ()
    settings: RunPolicy = RunPolicy()


@lru_cache(maxsize=1)
def _document_adapter() -> TypeAdapter[_Shape]:
    return TypeAdapter(_Shape)


def _faults(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_context=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
        message = "unknown field" if fault["type"] == "unexpected_keyword_argument" else fault["msg"]
        lines.append(f"{place or 'document'}: {message}")
    return "; ".join(lines)


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
                elif "$literal" not in item:
                    stack.extend((child, True) for child in reversed(list(item.values())))
            elif isinstance(item, (list, tuple)):
                stack.extend((child, True) for child in reversed(item))


def implied_edges(node: NodeSpec) -> list[EdgeSpec]:
    """Return the data edges that a node's parameters imply, one a head and parameter, in declared order."""
    pairs = dict.fromkeys((head, name) for name, head, _path, _nested in references(node.params))
    return [EdgeSpec(head=head, tail=node.key, kind="data", parameter=name) for head, name in pairs]


def _implied(edge: EdgeSpec) -> EdgeSpec | None:
    if edge.kind != "data":
        return None
    return EdgeSpec(head=edge.head, tail=edge.tail, kind="data", parameter=edge.parameter)


class _EdgeBinder:
    """Joins declared edges with those that parameters imply: the first amend the second, or bind a parameter."""

    def __init__(self, nodes: tuple[NodeSpec, ...]) -> None:
        self.nodes = list(nodes)
        self.faults: list[str] = []
        self._position: dict[str, int] = {}
        self._data: dict[tuple[str, str, str], EdgeSpec] = {}
        self._parameters: dict[tuple[str, str], list[str]] = {}
        self._order: list[EdgeSpec] = []
        for index, node in enumerate(nodes):
            self._position.setdefault(node.key, index)
            for edge in implied_edges(node):
                self._put(edge, edge.parameter or "")

    def edges(self) -> tuple[EdgeSpec, ...]:
        return tuple(dict.fromkeys([*self._data.values(), *self._order]))

    def declare(self, number: int, edge: EdgeSpec) -> None:
        if edge.parameter is not None:
            self._declare_data(number, replace(edge, kind="data"), edge.parameter)
            return
        names = self._parameters.get((edge.head, edge.tail), [])
        for name in names:
            self._data[edge.head, edge.tail, name] = replace(edge, kind="data", parameter=name)
        if not names:
            self._order.append(replace(edge, kind="order"))

    def _declare_data(self, number: int, edge: EdgeSpec, name: str) -> None:
        implied = (edge.head, edge.tail, name) in self._data
        if not implied and edge.tail in self._position:
            tail = self.nodes[self._position[edge.tail]]
            if name in tail.params:
                self.faults.append(f"edges[{number}]: parameter {name!r} of node {edge.tail!r} has a value already")
                return
            params = {**tail.params, name: {"$node": edge.head}}
            self.nodes[self._position[edge.tail]] = replace(tail, params=params)
        self._put(edge, name)

    def _put(self, edge: EdgeSpec, name: str) -> None:
        if (edge.head, edge.tail, name) not in self._data:
            self._parameters.setdefault((edge.head, edge.tail), []).append(name)
        self._data[edge.head, edge.tail, name] = edge


def _document(item: Any) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, default in _defaults(item.__class__):
        value = getattr(item, name)
        if value == default and type(value) is type(default):
            continue
        if isinstance(value, (Policy, Backoff)):
            document[name] = _document(value)
        elif isinstance(value, tuple):
            document[name] = list(value)
        elif isinstance(value, Mapping):
            document[name] = dict(value)
        else:
            document[name] = value
    return document


_REQUIRED = object()


@lru_cache(maxsize=16)
def _defaults(cls: type[Any]) -> tuple[tuple[str, object], ...]:
    """Return (field, default) pairs, by asking one instance made of nothing but the required fields."""
    required = {f.name: "" for f in fields(cls) if f.name in ("key", "task", "head", "tail")}
    sample = cls(**required)
    return tuple((f.name, _REQUIRED if f.name in required else getattr(sample, f.name)) for f in fields(cls))


def _hash(document: object) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def command_of(verify: str) -> list[str] | None:
    """Return the words of a verify command such as ``"$ test -s out.csv"``; None when ``verify`` names a task (X16).

    Raises:
        ValueError: a quote is not closed, or there is no word.
    """
    if not verify.startswith("$ "):
        return None
    words = shlex.split(verify[2:])
    if not words:
        raise ValueError("a verify command has at least one word")
    return words


def key_fault(key: object) -> str | None:
    """Say why a node key is refused, or None.

    Any text is a key, byte for byte, except what no database stores (O28).
    """
    if not isinstance(key, str) or not key:
        return "a node key is a non-empty text"
    if len(key) > MAX_KEY_CHARACTERS:
        return f"a node key has at most {MAX_KEY_CHARACTERS} characters, this one has {len(key)}"
    if "\x00" in key or any("\ud800" <= char <= "\udfff" for char in key):
        return f"node key {key!r} has a NUL or a lone surrogate, which no database stores"
    return None
