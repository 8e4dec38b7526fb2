"""Freezing: a mutable Graph becomes the immutable GraphSpec that is planned and run (G32).

Only the shape is looked at; whether it may run is for ``validation`` (Z12). Nothing of the graph is shared with the
spec that could change behind it.
"""

from __future__ import annotations

from typing import Any

from graphrun.errors import GraphError
from graphrun.model.condition import ExpressionCondition
from graphrun.model.edge import Edge
from graphrun.model.edge_binding import EdgeBinder, EdgeEntry
from graphrun.model.graph import Graph
from graphrun.model.node import Node
from graphrun.model.parameters import copied
from graphrun.model.spec import EdgeKind, GraphSpec, NodeSpec, RunPolicy, edge_from_document, node_from_document

_EDGE_PROPERTIES = ("when", "required", "enabled")


def freeze(graph: Graph, settings: RunPolicy | None = None) -> GraphSpec:
    """Return the frozen spec of a graph, the same that its JSON document gives back.

    An edge with a ``parameter`` property is a data edge, and gives that parameter; a condition becomes its ``when``.

    Raises:
        GraphError: a node has no task or parameters that are no plain JSON, two edges claim one parameter, or there is
            a condition that a spec cannot hold.
        FormatError: a node's options, or an edge's properties, are not those of a spec.
    """
    vertices, links = graph.snapshot()
    binder = EdgeBinder(_node(node) for node in vertices)
    keys = {node.id: node.key for node in vertices}
    for edge in links:
        head, tail = keys[edge.head], keys[edge.tail]
        binder.declare(_entry(edge, head, tail), f"edge {head} -> {tail}")
    if binder.faults:
        raise GraphError("; ".join(binder.faults))
    return GraphSpec(name=graph.name, nodes=tuple(binder.nodes), edges=binder.edges(), settings=settings or RunPolicy())


def _node(node: Node) -> NodeSpec:
    if node.task is None:
        raise GraphError(f"node {node.key!r} has no task, so it cannot run")
    params, faults = copied(node.params, "params")
    if faults:
        raise GraphError(f"node {node.key!r}: " + "; ".join(faults))
    if not node.options:
        return NodeSpec(key=node.key, task=node.task, params=params)
    document = {"key": node.key, "task": node.task, "params": params, **node.options}
    return node_from_document(document, source=f"node {node.key!r}")


def _entry(edge: Edge, head: str, tail: str) -> EdgeEntry:
    properties: dict[str, Any] = {name: edge.properties[name] for name in _EDGE_PROPERTIES if name in edge.properties}
    condition = edge.condition
    if condition is not None:
        if not isinstance(condition, ExpressionCondition):
            raise GraphError(
                f"edge {head} -> {tail}: a {type(condition).__name__} cannot be stored; use a safe expression"
            )
        properties["when"] = condition.source
    parameter = edge.properties.get("parameter")
    if properties or parameter is not None:
        checked = edge_from_document(
            {"head": head, "tail": tail, "parameter": parameter, **properties}, source=f"edge {head} -> {tail}"
        )
        properties = {name: getattr(checked, name) for name in _EDGE_PROPERTIES}
    kind: EdgeKind = "order" if parameter is None else "data"
    return EdgeEntry(head=head, tail=tail, kind=kind, parameter=parameter, **properties)
