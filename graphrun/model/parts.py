"""The parts of a GraphSpec: node, edge and policy, frozen, with their JSON form and their defaults.

This module answers for fields and defaults. It must not know a whole graph, read a document, or judge whether anything
may run.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from graphrun.model.parameters import references

Join = Literal["any", "all"]
EdgeKind = Literal["data", "order"]
FailurePolicy = Literal["proceed", "skip_dependents", "fail_fast"]
Schedule = Literal["waves"]

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
MAX_KEY_CHARACTERS = 1_000
MAX_NAME_CHARACTERS = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before a retry (X6).

    That is ``initial * factor ** (attempt - 1)``, capped, plus up to ``jitter`` of it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
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

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
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

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
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
        return document_of(self)

    def subgraph_hash(self) -> str:
        """Return the hash of what a retry must keep: everything of this node (X6)."""
        return hash_of(self.to_document())


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """One edge, head -> tail, by node key.

    ``required`` decides what a failed head does to the tail: None leaves it to the run's failure policy (X5).
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    head: str
    tail: str
    kind: EdgeKind = "order"
    parameter: str | None = None
    when: str | None = None
    required: bool | None = None
    enabled: bool = True

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form; ``kind`` is absent, since a parameter makes an edge a data edge."""
        document = document_of(self)
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

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    failure_policy: FailurePolicy = "proceed"
    schedule: Schedule = "waves"


DEFAULT_RUN_POLICY = RunPolicy()


def implied_edges(node: NodeSpec) -> list[EdgeSpec]:
    """Return the data edges that a node's parameters imply, one a head and parameter, in declared order."""
    pairs = dict.fromkeys((head, name) for name, head, _path, _nested in references(node.params))
    return [EdgeSpec(head=head, tail=node.key, kind="data", parameter=name) for head, name in pairs]


def document_of(part: Any) -> dict[str, Any]:
    """Return the JSON form of a part; a field that equals its default is absent (Z9)."""
    document: dict[str, Any] = {}
    for name, default, is_float in _fields(part.__class__):
        value = getattr(part, name)
        if is_float and type(value) is int:
            value = float(value)  # 60 and 60.0 seconds are one policy, and have one hash
        if value == default and type(value) is type(default):
            continue
        document[name] = document_of(value) if isinstance(value, (Policy, Backoff)) else _unshared(value)
    return document


def _unshared(value: Any) -> Any:
    """Copy what can change, so that nobody changes the part through its document; a tuple becomes a list."""
    if isinstance(value, Mapping):
        return {key: _unshared(item) for key, item in value.items()} if value else {}
    if isinstance(value, (list, tuple)):
        return [_unshared(item) for item in value]
    return value


_REQUIRED = object()


@lru_cache(maxsize=16)
def _fields(cls: type[Any]) -> tuple[tuple[str, object, bool], ...]:
    """Return (name, default, whether it is a float) of each field, by asking an instance of the required ones alone."""
    required = {f.name: "" for f in fields(cls) if f.name in ("key", "task", "head", "tail")}
    sample = cls(**required)
    return tuple(
        (f.name, _REQUIRED if f.name in required else getattr(sample, f.name), "float" in str(f.type))
        for f in fields(cls)
    )


def hash_of(document: object) -> str:
    """Return the SHA-256, in hexadecimal, of canonical JSON."""
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
    if not storable(key):
        return f"node key {key!r} has a NUL or a lone surrogate, which no database stores"
    return None


def storable(text: str) -> bool:
    """Say whether every database stores a text as it is: it has no NUL and no lone surrogate."""
    return (text.isascii() and "\x00" not in text) or not _UNSTORABLE.search(text)
