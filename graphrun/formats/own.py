"""graphrun's own format, as JSON and as YAML: read and written without loss, unknown fields refused by place."""

from __future__ import annotations

from typing import Any

from graphrun.formats.documents import write_json, write_yaml
from graphrun.model.spec import GraphSpec

_OURS = frozenset({"key", "task"})


def matches(document: Any) -> bool:
    """Say whether a document looks like one of ours: a list of node objects."""
    nodes = document.get("nodes") if isinstance(document, dict) else None
    return isinstance(nodes, list) and all(isinstance(node, dict) for node in nodes) and not is_foreign(nodes)


def is_foreign(nodes: Any) -> bool:
    """Say whether nodes are objects of which none has a field that every node of ours has: a graph of another kind."""
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        return False
    return not any(_OURS & node.keys() for node in nodes)


def read(document: Any, source: str) -> GraphSpec:
    """Read a document.

    Raises:
        FormatError: with every fault and its place.
    """
    return GraphSpec.from_document(document, source=source)


def to_json(spec: GraphSpec) -> str:
    """Write a graph as JSON."""
    return write_json(spec.to_document())


def to_yaml(spec: GraphSpec) -> str:
    """Write a graph as YAML."""
    return write_yaml(spec.to_document())
