"""G32: a mutable graph becomes a spec that shares nothing with it, and that its own document gives back."""

from __future__ import annotations

from typing import Any

import pytest

from graphrun.errors import FormatError, GraphError
from graphrun.model.condition import EdgeCondition, ExpressionCondition
from graphrun.model.edge import Edge
from graphrun.model.freezing import freeze
from graphrun.model.graph import Graph
from graphrun.model.node import Node
from graphrun.model.spec import GraphSpec, RunPolicy


class Always(EdgeCondition):
    async def apply(self, *args: Any, **kwargs: Any) -> bool:
        return True


def _graph(*nodes: Node, edges: tuple[Edge, ...] = ()) -> Graph:
    graph = Graph("g")
    for node in nodes:
        graph.add_node(node)
    for edge in edges:
        graph.add_edge(edge)
    return graph


def test_g32_nothing_that_changes_behind_a_spec_changes_it() -> None:
    params: dict[str, Any] = {"x": [1, {"y": 2}]}
    node = Node("a", "t", params, {"resources": ["disk"]})
    spec = freeze(_graph(node))
    params["x"].append(2)
    node.params["x"][1]["y"] = 3
    node.options["resources"].append("gpu")
    assert spec.node("a").params == {"x": [1, {"y": 2}]}
    assert spec.node("a").resources == ("disk",)


def test_z9_a_frozen_graph_is_what_its_document_gives_back() -> None:
    nodes = [Node("a", "t"), Node("b", "t", {"x": {"$node": "a"}}), Node("c", "t"), Node("d", "t")]
    edges = (
        Edge("a", "c", required=True),
        Edge("a", "b"),
        Edge("c", "d", parameter="y", when="result"),
        Edge("a", "b", condition=ExpressionCondition("result > 0"), parameter="x"),
    )
    spec = freeze(_graph(*nodes, edges=edges), RunPolicy(failure_policy="fail_fast"))
    assert [(str(edge), edge.kind, edge.parameter, edge.when) for edge in spec.edges] == [
        ("a -> b", "data", "x", "result > 0"),
        ("c -> d", "data", "y", "result"),
        ("a -> c", "order", None, None),
        ("a -> b", "order", None, None),
    ]
    assert GraphSpec.from_document(spec.to_document()) == spec


def test_an_edge_with_a_parameter_gives_that_parameter() -> None:
    spec = freeze(_graph(Node("a", "t"), Node("b", "t"), edges=(Edge("a", "b", parameter="x"),)))
    assert spec.node("b").params == {"x": {"$node": "a"}}


def test_an_edge_onto_a_parameter_with_a_value_is_refused() -> None:
    graph = _graph(Node("a", "t"), Node("b", "t", {"x": 1}), edges=(Edge("a", "b", parameter="x"),))
    with pytest.raises(GraphError, match="edge a -> b: parameter 'x' of node 'b' has a value already"):
        freeze(graph)


def test_z12_a_cycle_is_frozen_and_judged_later() -> None:
    assert len(freeze(_graph(Node("a", "t"), edges=(Edge("a", "a"),))).edges) == 1


def test_a_node_without_a_task_cannot_run() -> None:
    with pytest.raises(GraphError, match="node 'a' has no task"):
        freeze(_graph(Node("a")))


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), float("nan"), {1: 2}], ids=str)
def test_a_parameter_that_is_no_plain_json_is_refused_by_node_and_place(value: object) -> None:
    with pytest.raises(GraphError, match=r"node 'a': params\.x"):
        freeze(_graph(Node("a", "t", {"x": [value]})))


def test_options_that_no_spec_has_are_refused_by_node() -> None:
    with pytest.raises(FormatError, match=r"node 'a': policy\.queue: .*; joint: unknown field"):
        freeze(_graph(Node("a", "t", {}, {"joint": "all", "policy": {"queue": 5}})))


@pytest.mark.parametrize("properties", [{"required": "perhaps"}, {"enabled": 7}, {"parameter": 5}], ids=str)
def test_an_edge_property_of_another_type_is_refused_by_edge(properties: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="edge a -> b: "):
        freeze(_graph(Node("a", "t"), Node("b", "t"), edges=(Edge("a", "b", **properties),)))


def test_a_condition_that_is_code_cannot_be_stored() -> None:
    with pytest.raises(GraphError, match="edge a -> b: a Always cannot be stored"):
        freeze(_graph(Node("a", "t"), Node("b", "t"), edges=(Edge("a", "b", condition=Always()),)))
