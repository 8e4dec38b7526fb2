"""X10: what is done before it starts, by a given output, an output that exists, or a named check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from graphrun.engine.compiling import compile_graph
from graphrun.engine.pre_done import find_pre_done, mark_pre_done, output_exists
from graphrun.errors import GraphError
from graphrun.model.spec import GraphSpec, NodeSpec
from graphrun.registry import TaskRegistry, condition, task

REGISTRY = TaskRegistry()
REGISTRY.external("elsewhere")


@task(registry=REGISTRY, name="make")
def make(x: Any = 0, y: Any = 0) -> int:
    return 1


@condition(name="x-is-big", registry=REGISTRY)
def x_is_big(x: float, **_others: Any) -> bool:
    return x > 1


@condition(name="breaks", registry=REGISTRY)
def breaks(**_params: Any) -> bool:
    raise OSError("no network\nat all")


def _node(**fields: Any) -> NodeSpec:
    return NodeSpec(**{"key": "a", "task": "make"} | fields)


def test_x10_given_outputs_are_encoded_by_the_task_s_return_type() -> None:
    nodes = [_node(), _node(key="b", task="elsewhere"), _node(key="c")]
    assert find_pre_done(nodes, {"c": 5, "b": [None]}, REGISTRY) == {1: "[null]", 2: "5"}


def test_x10_a_given_output_wins_over_a_check() -> None:
    assert find_pre_done([_node(done_when="breaks")], {"a": 3}, REGISTRY) == {0: "3"}


@pytest.mark.parametrize("value", ["text", {1, 2}], ids=str)
def test_x10_a_given_output_that_does_not_fit_is_refused_by_node(value: Any) -> None:
    with pytest.raises(GraphError, match="the output given for node 'a' cannot be stored"):
        find_pre_done([_node()], {"a": value}, REGISTRY)


def test_x10_outputs_for_nodes_that_are_not_there_are_all_named() -> None:
    with pytest.raises(GraphError, match="not in the graph: 'x', 'y'"):
        find_pre_done([_node()], {"a": 1, "x": 1, "y": 1}, REGISTRY)


def test_d4_an_output_exists_when_it_is_there_and_not_empty(tmp_path: Path) -> None:
    full, empty = tmp_path / "full.csv", tmp_path / "empty.csv"
    full.write_text("rows")
    empty.touch()
    (tmp_path / "folder").mkdir()
    assert output_exists(str(full))
    assert output_exists(full.as_uri())
    assert output_exists(str(tmp_path))
    for absent in (empty, tmp_path / "none.csv", tmp_path / "folder"):
        assert not output_exists(str(absent))


def test_d4_an_output_may_be_any_url() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/pre-done/out.csv", b"rows")
    assert output_exists("memory://pre-done/out.csv")
    assert not output_exists("memory://pre-done/none.csv")


def test_x10_a_declared_output_that_exists_is_the_node_s_value(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    node = _node(done_when="output", output=str(file))
    assert find_pre_done([node], {}, REGISTRY) == {}
    file.write_text("rows")
    assert find_pre_done([node], {}, REGISTRY) == {0: json.dumps(str(file))}
    assert find_pre_done([_node(output=str(file))], {}, REGISTRY) == {}


def test_x10_a_check_sees_literal_parameters_as_values_and_no_references() -> None:
    params = {"x": {"$float": "inf"}, "y": [{"$node": "b"}]}
    nodes = [_node(done_when="x-is-big", params=params), _node(key="b", done_when="x-is-big", params={"x": 1})]
    assert find_pre_done(nodes, {}, REGISTRY) == {0: "null"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"done_when": "breaks"}, "condition 'breaks': OSError: no network"),
        ({"done_when": "x-is-big"}, "condition 'x-is-big': TypeError: "),
        ({"done_when": "nobody"}, "condition 'nobody': RegistryError: unknown condition"),
        ({"done_when": "output", "output": "what://x"}, "output 'what://x': ValueError: "),
        ({"done_when": "output"}, "done_when is 'output', but no output is declared"),
    ],
    ids=str,
)
def test_x10_a_check_that_cannot_be_made_refuses_the_submit_by_node(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(GraphError) as refused:
        find_pre_done([_node(**fields)], {}, REGISTRY)
    assert "node 'a'" in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_x10_done_nodes_are_marked_and_conditions_on_their_edges_are_evaluated() -> None:
    document = {
        "nodes": [{"key": key, "task": "make"} for key in "abc"],
        "edges": [
            {"head": "a", "tail": "b", "when": "result > 3"},
            {"head": "a", "tail": "c", "when": "result > 9"},
            {"head": "a", "tail": "c", "when": "result.x > 9 and len(result)"},
            {"head": "a", "tail": "c"},
            {"head": "b", "tail": "c", "when": "result"},
        ],
    }
    compiled = compile_graph(GraphSpec.from_document(document), REGISTRY)
    nodes, edges = mark_pre_done("run", compiled.nodes, compiled.edges, compiled.spec.nodes, {0: "5"})
    assert [(node.state, node.pre_done) for node in nodes] == [
        ("succeeded", True),
        ("pending", False),
        ("pending", False),
    ]
    assert [edge.truth for edge in edges] == ["true", "false", "error", None, None]
