"""X7: evolutions, accepted and refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphrun.execution.event import GateReached, NodeEvolved, NodeFailed, NodeQueued
from graphrun.execution.evolution import Evolution, Refused, evolve
from graphrun.execution.planner import advance
from graphrun.execution.run import EvolutionRequest, NewEdge, NodeRun, Structure, Truth
from graphrun.execution.state import Awaiting, Cause, NodeState, RunState
from graphrun.model.spec import NodeSpec

from .cases import Case, EdgeCase, NodeCase, Step, Wish
from .driver import MIDNIGHT, Driver, finished, opened

A, B, C, D = (NodeCase(key=key) for key in "abcd")
ONCE = NodeCase(key="a", steps=(Step(kind="evolve"), Step()))
CHAIN = (EdgeCase(head="a", tail="b"), EdgeCase(head="b", tail="c"))


def edge(head: str, tail: str, **said) -> EdgeCase:
    return EdgeCase(head=head, tail=tail, **said)


def evolving(*nodes: NodeCase, edges: tuple[EdgeCase, ...], wish: Wish) -> Driver:
    """Run a graph whose node ``a`` asks for ``wish`` each time that its script says so."""
    return finished(Case(nodes=nodes, edges=edges), ask=lambda _driver, _node: wish)


def shape(driver: Driver) -> tuple[set[tuple[str, str]], dict[str, int]]:
    keys = {node.node_id: node.key for node in driver.nodes.values()}
    ends = {(keys[edge.head], keys[edge.tail]) for edge in driver.edges.values()}
    return ends, {node.key: node.wave for node in driver.nodes.values()}


# --- accepted


def test_x7_an_evolved_node_is_rewritten_and_runs_again():
    driver = evolving(ONCE, B, edges=CHAIN[:1], wish=Wish(x=7))
    node = driver.node("a")
    assert (node.state, node.attempt, node.tries, node.evolution) == (NodeState.SUCCEEDED, 2, 1, 1)
    assert driver.specs[0].params == {"x": 7}
    assert [event.reason for event in driver.events_of(NodeQueued) if event.node_id == 0] == ["first", "evolved"]


def test_x7_who_asked_and_why_are_kept():
    (event,) = evolving(ONCE, edges=(), wish=Wish()).events_of(NodeEvolved)
    assert (event.number, event.asked_by, event.reason) == (1, "owner", "it is needed")


def test_x7_the_rewritten_policy_and_verify_hold_from_then_on():
    driver = opened(A)
    execution = driver.begin("a")
    request = driver.request(driver.node("a"), Wish())
    policy = replace(request.rewritten.policy, max_attempts=1)
    driver.requests[0] = replace(request, rewritten=replace(request.rewritten, policy=policy, verify="v"))
    driver.end(execution, "evolved")
    driver.next_gate()
    assert (driver.node("a").policy.max_attempts, driver.node("a").verified) == (1, True)
    assert driver.play("a").awaiting is Awaiting.VERIFICATION


def test_x7_added_nodes_enter_later_waves_and_run():
    driver = evolving(ONCE, B, edges=CHAIN[:1], wish=Wish(add=(C, D), edges=(edge("a", "c"), edge("c", "d"))))
    assert shape(driver) == (
        {("a", "b"), ("a", "c"), ("c", "d")},
        {"a": 1, "b": 2, "c": 2, "d": 3},
    )
    assert driver.run.waves == 3
    assert all(node.state is NodeState.SUCCEEDED for node in driver.nodes.values())


def test_x7_an_added_node_without_edges_enters_the_next_wave():
    assert evolving(ONCE, edges=(), wish=Wish(add=(C,))).node("c").wave == 2


def test_x7_an_added_edge_moves_its_unstarted_tail_and_what_follows_it():
    wish = Wish(add=(D,), edges=(edge("a", "d"), edge("d", "b")))
    driver = evolving(ONCE, B, C, edges=CHAIN, wish=wish)
    assert shape(driver)[1] == {"a": 1, "d": 2, "b": 3, "c": 4}
    (event,) = driver.events_of(NodeEvolved)
    assert event.moved == ((1, 3), (2, 4))


def test_x7_a_removed_edge_lets_its_tail_come_earlier_but_never_into_the_open_wave():
    driver = evolving(ONCE, B, C, edges=CHAIN, wish=Wish(remove=(("b", "c"),)))
    assert shape(driver) == ({("a", "b")}, {"a": 1, "b": 2, "c": 2})
    assert driver.run.waves == 2


def test_x7_a_removed_edge_may_be_put_back_with_a_condition():
    wish = Wish(remove=(("b", "c"),), edges=(edge("b", "c", when="result < 0"),))
    driver = evolving(ONCE, B, C, edges=CHAIN, wish=wish)
    assert (driver.node("c").state, driver.node("c").cause) == (NodeState.SKIPPED, Cause.CONDITION)


def test_x7_new_edges_may_point_away_from_finished_nodes():
    driver = evolving(
        replace(ONCE, key="a"),
        B,
        C,
        edges=(edge("b", "c"),),
        wish=Wish(add=(D,), edges=(edge("b", "d", when="result > 0"),)),
    )
    assert driver.node("d").state is NodeState.SUCCEEDED


def test_x7_nodes_of_one_resource_are_kept_apart_when_they_are_planned_again():
    one, two = (NodeCase(key=key, resources=("disk",)) for key in ("one", "two"))
    driver = evolving(ONCE, edges=(), wish=Wish(add=(one, two)))
    assert {driver.node("one").wave, driver.node("two").wave} == {2, 3}


def test_x7_an_edge_that_is_there_already_counts_once():
    driver = evolving(ONCE, B, edges=CHAIN[:1], wish=Wish(edges=(edge("a", "b"), edge("a", "b", when="result > 0"))))
    assert [(edge.edge_id, edge.when) for edge in driver.edges.values()] == [(0, None), (1, "result > 0")]


def test_x7_a_tail_goes_after_a_head_that_was_done_before_the_run_and_stands_in_a_later_wave():
    done = NodeCase(key="c", pre_done=True)
    driver = evolving(ONCE, B, done, edges=CHAIN, wish=Wish(add=(D,), edges=(edge("c", "d"),)))
    assert (driver.node("c").wave, driver.node("d").wave) == (3, 4)
    assert driver.node("d").state is NodeState.SUCCEEDED


def test_x7_two_nodes_of_a_wave_may_evolve_at_one_gate():
    other = NodeCase(key="b", steps=(Step(kind="evolve"), Step()))
    wishes = {"a": Wish(add=(C,), edges=(edge("a", "c"),)), "b": Wish(edges=(edge("b", "c"),), add=(D,))}
    driver = finished(Case(nodes=(ONCE, other)), ask=lambda _driver, node: wishes[node.key])
    assert shape(driver)[0] == {("a", "c"), ("b", "c")}
    assert {node.key: node.node_id for node in driver.nodes.values()} == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_x7_an_evolution_sees_what_one_before_it_at_the_same_gate_did():
    other = NodeCase(key="b", steps=(Step(kind="evolve"),))
    driver = finished(Case(nodes=(ONCE, other)), ask=lambda _driver, _node: Wish(add=(C,)))
    assert driver.node("a").state is NodeState.SUCCEEDED
    assert driver.node("b").error == "evolution refused: node 'c' is in the graph already"


def test_x7_the_evolved_subgraph_has_a_retry_of_its_own():
    fails = Step(kind="fail")
    node = NodeCase(key="a", steps=(fails, Step(kind="evolve"), fails, Step()))
    driver = evolving(node, edges=(), wish=Wish())
    assert (driver.node("a").state, driver.node("a").attempt, driver.node("a").tries) == (NodeState.SUCCEEDED, 4, 2)
    driver = evolving(replace(node, steps=(fails, Step(kind="evolve"), fails, fails)), edges=(), wish=Wish())
    assert (driver.node("a").state, driver.node("a").attempt) == (NodeState.FAILED, 4)


def test_x7_a_node_evolves_at_most_max_evolutions_times():
    node = NodeCase(key="a", steps=(Step(kind="evolve"),))
    driver = evolving(node, B, edges=CHAIN[:1], wish=Wish())
    assert (driver.node("a").state, driver.node("a").evolution, driver.node("a").attempt) == (NodeState.FAILED, 2, 3)
    assert driver.node("a").error == "evolution refused: more than 2 evolutions of node 'a'"
    assert driver.node("b").cause is Cause.UPSTREAM_FAILED


# --- refused

REFUSALS = [
    (Wish(refusal="parameter 'p': not a number"), "parameter 'p': not a number"),
    (Wish(edges=(edge("c", "b"),)), "the evolved graph has a cycle: b -> c -> b"),
    (Wish(edges=(edge("b", "b"),)), "the evolved graph has a cycle: b -> b"),
    (Wish(edges=(edge("b", "z"),)), "edge b -> z is refused: 'z' has started"),
    (Wish(edges=(edge("z", "a"),)), "edge z -> a is refused: 'a' has started"),
    (Wish(edges=(edge("a", "nobody"),)), "edge a -> nobody names 'nobody', which is not in the graph"),
    (Wish(edges=(edge("nobody", "b"),)), "edge nobody -> b names 'nobody', which is not in the graph"),
    (Wish(edges=(edge("a", "c", when="result >"),)), "edge a -> c: column 9: invalid syntax, in 'result >'"),
    (Wish(add=(B,)), "node 'b' is in the graph already"),
    (Wish(add=(D, D)), "node 'd' is in the graph already"),
    (Wish(add=(NodeCase(key=""),)), "a node key is a non-empty text"),
    (Wish(remove=(("c", "b"),)), "edge c -> b is not in the graph"),
    (Wish(remove=(("a", "nobody"),)), "edge a -> nobody is not in the graph"),
]


@pytest.mark.parametrize(("wish", "why"), REFUSALS, ids=[why for _wish, why in REFUSALS])
def test_x7_a_refused_evolution_fails_its_node_for_good_and_the_run_goes_on_with_the_old_graph(wish, why):
    node = NodeCase(key="a", steps=(Step(kind="evolve"),), max_attempts=3)
    edges = (edge("a", "b", required=False), CHAIN[1])
    driver = evolving(node, B, C, NodeCase(key="z"), edges=edges, wish=wish)
    assert (driver.node("a").state, driver.node("a").attempt, driver.node("a").evolution) == (NodeState.FAILED, 1, 0)
    assert driver.node("a").error == f"evolution refused: {why}"
    assert shape(driver) == ({("a", "b"), ("b", "c")}, {"a": 1, "b": 2, "c": 3, "z": 1})
    assert [driver.node(key).state.value for key in "bcz"] == ["succeeded"] * 3
    assert driver.run.state is RunState.FAILED


def test_x7_an_edge_into_a_started_node_cannot_be_removed():
    wish = Wish(remove=(("z", "a"),))
    driver = evolving(NodeCase(key="z"), ONCE, edges=(edge("z", "a"),), wish=wish)
    assert driver.node("a").error == "evolution refused: edge z -> a cannot be removed: 'a' has started"


def test_x7_one_refused_evolution_does_not_undo_another():
    other = NodeCase(key="b", steps=(Step(kind="evolve"),))
    wishes = {"a": Wish(add=(C,)), "b": Wish(refusal="no")}
    driver = finished(Case(nodes=(ONCE, other)), ask=lambda _driver, node: wishes[node.key])
    assert [driver.node(key).state.value for key in "abc"] == ["succeeded", "failed", "succeeded"]


def test_x7_an_evolution_that_was_not_recorded_is_refused():
    driver = opened(A, B)
    execution = driver.begin("a")
    driver.requests[0] = driver.request(driver.node("a"), Wish())
    driver.end(execution, "evolved")
    driver.play("b")
    view = replace(driver.gate_view(), requests={})
    decision = advance(view, GateReached(revision=0, wave=1, round=0, now=MIDNIGHT))
    (failed,) = [event for event in decision.events if isinstance(event, NodeFailed)]
    assert failed.error == "evolution refused: what the node asked for was not recorded"


def test_promise_6_the_graph_before_and_after_can_both_be_told():
    driver = opened(A, B, edges=CHAIN[:1])
    structure = Structure(nodes=dict(driver.nodes), edges=dict(driver.edges))
    wish = Wish(add=(C,), edges=(edge("a", "c"),), remove=(("a", "b"),))
    evolution = evolve(driver.node("a"), driver.request(driver.node("a"), wish), structure, wave=1)
    assert isinstance(evolution, Evolution)
    assert set(structure.edges) == {0}
    assert [(one.head, one.tail) for one in evolution.after.edges.values()] == [(0, 2)]
    assert [number for number, _new in evolution.added] == [2]
    assert evolution.after.nodes[0].evolution == 1


def test_x7_a_node_that_may_not_evolve_at_all_is_refused():
    driver = opened(replace(A, max_evolutions=0))
    structure = Structure(nodes=dict(driver.nodes), edges={})
    refused = evolve(driver.node("a"), driver.request(driver.node("a"), Wish()), structure, wave=1)
    assert refused == Refused("more than 0 evolutions of node 'a'")


def test_x7_a_condition_on_a_node_that_ended_meanwhile_and_was_not_evaluated_refuses_the_evolution():
    ended = NodeRun(node_id=0, key="ended", wave=1, state=NodeState.SUCCEEDED)
    asking = NodeRun(node_id=1, key="asking", wave=1, state=NodeState.WAITING)
    later = NodeRun(node_id=2, key="later", wave=2)
    structure = Structure(nodes={node.node_id: node for node in (ended, asking, later)}, edges={})
    added = NewEdge(head="ended", tail="later", when="result > 0")
    request = EvolutionRequest(rewritten=NodeSpec(key="asking", task="t"), edges=(added,))
    refused = evolve(asking, request, structure, wave=1)
    assert isinstance(refused, Refused)
    assert "ended meanwhile" in refused.reason
    assert not isinstance(
        evolve(asking, replace(request, edges=(replace(added, truth=Truth.TRUE),)), structure, wave=1), Refused
    )
