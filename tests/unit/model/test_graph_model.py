"""Graph against a naive model of lists, through random sequences of changes (G1, G8 to G18, G23, G24, G28)."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from graphrun.errors import CycleError, RelationError
from graphrun.model import Edge, Graph, Node

KEYS = st.sampled_from("abcdef")


class GraphAgainstLists(RuleBasedStateMachine):
    """``nodes`` is the list of keys, ``edges`` that of (id, head key, tail key): scanned, never indexed."""

    def __init__(self):
        super().__init__()
        self.graph = Graph()
        self.nodes: list[str] = []
        self.edges: list[tuple] = []

    @rule(key=KEYS)
    def add_node(self, key):
        with refused_if(key in self.nodes):
            self.graph.add_node(Node(key))
            self.nodes.append(key)

    @rule(head=KEYS, tail=KEYS)
    def add_edge(self, head, tail):
        with refused_if(head not in self.nodes or tail not in self.nodes):
            edge = Edge(head, tail)
            self.graph.add_edge(edge)
            self.edges.append((edge.id, head, tail))

    @rule(key=KEYS)
    def remove_node(self, key):
        with refused_if(key not in self.nodes):
            self.graph.remove_node(key)
            self.nodes.remove(key)
            self.edges = [edge for edge in self.edges if key not in edge[1:]]

    @rule(index=st.integers(0, 5))
    def remove_edge(self, index):
        if index < len(self.edges):
            self.graph.remove_edge(self.edges.pop(index)[0])

    @rule(old=KEYS, new=KEYS)
    def replace_node(self, old, new):
        with refused_if(old not in self.nodes or (new in self.nodes and new != old)):
            self.graph.replace_node(old, Node(new))
            self.nodes.remove(old)
            self.nodes.append(new)
            self.edges = [(edge, *(new if end == old else end for end in ends)) for edge, *ends in self.edges]

    @rule(anchor=KEYS, new=KEYS)
    def splice_after(self, anchor, new):
        with refused_if(anchor not in self.nodes or new in self.nodes):
            link, *replacements = self.graph.splice_after(anchor, Node(new))
            self.nodes.append(new)
            tails = [tail for _, head, tail in self.edges if head == anchor]
            kept = [edge for edge in self.edges if edge[1] != anchor]
            moved = [(edge.id, new, tail) for edge, tail in zip(replacements, tails, strict=True)]
            self.edges = [*kept, *moved, (link.id, anchor, new)]

    @rule()
    def reload(self):
        self.graph = Graph.from_dict(self.graph.to_dict())

    @invariant()
    def nodes_and_edges_agree(self):
        assert [node.key for node in self.graph] == self.nodes
        key = {node.id: node.key for node in self.graph}
        assert [(e.id, key[e.head], key[e.tail]) for e in self.graph.internal_edges] == self.edges

    @invariant()
    def adjacency_agrees_in_order(self):
        key = {node.id: node.key for node in self.graph}
        for node_id, maps in self.graph.node_edge_mapping.items():
            incoming = [(edge, head) for edge, head, tail in self.edges if tail == key[node_id]]
            outgoing = [(edge, tail) for edge, head, tail in self.edges if head == key[node_id]]
            assert [(edge, key[end]) for edge, end in maps["in"].items()] == incoming
            assert [(edge, key[end]) for edge, end in maps["out"].items()] == outgoing

    @invariant()
    def sorting_agrees_with_peeling_off_heads(self):
        left, arcs = list(self.nodes), [edge[1:] for edge in self.edges]
        while heads := [key for key in left if all(tail != key for _, tail in arcs)]:
            left = [key for key in left if key not in heads]
            arcs = [arc for arc in arcs if arc[0] not in heads]
        assert self.graph.is_acyclic() == (not left)
        if left:
            self.the_cycle_named_is_one()
        else:
            place = {node.key: index for index, node in enumerate(self.graph.topological_sort())}
            assert len(place) == len(self.nodes)
            assert all(place[head] < place[tail] for _, head, tail in self.edges)

    def the_cycle_named_is_one(self):
        with pytest.raises(CycleError) as caught:
            self.graph.topological_sort()
        cycle = caught.value.cycle
        arcs = {edge[1:] for edge in self.edges}
        assert cycle[0] == cycle[-1]
        assert all(arc in arcs for arc in pairwise(cycle))


class refused_if:  # noqa: N801 - it reads as a statement
    """Expect a RelationError exactly when the model says so; what follows the refused call does not run."""

    def __init__(self, refused):
        self.refused = refused

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert (kind is RelationError) is self.refused
        return kind is RelationError


TestGraphAgainstLists = GraphAgainstLists.TestCase
TestGraphAgainstLists.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
