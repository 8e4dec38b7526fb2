"""Graph, changes: G1, G2, G7 to G18."""

from uuid import uuid4

import pytest

from graphrun.errors import RelationError
from graphrun.model import Edge, Element, ExpressionCondition, Graph, NamedCondition, Node


def made(edges="", nodes=""):
    """Return a graph of one-letter nodes: ``made("ab bc", "d")`` has edges a -> b and b -> c, and a lone d."""
    graph = Graph()
    for key in dict.fromkeys(edges.replace(" ", "") + nodes):
        graph.add_node(Node(key))
    for head, tail in edges.split():
        graph.add_edge(Edge(head, tail))
    return graph


def state(graph):
    return (
        [(node.id, node.key) for node in graph],
        [(edge.id, edge.head, edge.tail, dict(edge.properties)) for edge in graph.internal_edges],
        [(node, list(maps["in"].items()), list(maps["out"].items())) for node, maps in graph.node_edge_mapping.items()],
    )


def ends(graph):
    keys = {node.id: node.key for node in graph}
    return [keys[edge.head] + keys[edge.tail] for edge in graph.internal_edges]


def mirrored(graph):
    """Whether the adjacency is what the piles say, in the order of the edges (G1)."""
    expected = {node.id: {"in": {}, "out": {}} for node in graph}
    for edge in graph.internal_edges:
        expected[edge.head]["out"][edge.id] = edge.tail
        expected[edge.tail]["in"][edge.id] = edge.head
    actual = graph.node_edge_mapping
    return actual == expected and all(
        list(actual[node][side]) == list(expected[node][side]) for node in expected for side in ("in", "out")
    )


def test_a_new_graph_is_empty_true_and_has_a_name():
    graph = Graph()
    assert (len(graph), graph.name, Graph("daily").name) == (0, "graph", "daily")
    assert graph
    assert graph.node_edge_mapping == {}


def test_an_edge_stands_in_the_maps_of_both_its_ends_g1():
    graph = made("ab")
    (edge,) = graph.internal_edges
    a, b = graph["a"].id, graph["b"].id
    assert graph.node_edge_mapping == {a: {"in": {}, "out": {edge.id: b}}, b: {"in": {edge.id: a}, "out": {}}}


def test_a_node_is_found_by_key_id_id_string_or_itself_g2():
    graph = made("ab")
    node = graph["a"]
    assert graph[node] is graph[node.id] is graph[str(node.id)] is node


@pytest.mark.parametrize("ref", ["x", 5, None, uuid4(), Node("a")])
def test_a_node_that_is_not_there_is_named_g2(ref):
    with pytest.raises(RelationError, match="has no node"):
        made("ab")[ref]


def test_a_key_wins_over_a_uuid_parse_g2():
    graph = made("", "a")
    impostor = Node(str(graph["a"].id))
    graph.add_node(impostor)
    assert graph[str(graph["a"].id)] is impostor
    edge = Edge(str(graph["a"].id), "a")
    graph.add_edge(edge)
    assert (edge.head, edge.tail) == (impostor.id, graph["a"].id)


def test_ends_that_are_keys_become_ids_when_the_edge_is_added_g2():
    graph = made("", "ab")
    edge = Edge("a", graph["b"])
    graph.add_edge(edge)
    assert (edge.head, edge.tail) == (graph["a"].id, graph["b"].id)
    assert mirrored(graph)


def test_parallel_edges_reverse_pairs_and_self_loops_are_valid_g7():
    graph = made("ab ab ba aa")
    assert ends(graph) == ["ab", "ab", "ba", "aa"]
    assert mirrored(graph)


def test_add_node_refuses_a_resident_id_g8():
    graph = made("ab")
    before = state(graph)
    with pytest.raises(RelationError, match="already"):
        graph.add_node(Node("z", id=graph["a"].id))
    with pytest.raises(RelationError, match="already"):
        graph.add_node(graph["a"])
    assert state(graph) == before


def test_add_node_refuses_a_resident_key_g8():
    graph = made("ab")
    before = state(graph)
    with pytest.raises(RelationError, match="key 'a' already"):
        graph.add_node(Node("a"))
    assert state(graph) == before


@pytest.mark.parametrize("junk", [Element(), Edge(uuid4(), uuid4()), "a", None, {}])
def test_only_a_node_is_admitted_g9(junk):
    graph = Graph()
    with pytest.raises(RelationError, match="is no Node"):
        graph.add_node(junk)
    assert len(graph) == 0


def test_add_edge_refuses_what_is_no_edge_g10():
    graph = made("ab")
    before = state(graph)
    for junk in (Node(), "ab", None):
        with pytest.raises(RelationError, match="is no Edge"):
            graph.add_edge(junk)
    assert state(graph) == before


def test_add_edge_refuses_a_missing_end_and_names_edge_and_end_g10():
    graph = made("ab")
    before = state(graph)
    absent = Node("x")
    for edge, end in (
        (Edge(absent, graph["b"]), absent.id),
        (Edge(graph["a"], absent), absent.id),
        (Edge("x", "b"), "x"),
        (Edge("a", "x"), "x"),
    ):
        with pytest.raises(RelationError, match=f"edge {edge.id}: its end {end}"):
            graph.add_edge(edge)
    assert state(graph) == before


def test_add_edge_refuses_a_resident_id_g10():
    graph = made("ab bc")
    before = state(graph)
    with pytest.raises(RelationError, match="already"):
        graph.add_edge(graph.internal_edges[0])
    assert state(graph) == before


def test_a_self_loop_stands_in_both_maps_of_its_node_g11():
    graph = made("aa")
    (edge,) = graph.internal_edges
    a = graph["a"].id
    assert graph.node_edge_mapping == {a: {"in": {edge.id: a}, "out": {edge.id: a}}}


def test_remove_edge_clears_both_entries_and_returns_the_edge_g12():
    graph = made("ab aa bc")
    for edge in graph.internal_edges.values()[:2]:
        assert graph.remove_edge(edge if edge.head == edge.tail else str(edge.id)) is edge
        assert edge not in graph
    assert ends(graph) == ["bc"]
    assert mirrored(graph)


@pytest.mark.parametrize("absent", [uuid4(), "a", "nonsense", None, Edge(uuid4(), uuid4())])
def test_remove_edge_refuses_an_absent_one_g12(absent):
    graph = made("ab")
    with pytest.raises(RelationError, match="has no edge"):
        graph.remove_edge(absent)


def test_remove_node_removes_every_edge_at_it_a_self_loop_once_g13():
    graph = made("ab bb bc ca bd")
    node = graph["b"]
    assert graph.remove_node("b") is node
    assert ends(graph) == ["ca"]
    assert [node.key for node in graph] == ["a", "c", "d"]
    assert mirrored(graph)
    graph.add_node(Node("b"))


def test_remove_node_refuses_an_absent_one_g13():
    with pytest.raises(RelationError, match="has no node 'x'"):
        made("ab").remove_node("x")


def test_the_piles_and_the_adjacency_cannot_be_written_g14():
    graph = made("ab")
    for view in (graph.internal_nodes, graph.internal_edges):
        for method in ("include", "exclude", "pop", "clear", "insert", "reorder", "remove"):
            assert not hasattr(view, method)
        with pytest.raises(TypeError):
            view[0] = Node()
        with pytest.raises(AttributeError):
            graph.internal_nodes = view
    before = state(graph)
    graph.node_edge_mapping.clear()
    graph.node_edge_mapping[graph["a"].id]["out"].clear()
    assert state(graph) == before


def test_the_views_are_live_and_keep_their_ids_g14():
    graph = made("ab")
    nodes, edges = graph.internal_nodes, graph.internal_edges
    graph.add_node(Node("c"))
    assert [node.key for node in nodes] == ["a", "b", "c"]
    assert nodes[-1] is graph["c"]
    graph.remove_node("a")
    assert nodes[0] is graph["b"]
    assert nodes == graph.internal_nodes != edges


def test_replace_node_keeps_edge_objects_ids_and_everything_in_them_g15():
    graph = made("ab bc bb cb")
    condition = ExpressionCondition("result > 3")
    edges = graph.internal_edges.values()
    edges[0].condition, edges[1].label = condition, []
    edges[2].update_property("weight", 1)
    kept = [(edge.id, dict(edge.properties)) for edge in edges]
    old, new = graph["b"], Node("n")
    assert graph.replace_node("b", new) is old
    assert all(one is other for one, other in zip(edges, graph.internal_edges, strict=True))
    assert [(edge.id, dict(edge.properties)) for edge in edges] == kept
    assert ends(graph) == ["an", "nc", "nn", "cn"]
    assert [node.key for node in graph] == ["a", "c", "n"]
    assert old not in graph
    assert mirrored(graph)


def test_the_new_node_may_have_the_key_of_the_one_it_replaces_g15():
    graph = made("ab")
    new = Node("b")
    graph.replace_node("b", new)
    assert graph["b"] is new
    assert ends(graph) == ["ab"]


def test_replace_node_changes_nothing_when_it_fails_g15_g18():
    graph = made("ab bc")
    before = state(graph)
    for old, new in (("x", Node("n")), ("b", graph["c"]), ("b", graph["b"]), ("b", Node("c")), ("b", Element())):
        with pytest.raises(RelationError):
            graph.replace_node(old, new)
    assert state(graph) == before


def test_splice_after_hands_the_outgoing_edges_over_as_new_ones_g16():
    graph = made("ab bc bd ea")
    condition = NamedCondition("big")
    old = graph.find_node_edge("b", "out").values()
    old[0].condition, old[0].label = condition, "x"
    old[0].metadata["m"] = 1
    old[1].update_property("head", "a property of that name")
    link, *replacements = graph.splice_after("b", Node("n"))
    keys = {node.id: node.key for node in graph}
    assert [keys[edge.head] + keys[edge.tail] for edge in (link, *replacements)] == ["bn", "nc", "nd"]
    assert (link.condition, link.label) == (None, None)
    assert replacements[0].condition is condition
    assert [dict(edge.properties) for edge in replacements] == [dict(edge.properties) for edge in old]
    assert not {edge.id for edge in replacements} & {edge.id for edge in old}
    assert replacements[0].metadata == {}
    assert not any(edge in graph for edge in old)
    assert ends(graph) == ["ab", "ea", "nc", "nd", "bn"]
    assert mirrored(graph)


def test_splice_after_a_node_without_successors_gives_only_the_link_g16():
    graph = made("ab")
    assert len(graph.splice_after("b", Node("n"))) == 1
    assert ends(graph) == ["ab", "bn"]


def test_splice_after_a_self_loop_leads_it_back_through_the_new_node_g16():
    graph = made("aa ab")
    graph.splice_after("a", Node("n"))
    assert ends(graph) == ["na", "nb", "an"]
    assert mirrored(graph)


def test_splice_after_keeps_an_explicit_empty_label_g17():
    graph = made("ab")
    graph.internal_edges[0].label = []
    _link, replacement = graph.splice_after("a", Node("n"))
    assert replacement.label == []


def test_splice_after_changes_nothing_when_it_fails_g16_g18():
    graph = made("ab bc")
    before = state(graph)
    for anchor, new in (("x", Node("n")), ("a", graph["c"]), ("a", Node("b")), ("a", "n")):
        with pytest.raises(RelationError):
            graph.splice_after(anchor, new)
    assert state(graph) == before
