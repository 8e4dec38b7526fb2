"""The JSON texts that the ledger keeps, made from the frozen values of the layers below and read back equal.

All of it is ASCII, so that NUL and lone surrogates are escapes that every database stores (O23). No table lives here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, get_args

from pydantic import TypeAdapter

from graphrun.errors import LedgerError
from graphrun.execution.event import Event, NodeEvent
from graphrun.execution.run import EvolutionRequest, NewEdge, NewNode, Truth
from graphrun.model.spec import DEFAULT_POLICY, Backoff, EdgeSpec, GraphSpec, NodeSpec, Policy, RunPolicy

_TUPLES = ("resources", "subgraph")
_EDGE_FIELDS = tuple(item.name for item in fields(EdgeSpec))
_edge_values = attrgetter(*_EDGE_FIELDS)
_EVENT_TYPES: dict[str, type[Event]] = {item.__name__: item for item in get_args(Event)}
_NODE_EVENTS = get_args(NodeEvent)


def to_text(value: object) -> str:
    """Return a value as ASCII JSON; a dataclass becomes an object of the fields that differ from their defaults."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        given = {item.name: getattr(value, item.name) for item in fields(value)}
        return {item.name: given[item.name] for item in fields(value) if given[item.name] != item.default}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a ledger document cannot hold {type(value).__name__}")


def keys_to_text(keys: Iterable[str]) -> str | None:
    """Return a list of texts as JSON, or None for an empty one."""
    items = tuple(keys)
    return to_text(items) if items else None


def keys_from_text(text: str | None) -> tuple[str, ...]:
    """Return what ``keys_to_text`` was given."""
    return () if text is None else tuple(json.loads(text))


def mapping_to_text(mapping: Mapping[str, str]) -> str | None:
    """Return an object of texts as JSON, or None for an empty one."""
    return to_text(dict(mapping)) if mapping else None


def mapping_from_text(text: str | None) -> dict[str, str]:
    """Return what ``mapping_to_text`` was given."""
    return {} if text is None else dict(json.loads(text))


# --- specs


def policy_to_text(policy: Policy) -> str | None:
    """Return a policy as JSON, or None when it is the default one."""
    return None if policy == DEFAULT_POLICY else to_text(policy)


@lru_cache(maxsize=1_024)
def policy_from_text(text: str | None) -> Policy:
    """Return what ``policy_to_text`` was given."""
    return DEFAULT_POLICY if text is None else _policy(json.loads(text))


def _policy(document: dict[str, Any]) -> Policy:
    backoff = document.pop("backoff", None)
    retry_on = tuple(document.pop("retry_on", ()))
    return Policy(**document, retry_on=retry_on, backoff=None if backoff is None else Backoff(**backoff))


def spec_to_text(spec: NodeSpec) -> str:
    """Return a node's spec as JSON."""
    return to_text(spec.to_document())


def spec_from_text(text: str) -> NodeSpec:
    """Return what ``spec_to_text`` was given."""
    return _spec(json.loads(text))


def _spec(document: dict[str, Any]) -> NodeSpec:
    # Built directly: the document is our own, was checked when it was submitted, and a claim should not check it again.
    policy = document.pop("policy", None)
    for name in _TUPLES:
        if name in document:
            document[name] = tuple(document[name])
    return NodeSpec(**document) if policy is None else NodeSpec(**document, policy=_policy(policy))


def graph_to_text(spec: GraphSpec) -> str:
    """Return all of a graph but its nodes as JSON, edges as they were declared."""
    edges = [_edge_values(edge) for edge in spec.edges]
    return to_text({"name": spec.name, "settings": spec.settings, "edges": edges})


def graph_from_text(text: str, nodes: Iterable[NodeSpec]) -> GraphSpec:
    """Return the graph that ``graph_to_text`` was given, with these nodes."""
    document = json.loads(text)
    edges = (EdgeSpec(**dict(zip(_EDGE_FIELDS, edge, strict=True))) for edge in document["edges"])
    settings = RunPolicy(**document["settings"])
    return GraphSpec(name=document["name"], nodes=tuple(nodes), edges=tuple(edges), settings=settings)


# --- what an evolved return asks for


def request_to_text(request: EvolutionRequest) -> str:
    """Return a request as JSON."""
    return to_text(
        {
            "rewritten": request.rewritten.to_document(),
            "nodes": [new.spec.to_document() for new in request.nodes],
            "edges": request.edges,
            "removed": request.removed,
            "asked_by": request.asked_by,
            "reason": request.reason,
            "refusal": request.refusal,
        }
    )


def request_from_text(text: str) -> EvolutionRequest:
    """Return what ``request_to_text`` was given."""
    document = json.loads(text)
    return EvolutionRequest(
        rewritten=_spec(document["rewritten"]),
        nodes=tuple(NewNode(spec=_spec(spec)) for spec in document["nodes"]),
        edges=tuple(_new_edge(edge) for edge in document["edges"]),
        removed=tuple((head, tail) for head, tail in document["removed"]),
        asked_by=document["asked_by"],
        reason=document["reason"],
        refusal=document["refusal"],
    )


def _new_edge(document: dict[str, Any]) -> NewEdge:
    truth = document.get("truth")
    return NewEdge(**document | {"truth": None if truth is None else Truth(truth)})


# --- events


def stream_of(event: Event, run_stream: int) -> int:
    """Return the stream of an event: its node, or the run's own."""
    return event.node_id if isinstance(event, _NODE_EVENTS) else run_stream


def event_to_text(event: Event) -> str:
    """Return the fields of an event as JSON; the kind is its class name."""
    return to_text(event)


def event_from_text(kind: str, text: str) -> Event:
    """Return what ``event_to_text`` was given.

    Raises:
        LedgerError: no event of that kind is known; a newer graphrun wrote it.
    """
    if kind not in _EVENT_TYPES:
        raise LedgerError(f"event kind {kind!r} is not known to this graphrun; a newer one wrote it")
    return _event_adapter(kind).validate_python(json.loads(text))


@lru_cache(maxsize=64)
def _event_adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(_EVENT_TYPES[kind])
