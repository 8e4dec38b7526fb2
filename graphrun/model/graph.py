"""Graph: a mutable directed graph. Cycles, parallel edges and self-loops are allowed.

This module answers for every change of the structure, and for its JSON form. A change checks everything first, and
happens as a whole or not at all (G10, G18). It must not know how a graph is planned or run.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self
from uuid import UUID

from graphrun.errors import RelationError
from graphrun.model import serialisation
from graphrun.model.edge import Edge, raw_ends
from graphrun.model.element import Ref, raw_id, raw_id_of
from graphrun.model.node import Node
from graphrun.model.store import Store
from graphrun.model.structure import GraphStructure, NodeRef


class Graph(GraphStructure):
    """Nodes and directed edges between them; ids and node keys are unique.

    One reentrant lock guards each change and each query (G31). ``graph["key"]`` gives a node, iteration the nodes in
    order, from a snapshot.

    Args:
        name: what the graph is called in messages and records.
    """

    __slots__ = ("name",)

    payload_fields = GraphStructure.payload_fields | {"name", "internal_nodes", "internal_edges"}

    def __init__(self, name: str = "graph", **envelope: Any) -> None:
        super().__init__(**envelope)
        self.name = name
        self._clear()

    def add_node(self, node: Node, /) -> None:
        """Add a node.

        Raises:
            RelationError: it is no Node, or its id or key is in the graph (G8, G9).
        """
        with self._lock:
            self._check_new(node)
            self._insert_node(node)

    def add_edge(self, edge: Edge, /) -> None:
        """Add an edge; ends that were given as node keys become ids now (G2).

        Raises:
            RelationError: it is no Edge, an end is missing, or its id is in the graph; nothing changed (G10).
        """
        with self._lock:
            if not isinstance(edge, Edge):
                raise RelationError(f"{edge!r} is no Edge")
            if raw_id(edge) in self._edges.items:
                raise RelationError(f"{edge!r} with id {edge.id} is in {self!r} already")
            head, tail = raw_ends(edge)
            if isinstance(head, str) or isinstance(tail, str):
                head, tail = self._end(edge, head), self._end(edge, tail)
                _move(edge, head, tail)
            elif head not in self._outgoing or tail not in self._incoming:
                raise self._missing_end(edge, tail if head in self._outgoing else head)
            self._insert_edge(edge, head, tail)

    def remove_edge(self, edge: Ref, /) -> Edge:
        """Remove and return an edge, from both ends' adjacency as well (G12).

        Raises:
            RelationError: it is not in the graph.
        """
        with self._lock:
            try:
                removed = self._edges.items[raw_id_of(edge)]
            except (ValueError, KeyError):
                raise self._missing("edge", edge) from None
            edge_id = raw_id(removed)
            del self._outgoing[removed.head.int][edge_id]
            del self._incoming[removed.tail.int][edge_id]
            return self._edges.remove(edge_id)

    def remove_node(self, node: NodeRef, /) -> Node:
        """Remove and return a node, with every edge at it, a self-loop once (G13).

        Raises:
            RelationError: it is not in the graph.
        """
        with self._lock:
            node_id = self._node_id(node)
            for edge_id in self._incoming[node_id] | self._outgoing[node_id]:
                self.remove_edge(UUID(int=edge_id))
            return self._drop_node(node_id)

    def replace_node(self, old: NodeRef, new_node: Node, /) -> Node:
        """Put a new node in the place of another at every edge, and return the old one (G15).

        The edges stay the same objects, in the same order; the new node stands last in the order of nodes. It may have
        the key of the old one.

        Raises:
            RelationError: the old node is missing, or the new one's id or key is in the graph; nothing changed (G18).
        """
        with self._lock:
            old_id = self._node_id(old)
            self._check_new(new_node, leaving=old_id)
            incoming, outgoing = self._incoming[old_id], self._outgoing[old_id]
            removed = self._drop_node(old_id)
            self._insert_node(new_node)
            new_id = raw_id(new_node)
            self._incoming[new_id], self._outgoing[new_id] = incoming, outgoing
            for edge_id in incoming | outgoing:
                edge = self._edges.items[edge_id]
                head, tail = (new_id if end == old_id else end for end in (edge.head.int, edge.tail.int))
                _move(edge, head, tail)
                self._outgoing[head][edge_id] = tail
                self._incoming[tail][edge_id] = head
            return removed

    def splice_after(self, anchor: NodeRef, new_node: Node, /) -> list[Edge]:
        """Put a new node behind another, which hands all its outgoing edges over to it (G16).

        Each becomes a new edge with the same condition object, label and properties, but without the metadata.

        Returns:
            The new edge anchor -> new node, then the replacements in the order of what they replace.

        Raises:
            RelationError: the anchor is missing, or the new node's id or key is in the graph; nothing changed (G18).
        """
        with self._lock:
            anchor_id = self._node_id(anchor)
            self._check_new(new_node)
            replaced = [self._edges.items[edge_id] for edge_id in self._outgoing[anchor_id]]
            self._insert_node(new_node)
            replacements = [Edge(new_node, edge.tail) for edge in replaced]
            for edge, replacement in zip(replaced, replacements, strict=True):
                for name, value in edge.properties.items():
                    replacement.update_property(name, value)
                self.add_edge(replacement)
                self.remove_edge(edge)
            link = Edge(UUID(int=anchor_id), new_node)
            self.add_edge(link)
            return [link, *replacements]

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object; the adjacency is left out, since the edges say it (G1).

        Raises:
            EncodingError: something in a node or edge cannot be serialised; names the type and the place.
        """
        with self._lock:
            return super().to_dict() | {
                "name": self.name,
                "internal_nodes": serialisation.serialised(self._nodes, "$.internal_nodes"),
                "internal_edges": serialisation.serialised(self._edges, "$.internal_edges"),
            }

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new graph, under the rules that hold for adding (G28).

        Raises:
            RelationError: an edge names an absent node, or an id or key occurs twice; names both and the place (G30).
        """
        super().load_fields(payload, place)
        self.name = serialisation.read(payload, "name", str, place, default="graph")
        self._clear()
        for field, cls in (("internal_nodes", Node), ("internal_edges", Edge)):
            for index, item in enumerate(serialisation.read(payload, field, list, place, default=[])):
                where = f"{place}.{field}[{index}]"
                element = cls.from_dict(item, place=where)
                try:
                    self.add_node(element) if isinstance(element, Node) else self.add_edge(element)
                except RelationError as error:
                    raise RelationError(f"{where}: {error}") from None

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Any]]:
        attributes, slots = super().__getstate__()
        derived = ("_incoming", "_outgoing", "_keys")
        return attributes, {name: value for name, value in slots.items() if name not in derived}

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
        super().__setstate__(state)
        nodes, edges = self._nodes, self._edges
        self._clear()
        for node in nodes:
            self._insert_node(node)
        for edge in edges:
            self._insert_edge(edge, edge.head.int, edge.tail.int)

    def __copy__(self) -> Self:
        """Return a graph of the same nodes, with copies of the edges: each graph moves the ends of its own (G15)."""
        twin = type(self).__new__(type(self))
        attributes, slots = self.__getstate__()
        twin.__setstate__((attributes, slots | {"_edges": Store(copy(edge) for edge in slots["_edges"])}))
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # How

    def _check_new(self, node: Node, leaving: int | None = None) -> None:
        if not isinstance(node, Node):
            raise RelationError(f"{node!r} is no Node")
        if raw_id(node) in self._nodes.items:
            raise RelationError(f"{node!r} with id {node.id} is in {self!r} already")
        holder = self._keys.get(node.key)
        if holder is not None and holder != leaving:
            raise RelationError(f"{self!r} has a node with key {node.key!r} already; keys are unique in a graph")

    def _end(self, edge: Edge, end: int | str) -> int:
        try:
            return self._node_id(end if isinstance(end, str) else UUID(int=end))
        except RelationError:
            raise self._missing_end(edge, end) from None

    def _missing_end(self, edge: Edge, end: int | str) -> RelationError:
        end = end if isinstance(end, str) else str(UUID(int=end))
        return RelationError(f"edge {edge.id}: its end {end} is not in {self!r}; add that node first")

    def _insert_node(self, node: Node) -> None:
        node_id = raw_id(node)
        self._nodes.items[node_id] = node
        self._keys[node.key] = node_id
        self._incoming[node_id] = {}
        self._outgoing[node_id] = {}

    def _drop_node(self, node_id: int) -> Node:
        del self._incoming[node_id], self._outgoing[node_id]
        node = self._nodes.remove(node_id)
        del self._keys[node.key]
        return node

    def _insert_edge(self, edge: Edge, head: int, tail: int) -> None:
        edge_id = raw_id(edge)
        self._edges.items[edge_id] = edge
        self._outgoing[head][edge_id] = tail
        self._incoming[tail][edge_id] = head


def _move(edge: Edge, head: int, tail: int) -> None:
    edge._move(head, tail)  # noqa: SLF001 - a public way to move an edge's ends would be one behind the graph's back (G14)
