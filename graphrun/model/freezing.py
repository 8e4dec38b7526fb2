"""Freezing: a mutable Graph becomes the immutable GraphSpec that is planned and run (G32).

Only the shape is looked at; whether it may run is for ``validation`` (Z12). Nothing of the graph is shared with the
spec that could change behind it.
"""

from __future__ import annotations

from typing import Any

from graphrun.errors import GraphError
from graphrun.model.condition import ExpressionCondition
from graphrun.model.edge import Edge
from graphrun.model.graph import Graph
from graphrun.model.node import Node
from graphrun.model.spec import EdgeKind, EdgeSpec, GraphSpec, NodeSpec, RunPolicy, implied_edges, node_from_document

_EDGE_PROPERTIES = ("parameter", "when", "required", "enabled")


def freeze(graph: Graph, settings: RunPolicy | None = None) -> GraphSpec:
    """Return the frozen spec of a graph.

    An edge with a ``parameter`` property is a data edge; a condition becomes its ``when``.

    Raises:
        GraphError: a node has no task, or an option or condition that a spec cannot hold.
    """
    vertices, links = graph.snapshot()
    nodes = tuple(_node(node) for node in vertices)
    keys = {node.id: node.key for node in vertices}
    declared = [_edge(edge, keys[edge.head], keys[edge.tail]) for edge in links]
    known = {(edge.head, edge.tail, edge.parameter) for edge in declared}
    implied = [
        edge for node in nodes for edge in implied_edges(node) if (edge.head, edge.tail, edge.parameter) not in known
    ]
    edges = tuple(dict.fromkeys([*implied, *declared]))
    return GraphSpec(name=graph.name, nodes=nodes, edges=edges, settings=settings or RunPolicy())


def _node(node: Node) -> NodeSpec:
    if node.task is None:
        raise GraphError(f"node {node.key!r} has no task, so it cannot run")
    if not node.options:
        return NodeSpec(key=node.key, task=node.task, params=dict(node.params))
    document = {"key": node.key, "task": node.task, "params": node.params, **node.options}
    return node_from_document(document, source=f"node {node.key!r}")


def _edge(edge: Edge, head: str, tail: str) -> EdgeSpec:
    properties: dict[str, Any] = {name: edge.properties[name] for name in _EDGE_PROPERTIES if name in edge.properties}
    condition = edge.condition
    if condition is not None:
        if not isinstance(condition, ExpressionCondition):
            raise GraphError(
                f"edge {head} -> {tail}: a {type(condition).__name__} cannot be stored; use a safe expression"
            )
        properties["when"] = condition.source
    kind: EdgeKind = "data" if properties.get("parameter") is not None else "order"
    return EdgeSpec(head=head, tail=tail, kind=kind, **properties)
