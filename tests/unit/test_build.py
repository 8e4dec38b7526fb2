"""The public Graph: handles, keys, parameters, amended edges."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from graphrun import Context, Graph, TaskRegistry, task
from graphrun.errors import ExpressionError, FormatError, GraphError, RegistryError, RelationError

REGISTRY = TaskRegistry()


@task(registry=REGISTRY, name="shop.fetch", queue="io", owner="crawler", max_attempts=3)
def fetch(url: str, retries: int = 1) -> list[int]:
    return [len(url), retries]


@task(registry=REGISTRY, name="shop.total")
def total(parts: list[Any], ctx: Context) -> int:
    return len(parts)


@pytest.fixture
def graph() -> Graph:
    return Graph("daily", registry=REGISTRY)


def test_a_handle_anywhere_inside_a_parameter_is_a_data_edge(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    graph.add(total, parts=[a, {"deep": (b[0], a)}], key="t")
    spec = graph.freeze()
    assert [(edge.head, edge.tail, edge.kind, edge.parameter) for edge in spec.edges] == [
        ("a", "t", "data", "parts"),
        ("b", "t", "data", "parts"),
    ]
    assert spec.node("t").params == {
        "parts": [{"$node": "a"}, {"deep": [{"$node": "b", "path": "[0]"}, {"$node": "a"}]}]
    }


def test_after_makes_order_edges(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    graph.add(total, parts=[], after=[a, b], key="t")
    assert [(edge.head, edge.kind, edge.parameter) for edge in graph.freeze().edges] == [
        ("a", "order", None),
        ("b", "order", None),
    ]


def test_a_part_of_an_output_is_named_by_subscripts(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    assert [a["x"].path, a["x"]["y"][0].path, a['a "b"'].path] == ["x", "x.y[0]", '["a \\"b\\""]']
    with pytest.raises(TypeError, match="cannot be unpacked"):
        _first, _second = a


def test_keys_are_derived_from_the_task_and_counted(graph: Graph) -> None:
    handles = [graph.add(fetch, url="a") for _ in range(3)]
    assert [handle.key for handle in handles] == ["fetch", "fetch-2", "fetch-3"]


def test_o2_a_key_that_is_taken_is_refused(graph: Graph) -> None:
    graph.add(fetch, url="a", key="t1")
    with pytest.raises(RelationError, match="t1"):
        graph.add(fetch, url="b", key="t1")


def test_every_bad_parameter_of_a_node_is_named(graph: Graph) -> None:
    with pytest.raises(RegistryError) as refused:
        graph.add(fetch, ulr="a", retries="many")
    assert all(said in str(refused.value) for said in ("shop.fetch", "ulr", "'url'", "retries"))
    assert len(graph) == 0


def test_a_parameter_named_like_an_option_goes_into_params(graph: Graph) -> None:
    @task(registry=REGISTRY, name="shop.keyed")
    def keyed(key: str) -> str:
        return key

    handle = graph.add(keyed, key="node-key", params={"key": "value"})
    assert graph.freeze().node(handle.key).params == {"key": "value"}


def test_a_node_takes_the_policy_of_its_task_and_may_change_parts_of_it(graph: Graph) -> None:
    graph.add(fetch, url="a", key="a")
    graph.add(fetch, url="b", key="b", policy={"queue": "fast"}, owner="me")
    a, b = graph.freeze().nodes
    assert (a.policy.queue, a.policy.max_attempts, a.owner) == ("io", 3, "crawler")
    assert (b.policy.queue, b.policy.max_attempts, b.owner) == ("fast", 3, "me")


def test_a_policy_with_unknown_or_wrong_fields_is_refused(graph: Graph) -> None:
    with pytest.raises(FormatError) as refused:
        graph.add(fetch, url="a", policy={"timeout": 3, "max_attempts": 0})
    assert "timeout: unknown field" in str(refused.value)
    assert "max_attempts" in str(refused.value)


def test_connect_amends_the_edges_that_stand_and_adds_one_where_none_does(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    t = graph.add(total, parts=[a], key="t")
    graph.connect(a, t, when="result[0] > 3", required=False)
    graph.connect(b, t, enabled=False)
    first, second = graph.freeze().edges
    assert (first.parameter, first.when, first.required, first.enabled) == ("parts", "result[0] > 3", False, True)
    assert (second.head, second.parameter, second.enabled) == ("b", None, False)


def test_a_condition_that_cannot_be_read_is_refused_at_once(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    with pytest.raises(ExpressionError):
        graph.connect(a, b, when="result >")


@pytest.mark.parametrize(
    "use",
    [
        lambda graph, alien: graph.add(total, parts=[alien]),
        lambda graph, alien: graph.add(total, parts=[], after=alien),
        lambda graph, alien: graph.connect(alien, alien),
    ],
    ids=["parameter", "after", "connect"],
)
def test_a_handle_of_another_graph_is_refused(graph: Graph, use: Callable[[Graph, Any], object]) -> None:
    alien = Graph("other", registry=REGISTRY).add(fetch, url="a")
    with pytest.raises(RelationError, match="belongs to another graph"):
        use(graph, alien)


def test_a_task_is_found_by_name_and_an_unknown_one_is_refused(graph: Graph) -> None:
    assert graph[graph.add("shop.fetch", url="a").key].task == "shop.fetch"
    with pytest.raises(RegistryError, match=r"shop\.fetsh.*shop\.fetch"):
        graph.add("shop.fetsh", url="a")
    with pytest.raises(RegistryError, match="is no task"):
        graph.add(42)


def test_o28_a_key_that_no_database_stores_is_refused(graph: Graph) -> None:
    with pytest.raises(GraphError, match="NUL"):
        graph.add(fetch, url="a", key="a\x00")


def test_a_graph_survives_json_and_copying(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a", resources=["disk"])
    graph.add(total, parts=[a], key="t")
    graph.connect(a, a, enabled=False)
    graph.failure_policy = "fail_fast"
    again = Graph.from_dict(graph.to_dict())
    copied = copy.deepcopy(graph)
    assert copied.registry is graph.registry
    assert again.freeze() == graph.freeze() == copied.freeze()
    assert again.freeze().settings.failure_policy == "fail_fast"


def test_g32_a_frozen_spec_does_not_change_with_its_graph(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    spec = graph.freeze()
    graph.add(total, parts=[a], key="t")
    graph[a.key].params["url"] = "other"
    assert [node.key for node in spec.nodes] == ["a"]
    assert spec.node("a").params == {"url": "a"}


def test_a_plan_shows_waves_and_is_refused_when_submit_would_be(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    t = graph.add(total, parts=[a], key="t")
    assert graph.plan().waves == (("a",), ("t",))
    assert "wave1[a] → gate → wave2[t]" in str(graph.plan())
    graph.connect(t, a)
    with pytest.raises(GraphError.__mro__[1], match="a -> t -> a"):
        graph.plan()
