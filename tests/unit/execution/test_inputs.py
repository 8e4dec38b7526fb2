"""X3 and X4: how edges resolve, and which nodes start. Also X5's required edges, and O11 and O12."""

from __future__ import annotations

import pytest

from graphrun.execution.event import NodeQueued
from graphrun.execution.inputs import decide_node, evaluate_condition, reads_status
from graphrun.execution.run import EdgeRun, NodeRun, Resolution, Run, Truth
from graphrun.execution.state import Cause, NodeState, RunState

from .cases import Case, EdgeCase, NodeCase, Step
from .driver import Driver, finished

FAILS = (Step(kind="fail"),)


def pair(head: NodeCase, **edge) -> Driver:
    """Run ``a -> b``."""
    return finished(Case(nodes=(head, NodeCase(key="b")), edges=(EdgeCase(head="a", tail="b", **edge),)))


def resolution(driver: Driver) -> tuple[Resolution | None, Cause | None, tuple[str, ...]]:
    edge = driver.edge("a", "b")
    return edge.resolution, edge.cause, edge.roots


# --- X3


def test_x3_an_edge_of_a_succeeded_head_is_delivered():
    driver = pair(NodeCase(key="a"))
    assert resolution(driver) == (Resolution.DELIVERED, None, ())
    assert driver.node("b").state is NodeState.SUCCEEDED


def test_x3_a_true_condition_delivers():
    assert resolution(pair(NodeCase(key="a", value=1), when="result > 0"))[0] is Resolution.DELIVERED


def test_x3_a_false_condition_suppresses_and_its_head_is_the_root():
    driver = pair(NodeCase(key="a", value=-1), when="result > 0")
    assert resolution(driver) == (Resolution.SUPPRESSED, Cause.CONDITION, ("a",))
    assert (driver.node("b").state, driver.node("b").cause) == (NodeState.SKIPPED, Cause.CONDITION)
    assert driver.run.state is RunState.SUCCEEDED


def test_x3_a_failed_head_blocks_a_required_edge():
    driver = pair(NodeCase(key="a", steps=FAILS))
    assert resolution(driver) == (Resolution.BLOCKED, Cause.UPSTREAM_FAILED, ("a",))
    assert (driver.node("b").cause, driver.node("b").roots) == (Cause.UPSTREAM_FAILED, ("a",))


def test_x3_a_failed_head_leaves_an_optional_edge_missing_and_the_node_proceeds():
    driver = pair(NodeCase(key="a", steps=FAILS), required=False)
    assert resolution(driver) == (Resolution.MISSING, Cause.UPSTREAM_FAILED, ("a",))
    assert driver.node("b").state is NodeState.SUCCEEDED
    assert driver.run.state is RunState.FAILED


def test_x3_a_condition_that_does_not_read_status_is_not_asked_about_a_failure():
    driver = pair(NodeCase(key="a", steps=FAILS, x=-1), when="params.x > 0", required=False)
    assert resolution(driver)[0] is Resolution.MISSING


def test_x3_a_condition_that_raises_blocks_even_an_optional_edge_and_is_named():
    driver = pair(NodeCase(key="a"), when="1 / 0 > 0", required=False)
    assert resolution(driver) == (Resolution.BLOCKED, Cause.CONDITION_ERROR, ("a -> b",))
    assert (driver.node("b").state, driver.node("b").cause) == (NodeState.SKIPPED, Cause.CONDITION_ERROR)
    assert driver.node("b").roots == ("a -> b",)


def test_x3_a_condition_on_null_that_raises_is_an_error_too():
    assert resolution(pair(NodeCase(key="a", value=None), when="result > 0"))[1] is Cause.CONDITION_ERROR


@pytest.mark.parametrize(
    ("when", "head", "taken"),
    [
        ('status == "failed"', NodeCase(key="a", steps=FAILS), True),
        ('status == "failed"', NodeCase(key="a"), False),
        ('status in ("succeeded", "skipped")', NodeCase(key="a"), True),
        ('status in ("succeeded", "skipped")', NodeCase(key="a", steps=FAILS), False),
    ],
)
def test_x3_a_condition_on_status_is_asked_in_every_final_state(when, head, taken):
    driver = pair(head, when=when)
    assert resolution(driver)[0] is (Resolution.DELIVERED if taken else Resolution.SUPPRESSED)
    assert driver.node("b").state is (NodeState.SUCCEEDED if taken else NodeState.SKIPPED)


def test_x3_a_condition_on_status_sees_params_of_a_failed_head():
    when = 'status == "failed" and params.x > 0'
    assert resolution(pair(NodeCase(key="a", steps=FAILS, x=1), when=when))[0] is Resolution.DELIVERED
    assert resolution(pair(NodeCase(key="a", steps=FAILS, x=-1), when=when))[0] is Resolution.SUPPRESSED


def test_x3_a_condition_on_status_that_raises_about_a_failed_head_blocks():
    assert resolution(pair(NodeCase(key="a", steps=FAILS), when="status > 1"))[1] is Cause.CONDITION_ERROR


def test_x3_the_truth_of_a_succeeded_heads_condition_is_the_stored_one():
    edge = EdgeRun(edge_id=0, head=0, tail=1, when="result > 0", truth=Truth.FALSE)
    head = NodeRun(node_id=0, key="a", wave=1, state=NodeState.SUCCEEDED)
    verdict = decide_node((edge,), {0: head}, join="any", run=Run(run_id="r"), params={})
    assert [item.resolution for item in verdict.edges] == [Resolution.SUPPRESSED]


def test_x3_a_suppressed_edge_carries_the_cause_and_roots_of_its_skipped_head():
    case = Case(
        nodes=(NodeCase(key="z", steps=FAILS), NodeCase(key="a"), NodeCase(key="b")),
        edges=(EdgeCase(head="z", tail="a"), EdgeCase(head="a", tail="b", when='status == "succeeded"')),
    )
    assert resolution(finished(case)) == (Resolution.SUPPRESSED, Cause.UPSTREAM_FAILED, ("z",))


def test_x3_conditions_see_result_status_params_and_run():
    when = 'result == 1 and status == "succeeded" and params.p == 2 and run.run_id == "r"'
    assert evaluate_condition(when, result=1, status="succeeded", params={"p": 2}, run={"run_id": "r"}) is Truth.TRUE
    assert evaluate_condition("nothing", result=1, status="succeeded", params={}, run={}) is Truth.ERROR
    assert reads_status('status == "failed" or result > 1')
    assert not reads_status('result.status == "failed"')


def test_x3_a_pre_done_heads_condition_is_asked_of_the_output_that_was_given():
    assert resolution(pair(NodeCase(key="a", pre_done=True, value=-1), when="result > 0"))[0] is Resolution.SUPPRESSED


# --- X4


def join(*edges: EdgeCase, heads: tuple[NodeCase, ...], rule: str = "any") -> NodeRun:
    """Run some heads into ``join``."""
    return finished(Case(nodes=(*heads, NodeCase(key="join", join=rule)), edges=edges)).node("join")


def into(head: str, **edge) -> EdgeCase:
    return EdgeCase(head=head, tail="join", **edge)


GOOD, BAD, NO = NodeCase(key="good"), NodeCase(key="bad", steps=FAILS), NodeCase(key="no", value=-1)


def test_x4_a_node_without_inbound_edges_runs():
    assert finished(Case(nodes=(GOOD,))).node("good").state is NodeState.SUCCEEDED


def test_x4_any_blocked_edge_skips_under_either_join():
    for rule in ("any", "all"):
        node = join(into("good"), into("bad"), heads=(GOOD, BAD), rule=rule)
        assert (node.state, node.cause, node.roots) == (NodeState.SKIPPED, Cause.UPSTREAM_FAILED, ("bad",))


def test_x4_join_any_runs_with_one_delivered_edge():
    assert join(into("good"), into("no", when="result > 0"), heads=(GOOD, NO)).state is NodeState.SUCCEEDED


def test_x4_join_any_runs_with_nothing_but_a_missing_edge():
    node = join(into("bad", required=False), into("no", when="result > 0"), heads=(BAD, NO))
    assert node.state is NodeState.SUCCEEDED


def test_x4_join_any_skips_when_every_edge_is_suppressed():
    node = join(into("no", when="result > 0"), into("good", when="result < 0"), heads=(NO, GOOD))
    assert (node.cause, node.roots) == (Cause.CONDITION, ("no", "good"))


def test_x4_join_all_skips_when_one_edge_is_suppressed():
    node = join(into("good"), into("no", when="result > 0"), heads=(GOOD, NO), rule="all")
    assert (node.state, node.cause, node.roots) == (NodeState.SKIPPED, Cause.CONDITION, ("no",))


def test_x4_join_all_runs_with_missing_edges():
    assert join(into("good"), into("bad", required=False), heads=(GOOD, BAD), rule="all").state is NodeState.SUCCEEDED


def test_x4_a_skipped_node_takes_the_first_cause_that_is_not_a_condition():
    node = join(
        into("no", when="result > 0"),
        into("good", when="1 / 0 > 0"),
        into("bad"),
        heads=(NO, GOOD, BAD),
    )
    assert (node.cause, node.roots) == (Cause.CONDITION_ERROR, ("good -> join",))


def test_x4_roots_of_all_edges_of_the_cause_are_named_once_in_declared_order():
    worse = NodeCase(key="worse", steps=FAILS)
    node = join(into("worse"), into("bad"), into("worse", parameter="p"), heads=(BAD, worse))
    assert node.roots == ("worse", "bad")


def test_x4_a_parameter_that_cannot_do_without_skips_its_node_under_join_any():
    node = join(
        into("good"), into("no", parameter="p", when="result > 0", droppable=False), heads=(GOOD, NO), rule="any"
    )
    assert (node.state, node.cause, node.roots) == (NodeState.SKIPPED, Cause.CONDITION, ("no",))


def test_x4_a_missing_edge_into_a_parameter_that_cannot_do_without_skips_with_its_cause():
    node = join(into("good"), into("bad", parameter="p", required=False, droppable=False), heads=(GOOD, BAD))
    assert (node.cause, node.roots) == (Cause.UPSTREAM_FAILED, ("bad",))


def test_x4_the_join_is_asked_before_the_parameters():
    node = join(
        into("no", parameter="p", when="result > 0", droppable=False),
        into("good", when="result < 0"),
        heads=(NO, GOOD),
    )
    assert node.roots == ("no", "good"), "all edges are suppressed, not just the one that was needed"


def test_x4_a_parameter_that_one_of_two_conditional_edges_delivers_is_not_without_a_value():
    node = join(
        into("no", parameter="p", when="result > 0", droppable=False),
        into("no", parameter="p", when="result < 0", droppable=False),
        heads=(NO,),
    )
    assert node.state is NodeState.SUCCEEDED


def test_x4_skips_cascade_with_their_cause_and_roots():
    chain = tuple(NodeCase(key=key) for key in "bcd")
    edges = tuple(EdgeCase(head=head, tail=tail) for head, tail in ("ab", "bc", "cd"))
    driver = finished(Case(nodes=(NodeCase(key="a", steps=FAILS), *chain), edges=edges))
    assert [(driver.node(key).cause, driver.node(key).roots) for key in "bcd"] == [(Cause.UPSTREAM_FAILED, ("a",))] * 3
    driver = finished(Case(nodes=(NodeCase(key="a", value=-1), *chain), edges=(edges_when(edges[0]), *edges[1:])))
    assert [(driver.node(key).cause, driver.node(key).roots) for key in "bcd"] == [(Cause.CONDITION, ("a",))] * 3
    assert driver.run.state is RunState.SUCCEEDED


def edges_when(edge: EdgeCase) -> EdgeCase:
    return EdgeCase(head=edge.head, tail=edge.tail, when="result > 0")


def test_x4_a_node_behind_a_condition_error_is_blocked_with_that_cause():
    case = Case(
        nodes=tuple(NodeCase(key=key) for key in "abc"),
        edges=(EdgeCase(head="a", tail="b", when="1 / 0 > 0"), EdgeCase(head="b", tail="c")),
    )
    driver = finished(case)
    assert (driver.node("c").cause, driver.node("c").roots) == (Cause.CONDITION_ERROR, ("a -> b",))
    assert driver.edge("b", "c").resolution is Resolution.BLOCKED


# --- the cases


def test_o7_inbound_edges_are_recorded_in_declared_order_whatever_ended_first():
    keys = [f"p{number}" for number in range(10)]
    case = Case(
        nodes=(*(NodeCase(key=key) for key in keys), NodeCase(key="join")),
        edges=tuple(EdgeCase(head=key, tail="join") for key in reversed(keys)),
    )
    driver = finished(case)
    joined = driver.events_of(NodeQueued)[-1]
    heads = [driver.nodes[driver.edges[item.edge_id].head].key for item in joined.edges]
    assert heads == [*reversed(keys)]


def test_o11_a_failed_branch_does_not_stop_an_untouched_one():
    case = Case(
        nodes=(*(NodeCase(key=key) for key in "AB"), NodeCase(key="C", steps=FAILS), *(NodeCase(key=k) for k in "DE")),
        edges=tuple(EdgeCase(head=head, tail=tail) for head, tail in ("AB", "AC", "BD", "DE")),
    )
    driver = finished(case)
    assert {key: driver.node(key).state.value for key in "ABDE"} == dict.fromkeys("ABDE", "succeeded")
    assert (driver.node("C").state, driver.node("C").attempt) == (NodeState.FAILED, 2)
    assert driver.run.state is RunState.FAILED


def test_o11_the_join_of_a_diamond_with_a_failed_branch_is_skipped_as_upstream_failed():
    case = Case(
        nodes=(*(NodeCase(key=key) for key in "AB"), NodeCase(key="C", steps=FAILS), NodeCase(key="D")),
        edges=tuple(EdgeCase(head=head, tail=tail) for head, tail in ("AB", "AC", "BD", "CD")),
    )
    node = finished(case).node("D")
    assert (node.state, node.cause, node.roots, node.attempt) == (NodeState.SKIPPED, Cause.UPSTREAM_FAILED, ("C",), 0)


def branching(rule: str) -> Driver:
    """O12: ``pick`` chooses left; both branches meet again."""
    return finished(
        Case(
            nodes=(
                *(NodeCase(key=key) for key in ("pick", "left", "right")),
                NodeCase(key="join", join=rule),
                NodeCase(key="after"),
            ),
            edges=(
                EdgeCase(head="pick", tail="left", when="result > 0"),
                EdgeCase(head="pick", tail="right", when="result < 0"),
                EdgeCase(head="left", tail="join"),
                EdgeCase(head="right", tail="join"),
                EdgeCase(head="join", tail="after"),
            ),
        )
    )


def test_o12_join_any_runs_once_with_what_was_chosen():
    driver = branching("any")
    assert [driver.node(key).state.value for key in ("right", "join", "after")] == ["skipped", "succeeded", "succeeded"]
    assert driver.node("join").attempt == 1
    assert driver.edge("left", "join").resolution is Resolution.DELIVERED
    assert driver.edge("right", "join").resolution is Resolution.SUPPRESSED


def test_o12_join_all_is_skipped_visibly_because_of_the_skipped_branch():
    driver = branching("all")
    for key in ("join", "after"):
        assert (driver.node(key).state, driver.node(key).cause) == (NodeState.SKIPPED, Cause.CONDITION)
    edge = driver.edge("right", "join")
    assert (edge.resolution, edge.roots) == (Resolution.SUPPRESSED, ("pick",))
    assert driver.run.state is RunState.SUCCEEDED
