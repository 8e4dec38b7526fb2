"""Graph, queries: G19 to G25."""

import asyncio

import pytest

from graphrun.errors import CycleError, RelationError
from graphrun.model import Condition, Edge, ExpressionCondition, Graph, Node

CHAIN = 10_000


class Recording(Condition):
    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    async def apply(self, *args, **kwargs):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def made(edges="", nodes=""):
    graph = Graph()
    for key in dict.fromkeys(edges.replace(" ", "") + nodes):
        graph.add_node(Node(key))
    for head, tail in edges.split():
        graph.add_edge(Edge(head, tail))
    return graph


def keys(nodes):
    return "".join(node.key for node in nodes)


def ends(graph, edges):
    return [graph[edge.head].key + graph[edge.tail].key for edge in edges]


def path(graph, start, end, **options):
    return asyncio.run(graph.find_path(start, end, **options))


def tail_first_chain():
    graph = Graph()
    nodes = [Node(f"n{i}") for i in range(CHAIN)]
    for node in reversed(nodes):
        graph.add_node(node)
    for index in reversed(range(CHAIN - 1)):
        graph.add_edge(Edge(nodes[index], nodes[index + 1]))
    return graph, nodes


def test_find_node_edge_gives_incoming_before_outgoing_a_self_loop_once_g19():
    graph = made("ab bb bc cb")
    assert ends(graph, graph.find_node_edge("b")) == ["ab", "bb", "cb", "bc"]
    assert ends(graph, graph.find_node_edge("b", "in")) == ["ab", "bb", "cb"]
    assert ends(graph, graph.find_node_edge("b", direction="out")) == ["bb", "bc"]
    assert graph.find_node_edge("b").item_type == (Edge,)


def test_find_node_edge_refuses_another_direction_and_an_absent_node_g19():
    with pytest.raises(ValueError, match="'both', 'in' or 'out', got 'up'"):
        made("ab").find_node_edge("a", "up")
    with pytest.raises(RelationError):
        made("ab").find_node_edge("x")


def test_heads_have_nothing_incoming_and_tails_nothing_outgoing_g20():
    graph = made("ab bc xy yx", "i")
    assert keys(graph.get_heads()) == "ai"
    assert keys(graph.get_tails()) == "ci"
    assert len(Graph().get_heads()) == 0
    assert len(made("aa").get_heads()) == 0


def test_predecessors_and_successors_follow_the_order_of_edges_once_each_g21():
    graph = made("cb ab bz by cb bb", "q")
    assert keys(graph.get_predecessors("b")) == "cab"
    assert keys(graph.get_successors(graph["b"])) == "zyb"
    assert keys(graph.get_successors("q")) == ""
    with pytest.raises(RelationError):
        graph.get_successors("x")


def test_membership_is_by_object_id_id_string_or_key_for_nodes_and_edges_g22():
    graph = made("ab")
    for item in (graph["a"], graph.internal_edges[0]):
        assert item in graph
        assert item.id in graph
        assert str(item.id) in graph
    assert "a" in graph
    for absent in ("x", Node("a"), Edge("a", "b"), Graph(), None, 5, []):
        assert absent not in graph


@pytest.mark.parametrize(
    ("edges", "acyclic"),
    [("", True), ("ab bc ac", True), ("ab ab", True), ("aa", False), ("ab ba", False), ("xy ab bc ca", False)],
)
def test_is_acyclic_g23(edges, acyclic):
    graph = made(edges, "i")
    before = graph.to_dict()
    assert graph.is_acyclic() is acyclic
    assert (graph.find_cycle() is None) is acyclic
    assert graph.to_dict() == before


def test_find_cycle_gives_its_nodes_in_order_once_each_g23():
    assert keys(made("xa ab bc ca cy").find_cycle()) == "abc"
    assert keys(made("ab bb").find_cycle()) == "b"


def test_topological_sort_is_kahns_with_ties_in_insertion_order_g24():
    assert keys(made("ab bd cd ae", "z").topological_sort()) == "aczbed"
    assert Graph().topological_sort() == []
    assert keys(made("ba", "c").topological_sort()) == "bca"
    assert keys(made("", "zyx").topological_sort()) == "zyx"


def test_topological_sort_of_a_cycle_is_a_value_error_naming_it_in_order_g24():
    with pytest.raises(ValueError, match="a -> b -> c -> a") as caught:
        made("xa ab bc ca cy").topological_sort()
    assert isinstance(caught.value, CycleError)
    assert caught.value.cycle == ["a", "b", "c", "a"]
    with pytest.raises(CycleError, match="b -> b"):
        made("ab bb").topological_sort()


def test_chains_of_10000_nodes_added_tail_first_need_no_recursion_g23_g24_g25():
    graph, nodes = tail_first_chain()
    assert graph.is_acyclic()
    assert graph.topological_sort() == nodes
    assert len(path(graph, "n0", nodes[-1])) == CHAIN - 1
    graph.add_edge(Edge(nodes[-1], nodes[0]))
    assert not graph.is_acyclic()
    assert len(graph.find_cycle()) == CHAIN
    with pytest.raises(CycleError):
        graph.topological_sort()


def test_a_lattice_with_2_to_the_40_paths_is_searched_once_g23():
    graph = made("ab", "")
    layer = [graph["a"], graph["b"]]
    for depth in range(40):
        below = [Node(f"{depth}-{side}") for side in range(2)]
        for node in below:
            graph.add_node(node)
        for head in layer:
            for node in below:
                graph.add_edge(Edge(head, node))
        layer = below
    assert graph.find_cycle() is None


def test_find_path_is_a_list_of_edges_shortest_by_hops_g25():
    graph = made("ab bc cd ac ad", "z")
    assert ends(graph, path(graph, "a", "d")) == ["ad"]
    assert ends(graph, path(graph, graph["b"].id, graph["d"])) == ["bc", "cd"]
    assert path(graph, "a", "a") == []
    assert path(graph, "a", "z") is None
    assert path(graph, "d", "a") is None


def test_find_path_ends_on_cyclic_graphs_g25():
    graph = made("ab bc ca bb cd", "z")
    assert ends(graph, path(graph, "a", "d")) == ["ab", "bc", "cd"]
    assert path(graph, "a", "z") is None


def test_find_path_refuses_a_missing_end_g25():
    for start, end in (("x", "a"), ("a", "x"), ("x", "x")):
        with pytest.raises(RelationError, match="'x'"):
            path(made("ab"), start, end)


def test_find_path_leaves_out_edges_whose_condition_is_false_only_when_asked_g25():
    graph = made("ab bd ac cd")
    no = Recording(False)
    graph.internal_edges[0].condition = no
    graph.internal_edges[2].condition = Recording(True)
    assert ends(graph, path(graph, "a", "d")) == ["ab", "bd"]
    assert no.asked == 0
    assert ends(graph, path(graph, "a", "d", check_conditions=True)) == ["ac", "cd"]
    assert no.asked == 1
    graph.internal_edges[3].condition = ExpressionCondition("1 > 2")
    assert path(graph, "a", "d", check_conditions=True) is None
    assert path(graph, "a", "a", check_conditions=True) == []


def test_what_a_condition_raises_on_the_way_propagates_g25():
    graph = made("ab")
    graph.internal_edges[0].condition = Recording(RuntimeError("from the condition"))
    with pytest.raises(RuntimeError, match="from the condition"):
        path(graph, "a", "b", check_conditions=True)


def test_iteration_and_length_are_those_of_the_nodes():
    graph = made("ab")
    seen = []
    for node in graph:
        seen.append(node.key)
        graph.remove_node(node)
    assert seen == ["a", "b"]
    assert len(graph) == 0
