"""X1, X2, X4, X5: a graph checked against the tasks that are known, and made into the rows that are submitted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from graphrun.engine.compiling import check, compile_graph, new_edges
from graphrun.errors import ValidationFailedError
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec
from graphrun.registry import Condition, TaskRegistry, task

REGISTRY = TaskRegistry()
REGISTRY.external("elsewhere")
REGISTRY.register_condition(Condition("is-there", lambda: True))


@task(registry=REGISTRY, name="make")
def make(x: int = 0) -> int:
    return x


@task(registry=REGISTRY, name="use")
def use(needed: int, optional: int | None, default: int = 7, **rest: int) -> None: ...


@task(registry=REGISTRY, name="gather")
def gather(items: list[int], table: dict[str, int] | None = None) -> None: ...


def _graph(*nodes: dict[str, Any], edges: list[Any] | None = None, **settings: str) -> GraphSpec:
    return GraphSpec.from_document({"nodes": list(nodes), "edges": edges or [], "settings": settings})


def _faults(spec: GraphSpec) -> list[tuple[str, str | None, str | None]]:
    return [(issue.code, issue.node, issue.path) for issue in check(spec, REGISTRY).errors]


MAKE = {"key": "a", "task": "make"}
USE = {"key": "b", "task": "use", "params": {"needed": {"$node": "a"}, "optional": {"$node": "a"}}}


def test_x1_all_faults_of_shape_tasks_parameters_and_conditions_come_at_once() -> None:
    spec = _graph(
        {"key": "a", "task": "mkae"},
        {"key": "b", "task": "use", "params": {"needed": "many", "odd": 5, "extra": "text", "optional": None}},
        {"key": "c", "task": "make", "verify": "nobody", "done_when": "never"},
        {"key": "d", "task": "make", "verify": "$ 'open", "done_when": "output"},
        edges=[{"head": "a", "tail": "a"}, {"head": "x", "tail": "b", "when": "result >"}],
    )
    with pytest.raises(ValidationFailedError) as refused:
        compile_graph(spec, REGISTRY)
    assert [(issue.code, issue.node, issue.path) for issue in refused.value.issues] == [
        ("unknown_task", "a", None),
        ("bad_params", "b", "params.needed"),
        ("bad_params", "b", "params.extra"),
        ("unknown_task", "c", "verify"),
        ("invalid_condition", "c", None),
        ("unknown_task", "d", "verify"),
        ("invalid_condition", "d", None),
        ("unknown_edge_end", None, None),
        ("invalid_condition", None, "when"),
        ("cycle", None, None),
    ]
    assert "did you mean" in str(refused.value)


@pytest.mark.parametrize(
    ("params", "paths"),
    [
        ({"needed": 1}, ["params.optional"]),
        ({"needed": {"$node": "a"}, "optional": {"$node": "a", "path": "x"}}, []),
        ({"needed": {"$float": "nan"}, "optional": None}, ["params.needed"]),
        ({"needed": {"$what": 1}, "optional": None}, ["params"]),
        ({"needed": [1], "optional": None}, ["params.needed"]),
    ],
    ids=str,
)
def test_x1_literal_parameters_are_checked_and_references_are_left_to_the_run(
    params: dict[str, Any], paths: list[str]
) -> None:
    assert _faults(_graph(MAKE, {"key": "b", "task": "use", "params": params})) == [
        ("bad_params", "b", path) for path in paths
    ]


def test_a_literal_beside_a_reference_is_checked() -> None:
    node = {"key": "b", "task": "gather", "params": {"items": [{"$node": "a"}, "text"]}}
    assert _faults(_graph(MAKE, node)) == [("bad_params", "b", "params.items")]


def test_x1_an_external_task_is_checked_where_it_runs() -> None:
    assert _faults(_graph({"key": "a", "task": "elsewhere", "params": {"any": 1}})) == []


@pytest.mark.parametrize("done_when", ["is-there", "output"])
def test_x10_a_check_is_an_output_or_a_registered_condition(done_when: str) -> None:
    assert _faults(_graph({"key": "a", "task": "make", "done_when": done_when, "output": "a.csv"})) == []


@pytest.mark.parametrize("verify", ["make", "elsewhere", "$ test -s a.csv"])
def test_x16_a_verification_is_a_task_or_a_command(verify: str) -> None:
    assert _faults(_graph({"key": "a", "task": "make", "verify": verify})) == []


def test_x2_rows_are_in_declared_order_with_their_waves() -> None:
    spec = _graph(USE, MAKE, {"key": "c", "task": "make", "resources": ["disk"]}, MAKE | {"key": "d"})
    compiled = compile_graph(spec, REGISTRY)
    assert [(node.node_id, node.key, node.wave) for node in compiled.nodes] == [
        (0, "b", 2),
        (1, "a", 1),
        (2, "c", 1),
        (3, "d", 1),
    ]
    assert [(edge.edge_id, edge.head, edge.tail, edge.parameter) for edge in compiled.edges] == [
        (0, 1, 0, "needed"),
        (1, 1, 0, "optional"),
    ]
    assert (compiled.waves, compiled.depth) == ((2, 1, 1, 1), 2)


def test_x2_duplicate_edges_count_once_and_disabled_ones_not_at_all() -> None:
    edge = {"head": "a", "tail": "b"}
    nodes = [MAKE, MAKE | {"key": "b"}]
    compiled = compile_graph(_graph(*nodes, edges=[edge, edge, edge | {"when": "result"}]), REGISTRY)
    assert [row.when for row in compiled.edges] == [None, "result"]
    assert [issue.code for issue in compiled.report.warnings] == ["duplicate_edge"]
    disabled = compile_graph(_graph(*nodes, edges=[edge | {"enabled": False}]), REGISTRY)
    assert (disabled.edges, disabled.waves) == ((), (1, 1))


def test_x2_of_two_duplicates_the_one_that_is_not_disabled_counts() -> None:
    edge = {"head": "a", "tail": "b"}
    spec = _graph(MAKE, MAKE | {"key": "b"}, edges=[edge | {"enabled": False}, edge])
    assert compile_graph(spec, REGISTRY).waves == (1, 2)


def test_o5_the_empty_graph_has_no_rows() -> None:
    compiled = compile_graph(_graph(), REGISTRY)
    assert (compiled.nodes, compiled.edges, compiled.depth) == ((), (), 0)


def _needs(task_name: str, params: dict[str, Any], policy: str = "proceed", **edge: Any) -> tuple[bool, bool]:
    edges = [{"head": "a", "tail": "b", **edge}]
    spec = _graph(MAKE, {"key": "b", "task": task_name, "params": params}, edges=edges, failure_policy=policy)
    (row,) = [row for row in compile_graph(spec, REGISTRY).edges if row.head == 0]
    return row.required, row.droppable


HEAD = {"$node": "a"}


@pytest.mark.parametrize(
    ("task_name", "params", "needs"),
    [
        ("use", {"needed": HEAD, "optional": 1}, (True, False)),
        ("use", {"needed": 1, "optional": HEAD}, (False, True)),
        ("use", {"needed": 1, "optional": 1, "default": HEAD}, (False, True)),
        ("use", {"needed": 1, "optional": 1, "free": HEAD}, (True, True)),
        ("gather", {"items": [HEAD, 1]}, (True, True)),
        ("gather", {"items": [], "table": {"x": HEAD}}, (False, True)),
        ("elsewhere", {"x": HEAD}, (True, False)),
        ("elsewhere", {"x": [HEAD]}, (True, True)),
        ("make", {}, (True, True)),
    ],
    ids=str,
)
def test_x5_under_proceed_an_edge_is_required_where_its_parameter_cannot_do_without(
    task_name: str, params: dict[str, Any], needs: tuple[bool, bool]
) -> None:
    assert _needs(task_name, params) == needs


@pytest.mark.parametrize("policy", ["skip_dependents", "fail_fast"])
def test_x5_under_the_other_policies_every_edge_is_required(policy: str) -> None:
    assert _needs("use", {"needed": 1, "optional": HEAD}, policy) == (True, True)


@pytest.mark.parametrize("policy", ["proceed", "skip_dependents", "fail_fast"])
@pytest.mark.parametrize("required", [True, False])
def test_x5_an_edge_that_says_itself_overrides_every_policy(policy: str, required: bool) -> None:
    for task_name, params in (("use", {"needed": 1, "optional": HEAD}), ("make", {})):
        assert _needs(task_name, params, policy, required=required)[0] is required


def test_a_parameter_that_is_a_whole_output_and_stands_in_a_list_too_cannot_do_without() -> None:
    params = {"items": HEAD, "table": {"x": HEAD}}
    spec = _graph(MAKE, {"key": "b", "task": "gather", "params": params})
    assert [(edge.parameter, edge.droppable) for edge in compile_graph(spec, REGISTRY).edges] == [
        ("items", False),
        ("table", True),
    ]


def test_a_parameter_that_only_a_disabled_edge_would_give_is_a_fault_where_it_cannot_do_without() -> None:
    assert _faults(_graph(MAKE, USE, edges=[{"head": "a", "tail": "b", "enabled": False}])) == [
        ("bad_params", "b", "params.needed")
    ]
    spec = _graph(MAKE, {"key": "b", "task": "gather", "params": {"items": [HEAD]}})
    disabled = [{"head": "a", "tail": "b", "enabled": False}]
    assert _faults(_graph(*(node.to_document() for node in spec.nodes), edges=disabled)) == []
    twin = [*disabled, {"head": "a", "tail": "b", "when": "result"}]
    assert _faults(_graph(MAKE, USE, edges=twin)) == []


def test_x7_edges_that_an_evolution_adds_are_compiled_as_those_of_a_graph() -> None:
    tail = NodeSpec(key="b", task="use", params={"needed": HEAD, "optional": HEAD})
    edge = EdgeSpec(head="a", tail="b", kind="data", parameter="optional", when="result")
    order = EdgeSpec(head="a", tail="somebody")
    disabled = EdgeSpec(head="b", tail="a", enabled=False)
    compiled = new_edges([tail], [edge, edge, order, disabled], {}, REGISTRY, "proceed")
    assert [(new.head, new.tail, new.when, new.required, new.droppable) for new in compiled] == [
        ("a", "b", "result", False, True),
        ("a", "somebody", None, True, True),
    ]


def test_o27_a_chain_of_ten_thousand_is_compiled() -> None:
    keys = [str(number) for number in range(10_000)]
    spec = GraphSpec(
        name="g",
        nodes=tuple(NodeSpec(key=key, task="elsewhere") for key in keys),
        edges=tuple(EdgeSpec(head=a, tail=b) for a, b in itertools.pairwise(keys)),
    )
    assert compile_graph(spec, REGISTRY).depth == 10_000
