"""X1: every fault of a graph in one report; what is wrong is named, and a cycle is shown in order."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrun.errors import ValidationFailedError
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, Policy
from graphrun.model.validation import Issue, validate


def _graph(keys: list[str], edges: list[tuple[str, str]], **edge: object) -> GraphSpec:
    return GraphSpec(
        name="g",
        nodes=tuple(NodeSpec(key=key, task="t") for key in keys),
        edges=tuple(EdgeSpec(head=head, tail=tail, **edge) for head, tail in edges),
    )


def _codes(spec: GraphSpec) -> list[str]:
    return [issue.code for issue in validate(spec).issues]


def test_a_sound_graph_has_no_issue():
    assert validate(_graph(["a", "b"], [("a", "b")])).issues == ()


def test_o5_an_empty_graph_is_a_warning_and_may_run():
    report = validate(_graph([], []))
    assert [issue.code for issue in report.warnings] == ["empty_graph"]
    assert report.ok
    report.raise_if_refused("g")


@pytest.mark.parametrize(
    ("keys", "edges", "cycle"),
    [
        (["foo"], [("foo", "foo")], "foo -> foo"),
        (["a", "b"], [("a", "b"), ("b", "b")], "b -> b"),
        (
            ["ok1", "ok2", "a", "b", "c"],
            [("ok1", "ok2"), ("ok2", "a"), ("a", "b"), ("b", "c"), ("c", "a")],
            "a -> b -> c -> a",
        ),
        (["a", "b"], [("a", "b"), ("b", "a")], "a -> b -> a"),
    ],
)
def test_o1_o3_a_cycle_is_named_in_order(keys: list[str], edges: list[tuple[str, str]], cycle: str):
    (issue,) = validate(_graph(keys, edges)).errors
    assert (issue.code, issue.message) == ("cycle", cycle)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_x1_a_cycle_is_found_exactly_when_there_is_one_and_each_step_of_it_is_an_edge(
    count: int, pairs: list[tuple[int, int]]
):
    edges = [(str(head), str(tail)) for head, tail in pairs if head < count and tail < count]
    left = {str(number) for number in range(count)}
    while free := {key for key in left if not any(tail == key and head in left for head, tail in edges)}:
        left -= free
    cycles = [issue.message.split(" -> ") for issue in validate(_graph([str(n) for n in range(count)], edges)).errors]
    assert bool(cycles) == bool(left)
    for named in cycles:
        assert named[0] == named[-1]
        assert len(set(named)) == len(named) - 1
        assert set(itertools.pairwise(named)) <= set(edges)


def test_z13_a_disabled_edge_makes_no_cycle():
    assert validate(_graph(["a"], [("a", "a")], enabled=False)).ok


def test_o2_a_key_used_twice_is_an_error_and_an_edge_given_twice_a_warning():
    report = validate(_graph(["t1", "t1", "x"], [("t1", "x"), ("t1", "x")]))
    assert [(issue.code, issue.node) for issue in report.errors] == [("duplicate_node", "t1")]
    assert [(issue.code, issue.edge) for issue in report.warnings] == [("duplicate_edge", "t1 -> x")]


def test_x2_parallel_edges_with_other_conditions_or_parameters_are_no_duplicates():
    edges = [
        EdgeSpec(head="a", tail="b", when=when, parameter=parameter)
        for when, parameter in ((None, None), ("result", None), (None, "x"))
    ]
    spec = GraphSpec(name="g", nodes=_graph(["a", "b"], []).nodes, edges=tuple(edges))
    assert validate(spec).issues == ()


@pytest.mark.parametrize(
    ("edge", "missing"), [(("ghost", "b"), "ghost"), (("b", "none"), "none"), (("none", "none"), "none")]
)
def test_o4_an_edge_to_nowhere_is_never_a_dependency_that_is_met(edge: tuple[str, str], missing: str):
    (issue,) = validate(_graph(["b"], [edge])).errors
    assert issue.code == "unknown_edge_end"
    assert repr(missing) in issue.message


def test_o4_the_nearest_key_is_offered():
    (issue,) = validate(_graph(["fetch", "b"], [("fetsh", "b")])).errors
    assert issue.hint == "did you mean 'fetch'?"


@pytest.mark.parametrize("when", ["result >", "outcome > 1", "__import__('os')", "result.__class__", "", "a\x00b"])
def test_a_condition_that_cannot_be_read_is_an_error(when: str):
    (issue,) = validate(_graph(["a", "b"], [("a", "b")], when=when)).errors
    assert (issue.code, issue.edge, issue.path) == ("invalid_condition", "a -> b", "when")


def test_a_condition_sees_result_status_params_and_run():
    when = "result > 0 and status == 'succeeded' and params.x and run.run_id"
    assert validate(_graph(["a", "b"], [("a", "b")], when=when)).issues == ()


@pytest.mark.parametrize("key", ["", "x" * 1001, "a\x00b", "a\ud800b"])
def test_o28_a_key_that_no_database_stores_is_an_error(key: str):
    assert _codes(_graph([key], [])) == ["invalid_key"]


@pytest.mark.parametrize(
    "key", ["a/b", "x#33", "lire données", "名前", '("sum", 0)', "rule\nds: 552", "x" * 1000, " a"]
)
def test_o28_any_other_text_is_a_key(key: str):
    assert validate(_graph([key], [])).issues == ()


def test_o28_a_and_a_with_a_blank_are_different_keys():
    assert validate(_graph(["a", "A", " a", "a "], [])).ok


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_name_that_a_document_refuses_is_an_error(name: str):
    assert _codes(GraphSpec(name=name, nodes=(NodeSpec(key="a", task="t"),))) == ["invalid_name"]


def test_texts_that_no_database_stores_are_named_by_place():
    nodes = (NodeSpec(key="a", task="t\x00", verify="v\ud800", policy=Policy(queue="q\x00")),)
    edges = (EdgeSpec(head="a", tail="a", parameter="p\x00", enabled=False),)
    report = validate(GraphSpec(name="g", nodes=nodes, edges=edges))
    assert [(issue.code, issue.path) for issue in report.errors] == [
        ("invalid_text", path) for path in ("task", "verify", "policy.queue", "parameter")
    ]


def test_all_faults_are_reported_together_and_refuse_the_graph():
    spec = _graph(["a", "a", "b"], [("a", "b"), ("b", "a"), ("ghost", "b")])
    report = validate(spec, lambda node: [Issue("error", "unknown_task", "no such task", node=node.key)])
    codes = [issue.code for issue in report.errors]
    assert sorted(set(codes)) == ["cycle", "duplicate_node", "unknown_edge_end", "unknown_task"]
    assert not report.ok
    with pytest.raises(ValidationFailedError) as refused:
        report.raise_if_refused("g")
    assert refused.value.issues == report.errors
    assert all(said in str(refused.value) for said in ("'g' is refused", "ghost", "a -> b -> a", "no such task"))


def test_an_issue_reads_as_one_line_with_place_and_remedy():
    issue = Issue("error", "bad_params", "is no int", node="a", path="params.x", hint="give one")
    assert str(issue) == "bad_params: node 'a': params.x: is no int (give one)"
    assert str(Issue("error", "cycle", "a -> a")) == "cycle: a -> a"
    assert str(Issue("error", "unknown_edge_end", "gone", edge="a -> b")) == "unknown_edge_end: edge a -> b: gone"


def test_z15_a_hundred_thousand_nodes_and_three_hundred_thousand_edges_are_validated():
    keys = [str(number) for number in range(100_000)]
    graph = _graph(keys, [(keys[head], keys[head + step]) for head in range(99_997) for step in (1, 2, 3)])
    assert len(graph.edges) == 299_991
    assert validate(graph).ok


def test_z15_a_cycle_through_ten_thousand_nodes_is_named():
    keys = [str(number) for number in range(10_000)]
    (issue,) = validate(_graph(keys, [*itertools.pairwise(keys), (keys[-1], keys[0])])).errors
    assert issue.message.count(" -> ") == 10_000
