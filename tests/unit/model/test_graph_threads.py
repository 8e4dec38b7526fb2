"""Graph and threads: G31, G32."""

import asyncio
from itertools import pairwise

from graphrun.errors import RelationError
from graphrun.model import Condition, Edge, Graph, Node

WORKERS = 4
ROUNDS = 60


def mirrored(graph):
    expected = {node.id: {"in": {}, "out": {}} for node in graph}
    for edge in graph.internal_edges:
        expected[edge.head]["out"][edge.id] = edge.tail
        expected[edge.tail]["in"][edge.id] = edge.head
    return graph.node_edge_mapping == expected


def test_mutators_of_many_threads_leave_piles_and_adjacency_agreeing_g31(together):
    graph = Graph()
    for key in "abc":
        graph.add_node(Node(key))

    def mutate(worker):
        for turn in range(ROUNDS):
            node = Node(f"{worker}-{turn}")
            graph.add_node(node)
            graph.add_edge(Edge("a", node))
            graph.add_edge(Edge(node, "b"))
            new = Node(f"{worker}-{turn}-new")
            graph.replace_node(node, new)
            graph.splice_after(new, Node(f"{worker}-{turn}-spliced"))
            if turn % 2:
                graph.remove_node(new)

    together(*(lambda worker=worker: mutate(worker) for worker in range(WORKERS)))
    kept = WORKERS * ROUNDS
    assert len(graph) == 3 + kept + kept // 2
    assert mirrored(graph)


def test_of_many_threads_that_add_one_key_one_wins_g31(together):
    graph = Graph()
    won = []

    def add():
        for turn in range(ROUNDS):
            node = Node(f"n{turn}")
            try:
                graph.add_node(node)
            except RelationError:
                continue
            won.append(node)

    together(*[add] * WORKERS)
    assert sorted(node.key for node in won) == sorted(f"n{turn}" for turn in range(ROUNDS))
    assert len(graph) == ROUNDS


def test_the_lock_is_reentrant_for_compound_changes_of_a_subclass_g31():
    graph = Graph()
    with graph._lock:
        graph.add_node(Node("a"))
        graph.splice_after("a", Node("b"))
    assert len(graph) == 2


def test_traversals_give_a_stable_result_while_others_write_g32(together):
    graph = Graph()
    chain = [Node(f"n{i}") for i in range(50)]
    for node in chain:
        graph.add_node(node)
    for head, tail in pairwise(chain):
        graph.add_edge(Edge(head, tail))

    def write():
        for turn in range(ROUNDS):
            extra = Node(f"extra{turn}")
            graph.add_node(extra)
            graph.add_edge(Edge(chain[turn % 50], extra))
            graph.remove_node(extra)

    def read():
        for _ in range(ROUNDS):
            order = [node for node in graph.topological_sort() if node.key.startswith("n")]
            assert order == chain
            assert graph.is_acyclic()
            assert graph.find_cycle() is None
            assert graph.get_heads()[0] is chain[0]
            assert len(asyncio.run(graph.find_path("n0", "n49"))) == 49
            payload = graph.to_dict()
            ids = {item["id"] for item in payload["internal_nodes"]}
            assert all({item["head"], item["tail"]} <= ids for item in payload["internal_edges"])
            nodes, edges = graph.snapshot()
            assert {edge.tail for edge in edges} <= {node.id for node in nodes}

    def grow():
        for turn in range(ROUNDS):
            graph.add_node(Node(f"other{turn}"))
            graph.add_edge(Edge("n0", f"other{turn}"))

    together(write, read, grow, read)
    assert mirrored(graph)


def test_a_path_that_awaits_conditions_sees_the_graph_as_it_was_and_holds_no_lock_g32(together):
    graph = Graph()
    for key in "abc":
        graph.add_node(Node(key))

    class Cutting(Condition):
        async def apply(self, *args, **kwargs):
            together(lambda: graph.remove_node("c"))
            return True

    graph.add_edge(Edge("a", "b", Cutting()))
    graph.add_edge(Edge("b", "c"))
    found = asyncio.run(graph.find_path("a", "c", check_conditions=True))
    assert len(found) == 2
    assert "c" not in graph
