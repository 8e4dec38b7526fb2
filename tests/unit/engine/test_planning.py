"""The plan: what `graphrun plan` prints, its data, and the bound of promise 1."""

from __future__ import annotations

import itertools

import pytest

from graphrun.engine.planning import make_plan
from graphrun.errors import ValidationFailedError
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, Policy
from graphrun.registry import TaskRegistry
from graphrun.settings import Settings

REGISTRY = TaskRegistry()
REGISTRY.external("t")
SETTINGS = Settings(sweep_grace_seconds=2, sweep_interval_seconds=3)
ONCE = Policy(timeout_seconds=10, max_attempts=1, max_deliveries=1, max_evolutions=0)


def _spec(**policies: Policy) -> GraphSpec:
    nodes = tuple(NodeSpec(key=key, task="t", policy=policy) for key, policy in policies.items())
    keys = list(policies)
    return GraphSpec(name="g", nodes=nodes, edges=tuple(EdgeSpec(head=a, tail=b) for a, b in itertools.pairwise(keys)))


def test_promise_1_the_bound_counts_the_time_to_notice_a_lost_node_twice_for_each_wave() -> None:
    plan = make_plan(_spec(a=ONCE, b=ONCE), REGISTRY, SETTINGS)
    assert plan.bound.seconds == 2 * (10 + 2 * (2 + 3))
    assert "ends within 40 s" in str(plan)


def test_promise_1_a_long_bound_is_told_in_hours() -> None:
    assert "ends within 17.1 h" not in str(make_plan(_spec(a=ONCE), REGISTRY, SETTINGS))
    slow = Policy(timeout_seconds=3600, max_attempts=1, max_deliveries=3, max_evolutions=0)
    assert "ends within 3.0 h" in str(make_plan(_spec(a=slow), REGISTRY, SETTINGS))
    slower = Policy(timeout_seconds=86_400, max_attempts=2, max_deliveries=3, max_evolutions=0)
    assert "ends within 6 days" in str(make_plan(_spec(a=slower), REGISTRY, SETTINGS))


def test_x15_a_node_without_a_time_limit_is_named_and_no_bound_is_given() -> None:
    plan = make_plan(_spec(a=ONCE, b=Policy(timeout_seconds=None)), REGISTRY, SETTINGS)
    assert "unbounded: b" in str(plan).splitlines()
    assert "ends within" not in str(plan)
    assert plan.to_document()["unbounded"] == ["b"]
    assert plan.to_document()["bound_seconds"] is None


def test_d1_a_plan_is_one_json_document() -> None:
    spec = _spec(a=ONCE, b=ONCE)
    document = make_plan(spec, REGISTRY, SETTINGS).to_document()
    assert document["waves"] == [["a"], ["b"]]
    assert document["line"] == "wave1[a] → gate → wave2[b]"
    assert document["content_hash"] == spec.content_hash
    assert document["delegated"]["nodes"][1]["wave"] == 2
    assert document["bound_seconds"] == 40.0


def test_warnings_are_shown_and_do_not_block() -> None:
    plan = make_plan(GraphSpec(name="g"), REGISTRY, SETTINGS)
    assert "warning: empty_graph: " in str(plan)
    assert (plan.waves, plan.bound.seconds, plan.report.ok) == ((), 0, True)


def test_x1_a_graph_that_may_not_run_has_no_plan() -> None:
    with pytest.raises(ValidationFailedError):
        make_plan(GraphSpec(name="g", nodes=(NodeSpec(key="a", task="nobody"),)), REGISTRY, SETTINGS)
