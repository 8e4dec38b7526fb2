"""Plain node-edge lists: ``{"nodes": [names], "edges": [[i, j]]}``, edges by index or by name.

Each node becomes a built-in task that does nothing but hand on its depth, so that order is proved by the values.
"""

from __future__ import annotations

from typing import Any

from graphrun.errors import FormatError
from graphrun.formats.measured import measured_node
from graphrun.model.parts import MAX_NAME_CHARACTERS
from graphrun.model.spec import GraphSpec, NodeSpec

_ENDS = 2


def matches(document: Any) -> bool:
    """Say whether a document looks like a node-edge list."""
    nodes = document.get("nodes") if isinstance(document, dict) else None
    return isinstance(nodes, list) and bool(nodes) and all(isinstance(node, str) for node in nodes)


def read(document: Any, source: str) -> GraphSpec:
    """Read a document.

    Raises:
        FormatError: an edge is no pair, or names no node; every fault with its place.
    """
    names: list[str] = document["nodes"]
    edges = document.get("edges", [])
    if not isinstance(edges, list):
        raise FormatError(f"{source}: edges: a list of pairs is wanted")
    known = set(names)
    heads: dict[str, list[str]] = {name: [] for name in names}
    faults: list[str] = []
    for number, edge in enumerate(edges):
        pair = _ends(edge, names, known)
        if pair is None:
            faults.append(f"edges[{number}]: {edge!r} is no pair of nodes, by index below {len(names)} or by name")
        else:
            heads[pair[1]].append(pair[0])
    if faults:
        raise FormatError(f"{source} is not a graph: " + "; ".join(faults))
    nodes: list[NodeSpec] = [measured_node(name, dict.fromkeys(heads[name])) for name in names]
    return GraphSpec.from_document(
        {
            "name": str(document.get("name") or source)[:MAX_NAME_CHARACTERS],
            "nodes": [node.to_document() for node in nodes],
        },
        source=source,
    )


def _ends(edge: Any, names: list[str], known: set[str]) -> tuple[str, str] | None:
    if not isinstance(edge, list) or len(edge) != _ENDS:
        return None
    ends: list[str] = []
    for end in edge:
        if isinstance(end, bool):
            return None
        if isinstance(end, int) and 0 <= end < len(names):
            ends.append(names[end])
        elif isinstance(end, str) and end in known:
            ends.append(end)
        else:
            return None
    return ends[0], ends[1]
