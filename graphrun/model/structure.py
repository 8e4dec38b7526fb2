"""GraphStructure: the resident nodes and edges of a graph, its adjacency, and the questions about them.

This module answers for storage that only the graph writes (G14) and for the queries G19 to G25. It must not change the
structure: ``graph`` does.

Queries hold the graph's lock while they run, so that each answers from one state of the graph (G32). ``find_path`` with
conditions, which awaits, works on a copy of the adjacency instead: no lock is held while other code runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias
from uuid import UUID, uuid5

from graphrun.errors import CycleError, RelationError
from graphrun.model import traversal
from graphrun.model.admission import Admission
from graphrun.model.edge import Edge
from graphrun.model.element import Collection, Element, Ref, raw_id, raw_id_of
from graphrun.model.node import Node
from graphrun.model.pile import Pile, PileView
from graphrun.model.store import Store

Direction = Literal["both", "in", "out"]
NodeRef: TypeAlias = Ref
"""A node by itself, its key, its id or its id as a string; a key wins over a UUID parse (G2)."""


class GraphStructure(Collection, registered=False):
    """The readable part of a Graph. Its length is the number of nodes; it is true even when empty."""

    __slots__ = ("_edges", "_incoming", "_keys", "_nodes", "_outgoing")

    _nodes: Store[Node]
    _edges: Store[Edge]
    # Adjacency by raw ids: {node: {edge: node at its other end}}.
    _incoming: dict[int, dict[int, int]]
    _outgoing: dict[int, dict[int, int]]
    _keys: dict[str, int]

    def _clear(self) -> None:
        self._nodes = Store()
        self._edges = Store()
        self._incoming = {}
        self._outgoing = {}
        self._keys = {}

    @property
    def internal_nodes(self) -> PileView[Node]:
        """The nodes in order, as a live view that cannot be written."""
        return PileView(self._nodes, self._lock, Admission(Node), id=uuid5(self.id, "internal_nodes"))

    @property
    def internal_edges(self) -> PileView[Edge]:
        """The edges in order, as a live view that cannot be written."""
        return PileView(self._edges, self._lock, Admission(Edge), id=uuid5(self.id, "internal_edges"))

    def snapshot(self) -> tuple[list[Node], list[Edge]]:
        """Return nodes and edges in order, both of one moment (G32)."""
        with self._lock:
            return list(self._nodes), list(self._edges)

    @property
    def node_edge_mapping(self) -> dict[UUID, dict[str, dict[UUID, UUID]]]:
        """The adjacency ``{node: {"in": {edge: head}, "out": {edge: tail}}}`` (G1), as a copy."""
        with self._lock:
            return {
                node.id: {"in": _public(self._incoming[raw_id(node)]), "out": _public(self._outgoing[raw_id(node)])}
                for node in self._nodes
            }

    # Lookup

    def __getitem__(self, ref: NodeRef) -> Node:
        """Return a node by key, id, id string or itself; a key wins over a UUID parse (G2).

        Raises:
            RelationError: it is not in the graph.
        """
        with self._lock:
            return self._nodes.items[self._node_id(ref)]

    def __contains__(self, ref: object) -> bool:
        """Tell whether a node or edge is resident, by object, id, id string or node key (G22)."""
        if isinstance(ref, str) and ref in self._keys:
            return True
        try:
            item_id = raw_id_of(ref)
        except ValueError:
            return False
        return item_id in self._nodes.items or item_id in self._edges.items

    def __iter__(self) -> Iterator[Node]:
        return iter(self.internal_nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    # Queries

    def find_node_edge(self, node: NodeRef, /, direction: Direction = "both") -> Pile[Edge]:
        """Return the edges of a node, incoming before outgoing, a self-loop once (G19).

        Raises:
            ValueError: the direction is another word.
            RelationError: the node is not in the graph.
        """
        if direction not in {"both", "in", "out"}:
            raise ValueError(f"direction must be 'both', 'in' or 'out', got {direction!r}")
        with self._lock:
            node_id = self._node_id(node)
            ids = [] if direction == "out" else list(self._incoming[node_id])
            ids += [] if direction == "in" else list(self._outgoing[node_id])
            return Pile([self._edges.items[edge_id] for edge_id in ids], item_type=Edge)

    def get_heads(self) -> Pile[Node]:
        """Return the nodes that no edge goes to (G20)."""
        with self._lock:
            return self._pile(node_id for node_id, edges in self._incoming.items() if not edges)

    def get_tails(self) -> Pile[Node]:
        """Return the nodes that no edge comes from (G20)."""
        with self._lock:
            return self._pile(node_id for node_id, edges in self._outgoing.items() if not edges)

    def get_predecessors(self, node: NodeRef, /) -> Pile[Node]:
        """Return the heads of a node's incoming edges, in the order of these (G21).

        Raises:
            RelationError: the node is not in the graph.
        """
        with self._lock:
            return self._pile(self._incoming[self._node_id(node)].values())

    def get_successors(self, node: NodeRef, /) -> Pile[Node]:
        """Return the tails of a node's outgoing edges, in the order of these (G21).

        Raises:
            RelationError: the node is not in the graph.
        """
        with self._lock:
            return self._pile(self._outgoing[self._node_id(node)].values())

    def is_acyclic(self) -> bool:
        """Tell whether there is neither a cycle nor a self-loop (G23)."""
        with self._lock:
            return len(traversal.topological_order(self._outgoing)) == len(self._nodes)

    def find_cycle(self) -> list[Node] | None:
        """Return the nodes of one cycle in the order of its edges, each once; None when there is none (G23)."""
        with self._lock:
            cycle = traversal.find_cycle(self._outgoing)
            return None if cycle is None else [self._nodes.items[node_id] for node_id in cycle]

    def topological_sort(self) -> list[Node]:
        """Return the nodes so that every edge goes forward, ties in insertion order (G24).

        Raises:
            CycleError: (a ValueError) names the keys of one cycle in order.
        """
        with self._lock:
            order = traversal.topological_order(self._outgoing)
            if len(order) == len(self._nodes):
                return [self._nodes.items[node_id] for node_id in order]
            keys = [node.key for node in self.find_cycle() or ()]
            raise CycleError([*keys, *keys[:1]])

    async def find_path(self, start: NodeRef, end: NodeRef, *, check_conditions: bool = False) -> list[Edge] | None:
        """Return the edges of a path with the fewest hops, ``[]`` for equal ends; None when there is none (G25).

        Args:
            start: where the path begins.
            end: where it ends.
            check_conditions: leave out edges whose condition, called without arguments, is false; what it raises
                propagates.

        Raises:
            RelationError: an end is not in the graph.
        """
        with self._lock:
            start_id, end_id = self._node_id(start), self._node_id(end)
            if not check_conditions:
                path = traversal.shortest_path(self._outgoing, start_id, end_id)
                return None if path is None else [self._edges.items[edge_id] for edge_id in path]
            edges = dict(self._edges.items)
            outgoing = {node_id: dict(links) for node_id, links in self._outgoing.items()}
        return await _conditional_path(outgoing, edges, start_id, end_id)

    # How

    def _node_id(self, ref: object) -> int:
        node_id = self._keys.get(ref) if isinstance(ref, str) else None
        if node_id is None:
            try:
                node_id = raw_id_of(ref)
            except ValueError:
                raise self._missing("node", ref) from None
        if node_id not in self._nodes.items:
            raise self._missing("node", ref)
        return node_id

    def _missing(self, kind: str, ref: object) -> RelationError:
        shown = repr(ref) if isinstance(ref, str | Element) else str(ref)
        return RelationError(f"{self!r} has no {kind} {shown}")

    def _pile(self, node_ids: Iterable[int]) -> Pile[Node]:
        nodes = self._nodes.items
        return Pile([nodes[node_id] for node_id in dict.fromkeys(node_ids)], item_type=Node)


def _public(links: Mapping[int, int]) -> dict[UUID, UUID]:
    return {UUID(int=edge_id): UUID(int=node_id) for edge_id, node_id in links.items()}


async def _conditional_path(
    outgoing: Mapping[int, Mapping[int, int]], edges: Mapping[int, Edge], start: int, end: int
) -> list[Edge] | None:
    reached: dict[int, tuple[int, int] | None] = {start: None}
    queue = deque([start])
    while queue and end not in reached:
        node_id = queue.popleft()
        for edge_id, tail in outgoing[node_id].items():
            if tail not in reached and await edges[edge_id].check_condition():
                reached[tail] = (node_id, edge_id)
                queue.append(tail)
    return [edges[edge_id] for edge_id in traversal.path_to(reached, end)] if end in reached else None
