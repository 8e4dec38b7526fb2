"""Graph, JSON and copies: G1, G28, G30, G31."""

import copy
import json
import pickle

import pytest

from graphrun.errors import EncodingError, FormatError, RelationError
from graphrun.model import Condition, Edge, ExpressionCondition, Graph, NamedCondition, Node


class Daily(Graph, type_name="test.Daily"):
    __slots__ = ()


class Step(Node, type_name="test.GraphStep"):
    __slots__ = ()


class Code(Condition):
    async def apply(self, *args, **kwargs):
        return True


def populated():
    graph = Graph("daily", metadata={"m": 1})
    graph.add_node(Node("a", task="t", params={"x": [1]}, options={"owner": "me"}))
    graph.add_node(Step("b"))
    graph.add_node(Node())
    graph.add_edge(Edge("a", "b", ExpressionCondition("result > 3"), label=[], weight=1))
    graph.add_edge(Edge("b", "a", NamedCondition("big"), label=["x"]))
    graph.add_edge(Edge("b", "b"))
    graph.replace_node("a", Node("c"))
    return graph


def adjacency(graph):
    return [
        (node, list(maps["in"].items()), list(maps["out"].items())) for node, maps in graph.node_edge_mapping.items()
    ]


@pytest.mark.parametrize("make", [Graph, populated])
def test_json_text_brings_back_every_id_order_property_and_moment_g28(make):
    graph = make()
    payload = graph.to_dict()
    again = Graph.from_dict(json.loads(json.dumps(payload)))
    assert again.to_dict() == payload
    assert (again.id, again.created_at, again.name) == (graph.id, graph.created_at, graph.name)
    assert adjacency(again) == adjacency(graph)
    for one, other in zip(graph.internal_edges, again.internal_edges, strict=True):
        assert (one.id, one.properties) == (other.id, other.properties)
    assert [type(node) for node in again] == [type(node) for node in graph]


def test_the_adjacency_and_the_lock_are_not_serialised_g1_g31():
    assert populated().to_dict().keys() == {
        "type",
        "id",
        "created_at",
        "metadata",
        "name",
        "internal_nodes",
        "internal_edges",
    }


def test_a_loaded_graph_keeps_its_invariants_g28():
    again = Graph.from_dict(populated().to_dict())
    with pytest.raises(RelationError, match="key 'b' already"):
        again.add_node(Node("b"))
    again.remove_node("b")
    assert len(again.internal_edges) == 0


def test_the_payload_is_not_changed_g28():
    payload = populated().to_dict()
    before = copy.deepcopy(payload)
    graph = Graph.from_dict(payload)
    graph.remove_node("b")
    graph["c"].params["x"] = 2
    assert payload == before


def test_an_edge_that_names_an_absent_node_is_a_relation_error_naming_both_g30():
    payload = populated().to_dict()
    gone = payload["internal_nodes"].pop(0)["id"]
    edge = payload["internal_edges"][0]["id"]
    with pytest.raises(RelationError, match=rf"\$\.internal_edges\[0\]: edge {edge}: its end {gone}"):
        Graph.from_dict(payload)


def test_twice_the_same_node_or_key_in_a_payload_is_a_relation_error_with_its_place():
    payload = populated().to_dict()
    payload["internal_nodes"].append(payload["internal_nodes"][0])
    with pytest.raises(RelationError, match=r"\$\.internal_nodes\[3\]: .*already"):
        Graph.from_dict(payload)


@pytest.mark.parametrize(
    ("field", "item", "message"),
    [
        ("internal_nodes", {"type": "Edge"}, r"\$\.internal_nodes\[0\]\.type: 'Edge' is no Node"),
        ("internal_nodes", {"type": "os.system"}, r"\$\.internal_nodes\[0\]\.type: unknown type"),
        ("internal_edges", 5, r"\$\.internal_edges\[0\]: expected an object, got int"),
    ],
)
def test_a_malformed_part_is_named_with_its_place(field, item, message):
    with pytest.raises(FormatError, match=message):
        Graph.from_dict(Graph().to_dict() | {field: [item]})
    with pytest.raises(FormatError, match=rf"\$\.{field}: expected list"):
        Graph.from_dict(Graph().to_dict() | {field: {}})


def test_what_cannot_be_serialised_is_named_with_its_place():
    graph = populated()
    graph.internal_edges[2].condition = Code()
    with pytest.raises(EncodingError, match=r"type Code at path \$\.internal_edges\[2\]\.properties\.condition"):
        graph.to_dict()
    graph["b"].params["when"] = object()
    with pytest.raises(EncodingError, match=r"type object at path \$\.internal_nodes\[0\]\.params\.when"):
        graph.to_dict()


def test_a_subclass_comes_back_as_itself():
    assert type(Graph.from_dict(Daily("d").to_dict())) is Daily
    with pytest.raises(FormatError, match="'Graph' is no Daily"):
        Daily.from_dict(Graph().to_dict())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_equal_in_everything_and_change_on_their_own_with_a_fresh_lock_g31(copied):
    graph = populated()
    before = graph.to_dict()
    again = copied(graph)
    assert again.to_dict() == before
    assert adjacency(again) == adjacency(graph)
    assert again._lock is not graph._lock
    again.replace_node("b", Node("n"))
    again.add_node(Node("b"))
    again.remove_node("c")
    assert graph.to_dict() == before
    assert adjacency(graph) == adjacency(Graph.from_dict(before))


def test_a_chain_of_10000_nodes_is_pickled_and_copied_without_recursion():
    graph = Graph()
    for index in range(10_000):
        graph.add_node(Node(f"n{index}"))
        if index:
            graph.add_edge(Edge(f"n{index}", f"n{index - 1}"))
    assert len(pickle.loads(pickle.dumps(graph)).internal_edges) == 9_999
