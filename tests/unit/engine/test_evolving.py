"""X7: what an evolved return asks for, compiled with the tasks that are known, and run in this process."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from graphrun import Context, Evolved, Graph, TaskRegistry, task
from graphrun.engine.inline import InlineRun, _TemporaryLedger
from graphrun.storage.ledger import Ledger

REGISTRY = TaskRegistry()


@task(registry=REGISTRY, name="value")
def value(x: Any = None) -> Any:
    return x


@task(registry=REGISTRY, name="takes")
def takes(needed: Any, default: int = 7) -> dict[str, Any]:
    return {"needed": needed, "default": default}


@cache
def _ledger() -> Ledger:
    """One ledger for all runs here: making its schema takes longer than most of them."""
    return _TemporaryLedger()


def _errors(run: InlineRun) -> dict[str, str | None]:
    return {node.key: node.error for node in run.nodes()}


@pytest.fixture
def evolving() -> Any:
    """Run a node that evolves once as asked, with another node behind it."""

    def run(asked: Any) -> InlineRun:
        @task(registry=REGISTRY, name=f"evolves-{id(asked)}")
        def evolves(seed: Any, ctx: Context, extra: Any = None) -> Any:
            return asked if ctx.attempt == 1 else {"seed": seed, "extra": extra}

        graph = Graph("evolving", registry=REGISTRY)
        seed = graph.add(value, x={"p": 4}, key="seed")
        node = graph.add(evolves, seed=seed, key="node")
        graph.add(takes, needed=node, key="last")
        return graph.run(ledger=_ledger())

    return run


def test_x7_added_nodes_and_edges_run_in_later_waves(evolving: Any) -> None:
    added = {"key": "new", "task": "value", "params": {"x": [{"$node": "node", "path": "seed.p"}, 5]}}
    edges = [{"head": "new", "tail": "last", "parameter": "default"}, ("seed", "new")]
    run = evolving(Evolved(add=[added], edges=edges, reason="more"))
    assert run.status == "failed"  # a list is no int: what an edge gives is checked by the consumer's type
    assert run.output("new") == [4, 5]
    assert {node.key: node.wave for node in run.nodes()} == {"seed": 1, "node": 2, "new": 3, "last": 4}
    assert "parameter 'default' of task takes" in (_errors(run)["last"] or "")


def test_x7_a_parameter_may_be_set_to_a_part_of_what_the_node_reads_already(evolving: Any) -> None:
    run = evolving(Evolved(params={"extra": [{"$node": "seed", "path": "p"}, {"plain": 1}]}))
    assert run.output("node") == {"seed": {"p": 4}, "extra": [4, {"plain": 1}]}


def test_x7_an_edge_that_is_disabled_is_not_added(evolving: Any) -> None:
    run = evolving(Evolved(edges=[{"head": "last", "tail": "node", "enabled": False}]))
    assert run.status == "succeeded"


def test_x7_an_edge_that_was_taken_out_gives_nothing(evolving: Any) -> None:
    run = evolving(Evolved(remove_edges=[("node", "last")]))
    assert "parameter 'needed' has no value: node (no edge)" in (_errors(run)["last"] or "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            Evolved(params={"extra": {"$node": "last"}}),
            "new parameters read 'last', which node 'node' has no edge from",
        ),
        (Evolved(params={"extra": {"$node": 5}}), "params.extra.$node: a node key is text, not int"),
        (Evolved(params={"extra": {"$node": "seed", "pth": "p"}}), "params.extra.pth: unknown field"),
        (Evolved(params={"nobody": 1}), "parameter 'nobody'"),
        (Evolved(add=[{"key": "new", "tsk": "value"}]), "nodes[0].tsk: unknown field"),
        (Evolved(add=[{"key": "new", "task": "nobody"}]), "unknown task 'nobody'"),
        (Evolved(add=[{"key": "new", "task": "value", "params": {"x": {1, 2}}}]), "nodes[0].params.x: type set"),
        (Evolved(add=[{"key": "seed", "task": "value"}]), "node 'seed' is in the graph already"),
        (Evolved(add=[{"key": "n\x00", "task": "value"}]), "NUL"),
        (Evolved(edges=[("node", "ghost")]), "names 'ghost', which is not in the graph"),
        (Evolved(edges=[("last", "node")]), "'node' has started"),
        (Evolved(edges=[{"head": "node", "tail": "last", "when": "result >"}]), "column"),
        (Evolved(edges=[{"head": "seed", "tail": "last", "parameter": "needed"}]), "has a value already"),
        (Evolved(edges=[{"head": "node", "tail": "last", "whn": "x"}]), "edges[0].whn: unknown field"),
        (Evolved(remove_edges=[("last", "node")]), "edge last -> node is not in the graph"),
    ],
    ids=str,
)
def test_x7_an_evolution_that_breaks_a_rule_fails_its_node_and_says_why(
    evolving: Any, asked: Evolved, said: str
) -> None:
    run = evolving(asked)
    assert run.nodes()[1].state == "failed"
    assert said in (_errors(run)["node"] or "")
    assert [row.refused is not None for row in run.report().evolutions] == [True]
    assert [node.key for node in run.nodes()] == ["seed", "node", "last"]


def test_d13_an_evolution_keeps_every_field_that_it_does_not_rewrite(evolving: Any) -> None:
    run = evolving(Evolved(scope="wider", owner="someone", reason="because"))
    (evolution,) = run.report().evolutions
    assert (evolution.evolved_scope, evolution.asked_by, evolution.reason) == ("wider", "local", "because")
    assert (run.output("node"), run.nodes()[1].owner) == ({"seed": {"p": 4}, "extra": None}, "someone")


def test_an_edge_with_a_condition_on_a_node_that_has_ended_is_decided_at_once(evolving: Any) -> None:
    added = [{"key": key, "task": "value", "params": {"x": key}} for key in ("yes", "no")]
    edges = [{"head": "seed", "tail": key, "when": f"result.p {sign} 3"} for key, sign in (("yes", ">"), ("no", "<"))]
    run = evolving(Evolved(add=added, edges=edges))
    assert {node.key: node.state for node in run.nodes()}["no"] == "skipped"
    assert run.output("yes") == "yes"
