"""X3, X5, X7: edges that evolutions add, between nodes of the running graph and of each other."""

from __future__ import annotations

from typing import Any

import pytest

from graphrun import Context, Evolved, Graph, TaskRegistry, task

REGISTRY = TaskRegistry()


@task(registry=REGISTRY)
def const(value: int) -> int:
    return value


@task(registry=REGISTRY)
def broken() -> int:
    raise RuntimeError("no luck")


@task(registry=REGISTRY)
def optional(y: int, x: int | None = None) -> list[int | None]:
    return [y, x]


@task(registry=REGISTRY)
def adds_a_broken_head(ctx: Context) -> Any:
    edge = {"head": "extra", "tail": "t", "parameter": "x"}
    return Evolved(scope="p", add=[{"key": "extra", "task": broken.name}], edges=[edge]) if ctx.attempt == 1 else 1


@task(registry=REGISTRY)
def adds_merge(ctx: Context) -> Any:
    return Evolved(scope="p", add=[_const("merge")]) if ctx.attempt == 1 else 1


@task(registry=REGISTRY)
def adds_after_merge(ctx: Context) -> Any:
    return Evolved(scope="q", add=[_const("after")], edges=[("merge", "after")]) if ctx.attempt == 1 else 2


@task(registry=REGISTRY)
def asks_the_sibling(ctx: Context, bound: int) -> Any:
    edge = {"head": "sibling", "tail": "t", "when": f"result > {bound}"}
    return Evolved(scope="p", edges=[edge]) if ctx.attempt == 1 else 1


def _const(key: str) -> dict[str, Any]:
    return {"key": key, "task": const.name, "params": {"value": 1}}


def test_x5_an_added_edge_into_an_optional_parameter_does_not_block_its_tail() -> None:
    graph = Graph("added", registry=REGISTRY)
    head = graph.add(adds_a_broken_head, key="e")
    graph.add(optional, key="t", y=head)
    run = graph.run()
    assert {node.key: node.state for node in run.nodes()} == {"e": "succeeded", "t": "succeeded", "extra": "failed"}
    assert run.output("t") == [1, None]


def test_x7_an_evolution_may_name_a_node_that_another_of_the_same_gate_added() -> None:
    graph = Graph("two", registry=REGISTRY)
    graph.add(adds_merge, key="p")
    graph.add(adds_after_merge, key="q")
    run = graph.run()
    assert run.status == "succeeded"
    assert run.report().evolutions[1].added_edges == ("merge -> after",)


@pytest.mark.parametrize(("bound", "state"), [(0, "succeeded"), (1, "skipped")])
@pytest.mark.parametrize("keys", [("sibling", "e"), ("e", "sibling")])
def test_x3_a_condition_on_a_sibling_that_ended_meanwhile_is_evaluated_whichever_was_first(
    keys: tuple[str, str], bound: int, state: str
) -> None:
    graph = Graph("sibling", registry=REGISTRY)
    handles = {
        key: graph.add(const, value=1, key=key)
        if key == "sibling"
        else graph.add(asks_the_sibling, bound=bound, key=key)
        for key in keys
    }
    graph.add(const, value=2, key="t", after=handles["e"], join="all")
    run = graph.run()
    assert {node.key: node.state for node in run.nodes()}["t"] == state
    assert run.status == "succeeded"
