"""X1: every fault of a graph in one report."""

from __future__ import annotations

import itertools

import pytest

from graphrun.errors import ValidationFailedError
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec
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
    ],
)
def test_o1_o3_a_cycle_is_named_in_order(keys: list[str], edges: list[tuple[str, str]], cycle: str):
    (issue,) = validate(_graph(keys, edges)).errors
    assert (issue.code, issue.message) == ("cycle", cycle)


def test_z13_a_disabled_edge_makes_no_cycle():
    assert validate(_graph(["a"], [("a", "a")], enabled=False)).ok


def test_o2_a_key_used_twice_is_an_error_and_an_edge_given_twice_a_warning():
    report = validate(_graph(["t1", "t1", "x"], [("t1", "x"), ("t1", "x")]))
    assert [(issue.code, issue.node) for issue in report.errors] == [("duplicate_node", "t1")]
    assert [issue.code for issue in report.warnings] == ["duplicate_edge"]


def test_o4_an_edge_from_nowhere_names_the_missing_node_and_the_nearest_one():
    (issue,) = validate(_graph(["fetch", "b"], [("fetsh", "b")])).errors
    assert issue.code == "unknown_edge_end"
    assert "'fetsh'" in issue.message
    assert issue.hint == "did you mean 'fetch'?"


@pytest.mark.parametrize("when", ["result >", "outcome > 1", "__import__('os')", "result.__class__"])
def test_a_condition_that_cannot_be_read_is_an_error(when: str):
    assert _codes(_graph(["a", "b"], [("a", "b")], when=when)) == ["invalid_condition"]


@pytest.mark.parametrize("key", ["", "x" * 1001, "a\x00b", "a\ud800b"])
def test_o28_a_key_that_no_database_stores_is_an_error(key: str):
    assert _codes(_graph([key], [])) == ["invalid_key"]


def test_all_faults_are_reported_together_and_refuse_the_graph():
    spec = _graph(["a", "a", "b"], [("a", "b"), ("b", "a"), ("ghost", "b")])
    report = validate(spec, lambda node: [Issue("error", "unknown_task", "no such task", node=node.key)])
    codes = [issue.code for issue in report.errors]
    assert sorted(set(codes)) == ["cycle", "duplicate_node", "unknown_edge_end", "unknown_task"]
    with pytest.raises(ValidationFailedError) as refused:
        report.raise_if_refused("g")
    assert refused.value.issues == report.errors
    assert "ghost" in str(refused.value)


def test_z15_a_chain_of_a_hundred_thousand_is_validated():
    keys = [str(number) for number in range(100_000)]
    assert validate(_graph(keys, list(itertools.pairwise(keys)))).ok
