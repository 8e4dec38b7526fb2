from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrun.execution.event import NodeEvolved
from graphrun.execution.fold import fold
from graphrun.execution.run import EvolutionRequest, NewEdge, NewNode
from graphrun.execution.state import NodeState, RunState
from graphrun.model.spec import NodeSpec, Policy
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Claim

TENANT = "acme"


def _ask(driver: Any, run_id: str, node_id: int, attempt: int = 1, **changes: Any) -> EvolutionRequest:
    claim = driver.claim(run_id, node_id, attempt)
    assert isinstance(claim, Claim)
    rewritten = replace(claim.spec, scope="less", owner="bob", policy=Policy(queue="slow"))
    request = EvolutionRequest(**({"rewritten": rewritten, "asked_by": "ada", "reason": "too big"} | changes))
    driver.settle(run_id, node_id, attempt, status="evolved", evolution=request)
    return request


def test_an_evolution_rewrites_the_node_and_changes_the_unstarted_part(driver: Any, ledger: Ledger) -> None:
    spec = driver.graph({"key": "a", "scope": "more"}, "b", "c", edges=[("a", "b"), ("b", "c")])
    submission = driver.submission(spec)
    run_id = ledger.submit(submission).run_id
    created = driver.run(run_id)
    driver.gate(run_id)
    new = NewNode(spec=NodeSpec(key="x", task="work", params={"n": 1}))
    edges = (NewEdge(head="a", tail="x"), NewEdge(head="x", tail="c", required=False))
    _ask(driver, run_id, 0, nodes=(new,), edges=edges, removed=(("b", "c"),))
    driver.gate(run_id)

    (row,) = ledger.evolutions(run_id, tenant_id=TENANT)
    assert (row.key, row.number, row.asked_by, row.reason, row.refused) == ("a", 1, "ada", "too big", None)
    assert (row.original.scope, row.evolved.scope) == ("more", "less")
    assert (row.added, row.added_edges, row.removed_edges) == (("x",), (("a", "x"), ("x", "c")), (("b", "c"),))
    nodes = ledger.nodes(run_id, tenant_id=TENANT)
    assert [(node.key, node.planned_wave, node.wave) for node in nodes] == [
        ("a", 1, 1),
        ("b", 2, 2),
        ("c", 3, 3),
        ("x", None, 2),
    ]
    assert (nodes[0].owner, nodes[0].queue, nodes[0].node.evolution) == ("bob", "slow", 1)
    assert ledger.spec(run_id, tenant_id=TENANT) == spec
    assert ledger.node_specs(run_id, tenant_id=TENANT)[0].scope == "less"
    assert ledger.node_specs(run_id, tenant_id=TENANT)[3] == new.spec

    claim = driver.claim(run_id, 0, 2)
    assert isinstance(claim, Claim)
    assert claim.spec.scope == "less"
    driver.settle(run_id, 0, 2, output="1")
    driver.gate(run_id)
    assert driver.finish(run_id) is RunState.SUCCEEDED
    log = [row.event for row in ledger.events(run_id, tenant_id=TENANT)]
    rows = fold(created, submission.nodes, submission.edges, log)
    assert rows.run == driver.run(run_id)
    assert [rows.nodes[node_id] for node_id in sorted(rows.nodes)] == [
        node.node for node in ledger.nodes(run_id, tenant_id=TENANT)
    ]
    assert sorted(rows.edges.values(), key=lambda edge: edge.edge_id) == list(ledger.edges(run_id, tenant_id=TENANT))


def test_the_number_of_a_removed_edge_may_be_taken_by_an_added_one(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b", "c", edges=[("a", "c"), ("b", "c")]))
    _ask(driver, run_id, 0, edges=(NewEdge(head="a", tail="c", when="result > 1"),), removed=(("b", "c"),))
    driver.do(run_id, 1)
    driver.gate(run_id)
    assert [(edge.edge_id, edge.head, edge.when) for edge in ledger.edges(run_id, tenant_id=TENANT)] == [
        (0, 0, None),
        (2, 0, "result > 1"),
    ]


def test_a_node_moved_to_a_later_wave_keeps_its_planned_one(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    new = NewNode(spec=NodeSpec(key="x", task="work"))
    _ask(driver, run_id, 0, nodes=(new,), edges=(NewEdge(head="a", tail="x"), NewEdge(head="x", tail="b")))
    driver.gate(run_id)
    node = ledger.nodes(run_id, tenant_id=TENANT)[1]
    assert (node.planned_wave, node.wave) == (2, 3)
    assert ledger.evolutions(run_id, tenant_id=TENANT)[0].moved == (("b", 2, 3),)
    assert driver.run(run_id).waves == 3


def test_a_refused_evolution_is_kept_with_its_reason(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    _ask(driver, run_id, 0, refusal="no task 'nothing'")
    driver.do(run_id, 1)
    driver.gate(run_id)
    (row,) = ledger.evolutions(run_id, tenant_id=TENANT)
    assert (row.number, row.refused, row.added) == (1, "evolution refused: no task 'nothing'", ())
    node = ledger.nodes(run_id, tenant_id=TENANT)[0]
    assert (node.state, node.error) == (NodeState.FAILED, "evolution refused: no task 'nothing'")


def test_the_request_of_the_latest_attempt_counts(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    for attempt, reason in ((1, "first"), (2, "second")):
        _ask(driver, run_id, 0, attempt, reason=reason)
        driver.gate(run_id)
    assert [(row.number, row.reason) for row in ledger.evolutions(run_id, tenant_id=TENANT)] == [
        (1, "first"),
        (2, "second"),
    ]
    _ask(driver, run_id, 0, 3, reason="third")
    driver.gate(run_id)
    last = ledger.evolutions(run_id, tenant_id=TENANT)[-1]
    assert (last.number, last.refused) == (3, "evolution refused: more than 2 evolutions of node 'a'")


def test_what_an_evolution_asked_for_reads_back_equal(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    spec = NodeSpec(key="x", task="work", params={"t": "\ud800"}, policy=Policy(retry_on=("E",)), resources=("r",))
    request = _ask(
        driver,
        run_id,
        0,
        nodes=(NewNode(spec=spec),),
        edges=(NewEdge(head="a", tail="x", parameter="p", when="result", required=False, droppable=False),),
        removed=(("a", "b"),),
    )
    (attempt,) = ledger.attempts(run_id, tenant_id=TENANT)
    assert (attempt.status, attempt.evolution) == ("evolved", request)


def test_an_event_of_an_evolution_reads_back_equal(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    new = NewNode(spec=NodeSpec(key="x", task="work", policy=Policy(max_attempts=7), join="all"))
    _ask(driver, run_id, 0, nodes=(new,), edges=(NewEdge(head="a", tail="x"),))
    decision = driver.gate(run_id)
    wanted = [event for event in decision.events if isinstance(event, NodeEvolved)]
    found = [row.event for row in ledger.events(run_id, tenant_id=TENANT) if isinstance(row.event, NodeEvolved)]
    assert found == wanted
