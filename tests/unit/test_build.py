"""The public Graph: handles, keys, parameters, amended edges."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from graphrun import Context, Graph, TaskRegistry, task
from graphrun.errors import ExpressionError, FormatError, GraphError, RegistryError, RelationError
from graphrun.model.parameters import path_steps
from graphrun.model.spec import GraphSpec, Policy
from graphrun.registry import Task

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


# --- handles


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (["x", 0], "x[0]"),
        ([0, "x", -1], "[0].x[-1]"),
        (["a b", "c"], '["a b"].c'),
        (["名前"], "名前"),
        (["a·b"], '["a·b"]'),
        (['q"\\'], '["q\\"\\\\"]'),
        (["$x"], '["$x"]'),
        ([""], '[""]'),
    ],
    ids=str,
)
def test_o28_a_part_is_named_whatever_its_key(graph: Graph, parts: list[str | int], path: str) -> None:
    handle = graph.add(fetch, url="a", key="a")
    for part in parts:
        handle = handle[part]
    assert handle.reference() == {"$node": "a", "path": path}
    assert [step for step, _end in path_steps(path)] == parts


@pytest.mark.parametrize("part", [True, 1.5, None, slice(0, 2), ("a",)], ids=str)
def test_a_part_that_is_neither_key_nor_index_is_refused(graph: Graph, part: Any) -> None:
    handle = graph.add(fetch, url="a", key="a")
    with pytest.raises(TypeError, match="a part of the output of node 'a' is named by a text or an int"):
        handle[part]


@pytest.mark.parametrize("use", [list, dict, lambda handle: [*handle]], ids=["list", "dict", "star"])
def test_unpacking_a_handle_is_refused_with_the_remedy(graph: Graph, use: Callable[[Any], object]) -> None:
    handle = graph.add(fetch, url="a", key="a")
    with pytest.raises(TypeError, match=r"the output of node 'a' cannot be unpacked before it ran; use handle\[0\]"):
        use(handle)


def test_a_handle_says_what_it_stands_for(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    assert (repr(a), repr(a["x"][0])) == ("NodeHandle('a')", "NodeHandle('a', 'x[0]')")


def test_a_handle_whose_node_is_gone_is_refused_and_nothing_is_added(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    graph.remove_node("a")
    for use in (lambda: graph.add(total, parts=[a]), lambda: graph.add(total, parts=[], after=a)):
        with pytest.raises(RelationError, match=r"node 'a' is not in .* any more"):
            use()
    assert len(graph) == 0


def test_a_handle_in_a_dict_with_a_dollar_key_is_refused_since_nothing_is_replaced_there(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    with pytest.raises(RegistryError, match="parameter 'parts': node 'a' stands in a dict with a key that begins"):
        graph.add(total, parts=[{"$x": [a]}])


@pytest.mark.parametrize("after", ["a", ["a"], [None], 5], ids=str)
def test_after_takes_handles_alone(graph: Graph, after: Any) -> None:
    graph.add(fetch, url="a", key="a")
    with pytest.raises(GraphError, match="is no node of this graph: give what add"):
        graph.add(total, parts=[], after=after)
    assert len(graph) == 1


def test_a_value_and_an_order_of_the_same_node_are_two_edges_and_survive_a_document(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    graph.add(total, parts=[a], after=[a, a], key="t")
    spec = graph.freeze()
    assert [(edge.kind, edge.parameter) for edge in spec.edges] == [("data", "parts"), ("order", None)]
    assert GraphSpec.from_document(spec.to_document()) == spec


def test_z9_a_built_graph_is_what_its_document_gives_back(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    b = graph.add(fetch, url="b", key="b", after=a)
    c = graph.add(total, parts=[b, a["x"]], key="c", join="all", policy={"timeout_seconds": 5})
    graph.connect(a, c, when="result", required=True)
    graph.connect(c, graph.add(total, parts=[], key="d"), enabled=False)
    spec = graph.freeze()
    assert GraphSpec.from_document(spec.to_document()) == spec
    assert GraphSpec.from_document(spec.to_document()).content_hash == spec.content_hash


# --- keys, parameters, options


def test_derived_keys_go_round_those_that_are_taken(graph: Graph) -> None:
    graph.add(fetch, url="a", key="fetch-2")
    assert [graph.add(fetch, url="a").key for _ in range(2)] == ["fetch", "fetch-3"]
    again = Graph.from_dict(graph.to_dict())
    again._registry = REGISTRY
    assert again.add(fetch, url="a").key == "fetch-4"


@pytest.mark.parametrize("key", ["", "x" * 1001, "a\ud800", 5], ids=repr)
def test_a_key_that_cannot_be_one_is_refused_and_nothing_is_added(graph: Graph, key: Any) -> None:
    with pytest.raises(GraphError, match="node key"):
        graph.add(fetch, url="a", key=key)
    assert len(graph) == 0


def test_a_parameter_given_twice_is_refused(graph: Graph) -> None:
    with pytest.raises(RegistryError, match=r"task shop\.fetch: given twice, in params and by name: url"):
        graph.add(fetch, params={"url": "a"}, url="b")


def test_literals_are_converted_and_kept_as_plain_json(graph: Graph) -> None:
    graph.add(fetch, url="a", retries="3", key="a")
    assert graph.freeze().node("a").params == {"url": "a", "retries": 3}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"join": "some"}, "node 't': join: "),
        ({"why": 5}, "node 't': why: "),
        ({"policy": {"backoff": {"factor": 0}}}, r"policy: backoff\.factor: "),
        ({"policy": {"queue": "", "priority": 10}}, "policy: queue: .*; priority: "),
    ],
    ids=str,
)
def test_an_option_with_a_value_that_it_cannot_have_is_refused_at_once(
    graph: Graph, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(FormatError, match=said):
        graph.add(total, parts=[], key="t", **options)
    assert len(graph) == 0


@pytest.mark.parametrize("option", ["resources", "subgraph"])
def test_a_list_option_is_no_text(graph: Graph, option: str) -> None:
    with pytest.raises(GraphError, match=f"{option} is a list of texts, not the text 'disk'"):
        graph.add(total, parts=[], **{option: "disk"})


def test_a_policy_object_stands_for_all_of_it_and_a_dict_for_what_differs(graph: Graph) -> None:
    graph.add(fetch, url="a", key="whole", policy=Policy(max_attempts=5))
    graph.add(fetch, url="a", key="part", policy={"max_attempts": 5})
    graph.add(fetch, url="a", key="none", policy={})
    whole, part, none = graph.freeze().nodes
    assert (whole.policy.queue, part.policy.queue, none.policy.max_attempts) == (None, "io", 3)


def test_a_verification_is_named_by_itself_by_name_or_as_a_command(graph: Graph) -> None:
    graph.add(fetch, url="a", key="a", verify=total, done_when="output", output="a.csv")
    graph.add(fetch, url="a", key="b", verify="$ test -s a.csv")
    a, b = graph.freeze().nodes
    assert (a.verify, a.done_when, b.verify) == ("shop.total", "output", "$ test -s a.csv")


def test_every_option_reaches_the_spec(graph: Graph) -> None:
    options: dict[str, Any] = {
        "join": "all",
        "resources": ["disk"],
        "owner": "me",
        "output": "a.csv",
        "why": "because",
        "scope": "all of it",
        "subgraph": ["one", "two"],
    }
    graph.add(fetch, url="a", key="a", **options)
    assert graph.freeze().node("a").to_document() == {
        "key": "a",
        "task": "shop.fetch",
        "params": {"url": "a"},
        "policy": {"max_attempts": 3, "queue": "io"},
        **options,
    }


def test_another_function_under_the_name_of_a_task_is_refused_when_it_is_added(graph: Graph) -> None:
    def other(url: str) -> None: ...

    with pytest.raises(RegistryError, match=r"task 'shop\.fetch' is defined twice"):
        graph.add(Task(other, name="shop.fetch"), url="a")


def test_a_task_of_another_registry_is_known_to_the_graph_that_uses_it() -> None:
    registry = TaskRegistry()
    Graph("g", registry=registry).add(fetch, url="a")
    assert registry.names() == ("shop.fetch",)


def test_a_failure_policy_that_is_none_is_refused_when_the_graph_is_frozen_or_read(graph: Graph) -> None:
    graph.failure_policy = "hope"  # type: ignore[assignment] # what a user may write
    with pytest.raises(FormatError, match="failure_policy"):
        graph.freeze()
    payload = graph.to_dict()
    with pytest.raises(FormatError, match="failure_policy"):
        Graph.from_dict(payload)


# --- connect


def test_connect_amends_the_edges_of_all_parameters_and_later_words_win(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    t = graph.add(total, parts=[a], after=a, key="t")
    graph.connect(a, t, when="result", required=True)
    graph.connect(a, t, when="len(result)")
    graph.connect(a, t, enabled=False)
    assert [(edge.parameter, edge.when, edge.required, edge.enabled) for edge in graph.freeze().edges] == [
        ("parts", "len(result)", True, False),
        (None, "len(result)", True, False),
    ]


def test_connect_without_words_adds_an_edge_once(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    for _ in range(2):
        graph.connect(a, b)
    assert [str(edge) for edge in graph.freeze().edges] == ["a -> b"]


def test_a_refused_connect_adds_nothing(graph: Graph) -> None:
    a, b = graph.add(fetch, url="a", key="a"), graph.add(fetch, url="b", key="b")
    with pytest.raises(ExpressionError):
        graph.connect(a, b, when="")
    assert graph.freeze().edges == ()


def test_a_copy_of_a_graph_goes_its_own_way(graph: Graph) -> None:
    a = graph.add(fetch, url="a", key="a")
    twin = copy.deepcopy(graph)
    twin.add(fetch, url="b")
    twin["a"].params["url"] = "other"
    assert [node.key for node in graph.freeze().nodes] == ["a"]
    assert graph.freeze().node("a").params == {"url": "a"}
    with pytest.raises(RelationError, match="belongs to another graph"):
        twin.add(total, parts=[a])
