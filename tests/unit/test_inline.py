"""Runs in this process: the same planner, ledger and attempt code as on workers, for rules X4 to X10 and X16."""

from __future__ import annotations

from typing import Any

import pytest

from graphrun import Context, Done, Evolved, Failed, Graph, TaskRegistry, condition, task
from graphrun.engine.inline import InlineRun

REGISTRY = TaskRegistry()


@task(registry=REGISTRY, name="value")
def value(x: Any = None) -> Any:
    return x


@task(registry=REGISTRY, name="broken")
def broken() -> int:
    raise RuntimeError("no luck")


@task(registry=REGISTRY, name="takes")
def takes(needed: Any, optional: int | None, ctx: Context, default: int = 7) -> dict[str, Any]:
    return {"needed": needed, "optional": optional, "default": default, "missing": dict(ctx.missing_inputs)}


@task(registry=REGISTRY, name="gather")
def gather(items: list[Any], table: dict[str, Any]) -> list[Any]:
    return [items, table]


@task(registry=REGISTRY, name="later")
async def later(x: int) -> int:
    return x + 1


def _states(run: InlineRun) -> dict[str, str]:
    return {node.key: node.state.value for node in run.nodes()}


@pytest.fixture
def graph() -> Graph:
    return Graph("inline", registry=REGISTRY)


def test_an_async_body_is_a_node(graph: Graph) -> None:
    graph.add(later, x=graph.add(later, x=1), key="b")
    assert graph.run().output("b") == 3


def test_x4_a_parameter_without_a_value_takes_its_default_else_none(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="result > 1")
    graph.add(takes, needed=seed, optional=skipped, default=skipped, key="t")
    run = graph.run()
    assert run.output("t") == {"needed": 1, "optional": None, "default": 7, "missing": {"skipped": "condition"}}
    assert run.status == "succeeded"


def test_x4_an_absent_element_of_a_list_or_dict_is_left_out(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="False")
    graph.add(gather, items=[seed, skipped, seed], table={"a": seed, "b": skipped}, key="t")
    assert graph.run().output("t") == [[1, 1], {"a": 1}]


def test_x4_a_parameter_that_needs_a_value_skips_its_node_with_the_edge_s_cause(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="False")
    graph.add(takes, needed=skipped, optional=seed, key="t")
    run = graph.run()
    assert _states(run) == {"seed": "succeeded", "skipped": "skipped", "t": "skipped"}
    assert (run.nodes()[2].cause, run.nodes()[2].roots) == ("condition", ("seed",))


def test_x5_proceed_goes_on_without_what_is_optional_and_says_so(graph: Graph) -> None:
    seed, bad = graph.add(value, x=1, key="seed"), graph.add(broken, key="bad")
    graph.add(takes, needed=seed, optional=bad, key="t")
    run = graph.run()
    assert run.output("t")["missing"] == {"bad": "upstream_failed"}
    assert run.nodes()[2].summary == "proceeded without bad (upstream_failed)"
    assert "proceeded without bad" in str(run.report())
    assert (run.status, run.report().failures, run.report().verdict) == ("failed", ("bad",), "mismatches")


def test_x5_skip_dependents_makes_every_edge_required_unless_it_says_otherwise(graph: Graph) -> None:
    seed, bad = graph.add(value, x=1, key="seed"), graph.add(broken, key="bad")
    strict = graph.add(takes, needed=seed, optional=bad, key="strict")
    mild = graph.add(takes, needed=seed, optional=bad, key="mild")
    graph.connect(bad, mild, required=False)
    assert strict.key == "strict"
    assert _states(graph.run(failure_policy="skip_dependents")) == {
        "seed": "succeeded",
        "bad": "failed",
        "strict": "skipped",
        "mild": "succeeded",
    }


def test_x5_fail_fast_starts_nothing_more(graph: Graph) -> None:
    seed, bad = graph.add(value, x=1, key="seed"), graph.add(broken, key="bad")
    graph.add(value, x=seed, key="after")
    run = graph.run(failure_policy="fail_fast")
    assert _states(run) == {"seed": "succeeded", "bad": "failed", "after": "cancelled"}
    assert (run.nodes()[2].cause, run.report().gaps, bad.key) == ("fail_fast", ("after",), "bad")


def test_x3_an_edge_that_asks_for_a_failure_makes_a_clean_up(graph: Graph) -> None:
    bad = graph.add(broken, key="bad")
    clean = graph.add(value, x="cleaned", key="clean", after=bad)
    graph.connect(bad, clean, when="status == 'failed'")
    assert _states(graph.run()) == {"bad": "failed", "clean": "succeeded"}


def test_x3_a_condition_that_raises_blocks_its_edge_and_names_it(graph: Graph) -> None:
    seed = graph.add(value, x="text", key="seed")
    t = graph.add(value, x=1, key="t", after=seed)
    graph.connect(seed, t, when="result > 3")
    run = graph.run()
    assert (run.nodes()[1].cause, run.nodes()[1].roots) == ("condition_error", ("seed -> t",))
    assert run.status == "failed"


def test_null_delivered_is_not_missing(graph: Graph) -> None:
    graph.add(takes, needed=graph.add(value, x=None), optional=None, key="t")
    assert graph.run().output("t") == {"needed": None, "optional": None, "default": 7, "missing": {}}


def test_a_part_of_an_output_is_bound_and_an_absent_part_fails_the_node(graph: Graph) -> None:
    seed = graph.add(value, x={"rows": [{"n": 5}], 'a "b"': 1}, key="seed")
    graph.add(value, x=seed["rows"][0]["n"], key="there")
    graph.add(value, x=seed['a "b"'], key="odd")
    graph.add(value, x=seed["rows"][1], key="absent")
    run = graph.run()
    assert (run.output("there"), run.output("odd")) == (5, 1)
    assert "the output of node 'seed' has no 'rows[1]'" in (run.nodes()[3].error or "")


def test_an_output_that_does_not_fit_its_consumer_fails_that_node_by_name(graph: Graph) -> None:
    graph.add(later, x=graph.add(value, x="text"), key="t")
    assert "parameter 'x' of task later" in (graph.run().nodes()[1].error or "")


def test_x10_a_check_that_says_done_and_an_output_that_exists_save_the_run(graph: Graph, tmp_path: Any) -> None:
    @condition(name="is-there", registry=REGISTRY)
    def is_there(x: int) -> bool:
        return x > 1

    (tmp_path / "out.csv").write_text("rows")
    (tmp_path / "empty.csv").touch()
    graph.add(value, x=2, key="checked", done_when="is-there")
    graph.add(value, x=1, key="not-yet", done_when="is-there")
    graph.add(value, x=1, key="file", output=str(tmp_path / "out.csv"), done_when="output")
    graph.add(value, x=1, key="empty", output=str(tmp_path / "empty.csv"), done_when="output")
    run = graph.run()
    assert {node.key: node.pre_done for node in run.nodes()} == {
        "checked": True,
        "not-yet": False,
        "file": True,
        "empty": False,
    }
    assert run.output("file") == str(tmp_path / "out.csv")
    assert {node.key: node.attempt for node in run.nodes()}["file"] == 0


def test_x6_a_failed_return_is_retried_once_and_kept_as_text(graph: Graph) -> None:
    tries: list[int] = []

    @task(registry=REGISTRY, name="says-failed")
    def says_failed(ctx: Context) -> int:
        tries.append(ctx.attempt)
        return Failed("not today")  # type: ignore[return-value]  # taken out of the annotation by the registry

    graph.add(says_failed, key="f")
    assert graph.run().nodes()[0].error == "not today"
    assert tries == [1, 2]


def test_promise_3_the_idempotency_key_is_the_same_for_every_retry(graph: Graph) -> None:
    keys: list[str] = []

    @task(registry=REGISTRY, name="keeps-keys")
    def keeps_keys(ctx: Context) -> None:
        keys.append(ctx.idempotency_key)
        raise RuntimeError

    graph.add(keeps_keys, key="a")
    graph.add(keeps_keys, key="b")
    graph.run()
    assert len(keys) == 4
    assert len(set(keys)) == 2


def test_x7_more_evolutions_than_the_limit_fail_the_node(graph: Graph) -> None:
    @task(registry=REGISTRY, name="never-content")
    def never_content() -> None:
        return Evolved(scope="more")  # type: ignore[return-value]  # taken out of the annotation by the registry

    graph.add(never_content, key="n")
    run = graph.run()
    assert "more than 2 evolutions" in (run.nodes()[0].error or "")
    assert [item.refused is None for item in run.report().evolutions] == [True, True, False]


def test_d15_what_a_node_says_it_did_is_compared_with_what_it_was_asked(graph: Graph) -> None:
    @task(registry=REGISTRY, name="builds")
    def builds() -> int:
        return Done(1, implemented=("api", "extra"))  # type: ignore[return-value]  # taken out of the annotation

    graph.add(builds, key="b", subgraph=["api", "tests"])
    report = graph.run().report()
    assert (report.off_script, report.gaps, report.verdict) == (("b: extra",), ("b: tests",), "mismatches")


def test_a_run_is_read_as_one_json_document(graph: Graph) -> None:
    graph.add(value, x=1, key="a")
    document = graph.run().report().to_document()
    assert set(document) == {
        "run_id",
        "graph",
        "status",
        "verdict",
        "waves",
        "nodes",
        "failures",
        "evolutions",
        "off_script",
        "gaps",
    }
    assert document["nodes"]["a"] | {"started_at": "", "finished_at": ""} == {
        "status": "succeeded",
        "attempts": 1,
        "wave": 1,
        "output": 1,
        "task": "value",
        "started_at": "",
        "finished_at": "",
    }
