"""Runs in this process: the same planner, ledger and attempt code as on workers, for rules X4 to X10 and X16."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from graphrun import Context, Done, Evolved, Failed, Graph, TaskRegistry, builtin, condition, task
from graphrun.engine.inline import InlineRun, _TemporaryLedger
from graphrun.errors import FormatError, GraphError, LedgerError, ValidationFailedError
from graphrun.model.spec import GraphSpec
from graphrun.storage.ledger import Ledger

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


@cache
def _ledger() -> Ledger:
    """One ledger for all runs here: making its schema takes longer than most of them."""
    return _TemporaryLedger()


def _run(graph: Graph, **options: Any) -> InlineRun:
    return graph.run(ledger=_ledger(), **options)


def _errors(run: InlineRun) -> dict[str, str | None]:
    return {node.key: node.error for node in run.nodes()}


def _states(run: InlineRun) -> dict[str, str]:
    return {node.key: node.state.value for node in run.nodes()}


@pytest.fixture
def graph() -> Graph:
    return Graph("inline", registry=REGISTRY)


def test_an_async_body_is_a_node(graph: Graph) -> None:
    graph.add(later, x=graph.add(later, x=1), key="b")
    assert _run(graph).output("b") == 3


def test_x4_a_parameter_without_a_value_takes_its_default_else_none(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="result > 1")
    graph.add(takes, needed=seed, optional=skipped, default=skipped, key="t")
    run = _run(graph)
    assert run.output("t") == {"needed": 1, "optional": None, "default": 7, "missing": {"skipped": "condition"}}
    assert run.status == "succeeded"


def test_x4_an_absent_element_of_a_list_or_dict_is_left_out(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="False")
    graph.add(gather, items=[seed, skipped, seed], table={"a": seed, "b": skipped}, key="t")
    assert _run(graph).output("t") == [[1, 1], {"a": 1}]


def test_x4_a_parameter_that_needs_a_value_skips_its_node_with_the_edge_s_cause(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    skipped = graph.add(value, x=2, key="skipped", after=seed)
    graph.connect(seed, skipped, when="False")
    graph.add(takes, needed=skipped, optional=seed, key="t")
    run = _run(graph)
    assert _states(run) == {"seed": "succeeded", "skipped": "skipped", "t": "skipped"}
    assert (run.nodes()[2].cause, run.nodes()[2].roots) == ("condition", ("seed",))


def test_x5_proceed_goes_on_without_what_is_optional_and_says_so(graph: Graph) -> None:
    seed, bad = graph.add(value, x=1, key="seed"), graph.add(broken, key="bad")
    graph.add(takes, needed=seed, optional=bad, key="t")
    run = _run(graph)
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
    assert _states(_run(graph, failure_policy="skip_dependents")) == {
        "seed": "succeeded",
        "bad": "failed",
        "strict": "skipped",
        "mild": "succeeded",
    }


def test_x5_fail_fast_starts_nothing_more(graph: Graph) -> None:
    seed, bad = graph.add(value, x=1, key="seed"), graph.add(broken, key="bad")
    graph.add(value, x=seed, key="after")
    run = _run(graph, failure_policy="fail_fast")
    assert _states(run) == {"seed": "succeeded", "bad": "failed", "after": "cancelled"}
    assert (run.nodes()[2].cause, run.report().gaps, bad.key) == ("fail_fast", ("after",), "bad")


def test_x3_an_edge_that_asks_for_a_failure_makes_a_clean_up(graph: Graph) -> None:
    bad = graph.add(broken, key="bad")
    clean = graph.add(value, x="cleaned", key="clean", after=bad)
    graph.connect(bad, clean, when="status == 'failed'")
    assert _states(_run(graph)) == {"bad": "failed", "clean": "succeeded"}


def test_x3_a_condition_that_raises_blocks_its_edge_and_names_it(graph: Graph) -> None:
    seed = graph.add(value, x="text", key="seed")
    t = graph.add(value, x=1, key="t", after=seed)
    graph.connect(seed, t, when="result > 3")
    run = _run(graph)
    assert (run.nodes()[1].cause, run.nodes()[1].roots) == ("condition_error", ("seed -> t",))
    assert run.status == "failed"


def test_null_delivered_is_not_missing(graph: Graph) -> None:
    graph.add(takes, needed=graph.add(value, x=None), optional=None, key="t")
    assert _run(graph).output("t") == {"needed": None, "optional": None, "default": 7, "missing": {}}


def test_a_part_of_an_output_is_bound_and_an_absent_part_fails_the_node(graph: Graph) -> None:
    seed = graph.add(value, x={"rows": [{"n": 5}], 'a "b"': 1}, key="seed")
    graph.add(value, x=seed["rows"][0]["n"], key="there")
    graph.add(value, x=seed['a "b"'], key="odd")
    graph.add(value, x=seed["rows"][1], key="absent")
    run = _run(graph)
    assert (run.output("there"), run.output("odd")) == (5, 1)
    assert "the output of node 'seed' has no 'rows[1]'" in (run.nodes()[3].error or "")


def test_an_output_that_does_not_fit_its_consumer_fails_that_node_by_name(graph: Graph) -> None:
    graph.add(later, x=graph.add(value, x="text"), key="t")
    assert "parameter 'x' of task later" in (_run(graph).nodes()[1].error or "")


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
    run = _run(graph)
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
    assert _run(graph).nodes()[0].error == "not today"
    assert tries == [1, 2]


def test_promise_3_the_idempotency_key_is_the_same_for_every_retry(graph: Graph) -> None:
    keys: list[str] = []

    @task(registry=REGISTRY, name="keeps-keys")
    def keeps_keys(ctx: Context) -> None:
        keys.append(ctx.idempotency_key)
        raise RuntimeError

    graph.add(keeps_keys, key="a")
    graph.add(keeps_keys, key="b")
    _run(graph)
    assert len(keys) == 4
    assert len(set(keys)) == 2


def test_x7_more_evolutions_than_the_limit_fail_the_node(graph: Graph) -> None:
    @task(registry=REGISTRY, name="never-content")
    def never_content() -> None:
        return Evolved(scope="more")  # type: ignore[return-value]  # taken out of the annotation by the registry

    graph.add(never_content, key="n")
    run = _run(graph)
    assert "more than 2 evolutions" in (run.nodes()[0].error or "")
    assert [item.refused is None for item in run.report().evolutions] == [True, True, False]


def test_d15_what_a_node_says_it_did_is_compared_with_what_it_was_asked(graph: Graph) -> None:
    @task(registry=REGISTRY, name="builds")
    def builds() -> int:
        return Done(1, implemented=("api", "extra"))  # type: ignore[return-value]  # taken out of the annotation

    graph.add(builds, key="b", subgraph=["api", "tests"])
    report = _run(graph).report()
    assert (report.off_script, report.gaps, report.verdict) == (("b: extra",), ("b: tests",), "mismatches")


def test_a_run_is_read_as_one_json_document(graph: Graph) -> None:
    graph.add(value, x=1, key="a")
    document = _run(graph).report().to_document()
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


# --- graphs of the built-in tasks, from documents


def _document(*nodes: dict[str, Any], edges: list[Any] | None = None) -> Graph:
    """A graph as a document gives it, so that references and edges are as they are stored."""

    class Stored(Graph):
        def freeze(self) -> GraphSpec:
            return GraphSpec.from_document({"name": "stored", "nodes": list(nodes), "edges": edges or []})

    return Stored("stored")


def _node(key: str, task_name: str, **fields: Any) -> dict[str, Any]:
    params = fields.pop("params", {})
    return {"key": key, "task": f"graphrun.builtin.{task_name}", "params": params, **fields}


def test_o5_the_empty_graph_succeeds_at_once_with_an_empty_implemented_graph() -> None:
    run = _run(Graph("empty"))
    assert (run.status, run.nodes(), run.report().verdict) == ("succeeded", (), "matches")


def test_o6_in_a_chain_of_waves_of_one_a_list_is_the_value_and_not_a_list_of_it() -> None:
    graph = Graph("chain")
    a = graph.add(builtin.echo, value=[1, 2], key="a")
    b = graph.add(builtin.echo, value=a, key="b")
    graph.add(builtin.echo, value=b, key="c")
    run = _run(graph)
    assert [run.output(key) for key in "abc"] == [[1, 2]] * 3
    assert [node.wave for node in run.nodes()] == [1, 2, 3]


def test_o5_a_wave_in_which_everything_is_skipped_goes_straight_to_its_gate() -> None:
    graph = Graph("skips")
    a = graph.add(builtin.echo, value=1, key="a")
    b = graph.add(builtin.echo, value=a, key="b")
    c = graph.add(builtin.echo, value=2, after=b, key="c")
    graph.add(builtin.echo, value=3, after=[a], key="d")
    graph.connect(a, b, when="result > 1")
    graph.connect(b, c, when="status == 'skipped'")
    run = _run(graph)
    assert _states(run) == {"a": "succeeded", "b": "skipped", "c": "succeeded", "d": "succeeded"}
    assert run.status == "succeeded"


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]], ids=str)
def test_x9_inputs_are_bound_by_parameter_in_declared_order_whatever_the_order_of_the_nodes(order: list[int]) -> None:
    makers = [_node(f"p{number}", "echo", params={"value": number}) for number in range(4)]
    join = _node("join", "echo", params={"value": [{"$node": f"p{n}"} for n in range(4)] + [{"$node": "p0"}]})
    graph = _document(join, *(makers[number] for number in order))
    assert _run(graph).output("join") == [0, 1, 2, 3, 0]


def test_x9_parameters_come_in_the_order_in_which_they_were_given() -> None:
    graph = _document(
        _node("a", "echo", params={"value": 1}),
        _node("join", "echo", params={"z": {"$node": "a"}, "m": 2, "a": {"$node": "a"}}),
    )
    assert list(_run(graph).output("join").items()) == [("z", 1), ("m", 2), ("a", 1)]


def test_o28_odd_keys_come_back_byte_for_byte_with_their_outputs() -> None:
    keys = ["a/b", "x#33", "lire données", "名前", '("sum", 0)', "rule\nds: 552", "k" * 300, "A", "a", " a"]
    graph = Graph("odd")
    handles = [graph.add(builtin.echo, value=number, key=key) for number, key in enumerate(keys)]
    graph.add(builtin.echo, value=handles, key="all")
    run = _run(graph)
    assert [node.key for node in run.nodes()] == [*keys, "all"]
    assert run.output("all") == list(range(10))
    assert list(run.report().to_document()["nodes"]) == [*keys, "all"]


def test_x2_resources_keep_nodes_apart_and_their_order() -> None:
    graph = Graph("apart")
    for key in "abc":
        graph.add(builtin.echo, value=key, key=key, resources=["disk"])
    graph.add(builtin.echo, value="d", key="d")
    assert [(node.key, node.wave) for node in _run(graph).nodes()] == [("a", 1), ("b", 2), ("c", 3), ("d", 1)]


def test_o2_an_edge_given_twice_gives_its_value_once() -> None:
    edge = {"head": "a", "tail": "b", "parameter": "value"}
    graph = _document(_node("a", "echo", params={"value": 5}), _node("b", "echo"), edges=[edge, edge])
    run = _run(graph)
    assert (run.output("b"), [node.attempt for node in run.nodes()]) == (5, [1, 1])


@pytest.mark.parametrize(
    ("edges", "said"),
    [([["a", "a"]], "a -> a"), ([["a", "b"], ["b", "a"]], "a -> b -> a"), ([["a", "ghost"]], "'ghost'")],
    ids=str,
)
def test_o1_o3_o4_what_may_not_run_is_refused_and_nothing_is_written(edges: list[list[str]], said: str) -> None:
    entries = [{"head": head, "tail": tail} for head, tail in edges]
    before = len(_ledger().runs(tenant_id="inline", state=None, graph=None, limit=1000, offset=0))
    with pytest.raises(ValidationFailedError, match=said):
        _run(_document(_node("a", "echo"), _node("b", "echo"), edges=entries))
    assert len(_ledger().runs(tenant_id="inline", state=None, graph=None, limit=1000, offset=0)) == before


# --- X5


def test_x5_in_a_plain_diamond_the_join_is_skipped_because_of_the_branch_that_failed(graph: Graph) -> None:
    a = graph.add(value, x=1, key="A")
    b = graph.add(value, x=2, key="B", after=a)
    c = graph.add(broken, key="C", after=a)
    d = graph.add(value, x=4, key="D", after=[b, c])
    graph.add(value, x=5, key="E", after=d)
    run = _run(graph)
    assert _states(run) == {"A": "succeeded", "B": "succeeded", "C": "failed", "D": "skipped", "E": "skipped"}
    assert [(node.cause, node.roots) for node in run.nodes()[3:]] == [("upstream_failed", ("C",))] * 2
    assert [node.attempt for node in run.nodes()] == [1, 1, 2, 0, 0]
    assert (run.status, run.report().failures, run.report().gaps) == ("failed", ("C",), ("D", "E"))


@pytest.mark.parametrize("policy", ["proceed", "skip_dependents", "fail_fast"])
def test_x5_the_error_of_a_failed_node_is_never_delivered_as_data(graph: Graph, policy: str) -> None:
    bad = graph.add(broken, key="bad")
    graph.add(takes, needed=1, optional=bad, default=bad, key="t")
    run = _run(graph, failure_policy=policy)
    assert all("no luck" not in str(node.output) for node in run.report().nodes if node.key == "t")
    if policy == "proceed":
        assert run.output("t") == {"needed": 1, "optional": None, "default": 7, "missing": {"bad": "upstream_failed"}}
    else:
        assert _states(run)["t"] == ("skipped" if policy == "skip_dependents" else "cancelled")


def test_x5_what_a_node_went_on_without_stands_in_its_summary_and_in_the_report(graph: Graph) -> None:
    @task(registry=REGISTRY, name="sums-up")
    def sums_up(parts: list[Any] | None = None) -> Any:
        return Done(len(parts or []), summary="added up")

    good, bad, worse = (graph.add(t, key=k) for t, k in ((value, "good"), (broken, "bad"), (broken, "worse")))
    graph.add(sums_up, parts=[worse, good, bad], key="t")
    run = _run(graph)
    (row,) = (node for node in run.nodes() if node.key == "t")
    assert row.summary == "added up; proceeded without worse (upstream_failed), bad (upstream_failed)"
    assert run.output("t") == 1
    document = run.report().to_document()
    assert document["nodes"]["t"]["missing_inputs"] == {"worse": "upstream_failed", "bad": "upstream_failed"}
    assert document["failures"] == ["bad", "worse"]


def test_x5_fail_fast_waits_for_the_retry_and_lets_those_that_run_end(graph: Graph) -> None:
    @task(registry=REGISTRY, name="second-try")
    def second_try(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("once")
        return ctx.attempt

    first = graph.add(second_try, key="first")
    graph.add(value, x=first, key="after")
    run = _run(graph, failure_policy="fail_fast")
    assert (run.status, run.output("after")) == ("succeeded", 2)


def test_x5_a_policy_that_is_none_is_refused(graph: Graph) -> None:
    with pytest.raises(FormatError, match="failure_policy"):
        _run(graph, failure_policy="hope")


# --- X3, X4


def test_x3_the_first_condition_that_holds_is_enough_to_give_the_value() -> None:
    entries = [{"head": "a", "tail": "b", "when": when} for when in ("result > 9", "result < 5")]
    for given, expected in ((1, "succeeded"), (7, "skipped"), (10, "succeeded")):
        graph = _document(
            _node("a", "echo", params={"value": given}),
            _node("b", "add", params={"a": {"$node": "a"}, "b": 1}),
            edges=entries,
        )
        assert _states(_run(graph))["b"] == expected


def test_x3_a_condition_sees_parameters_and_the_run(graph: Graph) -> None:
    seed = graph.add(value, x=[1, 2], key="seed")
    for key, when in (("yes", "len(result) == len(params.x) and run.run_id"), ("no", "params.x[0] > 1")):
        graph.connect(seed, graph.add(value, x=key, key=key, after=seed), when=when)
    assert _states(_run(graph)) == {"seed": "succeeded", "yes": "succeeded", "no": "skipped"}


def test_x4_join_all_is_skipped_by_one_suppressed_edge_and_join_any_is_not(graph: Graph) -> None:
    seed = graph.add(value, x=1, key="seed")
    left, right = (graph.add(value, x=key, key=key, after=seed) for key in ("left", "right"))
    graph.connect(seed, right, when="False")
    for join in ("any", "all"):
        graph.add(gather, items=[left, right], table={}, join=join, key=join)
    run = _run(graph)
    assert (run.output("any"), _states(run)["all"]) == ([["left"], {}], "skipped")
    assert (run.nodes()[4].cause, run.nodes()[4].roots, run.status) == ("condition", ("seed",), "succeeded")


def test_x4_a_disabled_edge_gives_nothing_and_holds_nobody_back(graph: Graph) -> None:
    bad = graph.add(broken, key="bad")
    t = graph.add(takes, needed=1, optional=bad, default=bad, key="t")
    graph.connect(bad, t, enabled=False)
    run = _run(graph)
    assert run.nodes()[1].wave == 1
    assert run.output("t") == {"needed": 1, "optional": None, "default": 7, "missing": {"bad": "no edge"}}


# --- values


def test_values_come_back_as_they_were_annotated(graph: Graph) -> None:
    @task(registry=REGISTRY, name="days")
    def days() -> dict[date, tuple[int, ...]]:
        return {date(2020, 1, 1): (1, 2)}

    @task(registry=REGISTRY, name="same-days")
    def same_days(given: dict[date, tuple[int, ...]]) -> bool:
        return given == {date(2020, 1, 1): (1, 2)}

    graph.add(same_days, given=graph.add(days, key="days"), key="same")
    run = _run(graph)
    assert run.output("same") is True
    assert run.output("days") == {date(2020, 1, 1): (1, 2)}
    assert run.output("days", dict[str, list[int]]) == {"2020-01-01": [1, 2]}


def test_o23_nan_is_a_value_in_parameters_and_outputs(graph: Graph) -> None:
    nan = float("nan")
    graph.add(value, x=graph.add(value, x=[nan, float("-inf")], key="a"), key="b")
    assert str(_run(graph).output("b")) == "[nan, -inf]"


def test_a_literal_that_looks_like_a_reference_is_a_literal(graph: Graph) -> None:
    graph.add(value, x={"$node": "nobody", "$x": [1]}, key="a")
    graph.add(value, x=[{"$literal": 5}], key="b")
    run = _run(graph)
    assert (run.output("a"), run.output("b")) == ({"$node": "nobody", "$x": [1]}, [{"$literal": 5}])


def test_a_key_with_a_dollar_beside_an_output_travels(graph: Graph) -> None:
    a = graph.add(value, x={"$x": 5}, key="a")
    graph.add(value, x={"whole": a, "part": a["$x"]}, key="b")
    assert _run(graph).output("b") == {"whole": {"$x": 5}, "part": 5}


def test_an_output_of_an_unknown_node_or_of_none_is_an_error(graph: Graph) -> None:
    graph.add(broken, key="bad")
    run = _run(graph)
    for key in ("bad", "nobody"):
        with pytest.raises(LedgerError, match=key):
            run.output(key)


# --- async bodies


@task(registry=REGISTRY, name="which-loop")
async def which_loop(after: list[Any] | None = None) -> int:
    await asyncio.sleep(0)
    return id(asyncio.get_running_loop())


def test_async_bodies_of_a_run_share_one_loop(graph: Graph) -> None:
    first = graph.add(which_loop, key="a")
    graph.add(which_loop, after=[first], key="b")
    run = _run(graph)
    assert run.output("a") == run.output("b")


def test_a_notebook_whose_thread_has_a_running_loop_runs_async_bodies_too(graph: Graph) -> None:
    first = graph.add(which_loop, key="a")
    graph.add(which_loop, after=[first], key="b")

    async def cell() -> tuple[InlineRun, int]:
        return _run(graph), id(asyncio.get_running_loop())

    run, own = asyncio.run(cell())
    assert run.status == "succeeded"
    assert run.output("a") == run.output("b") != own


def test_an_async_body_that_raises_is_a_failed_attempt(graph: Graph) -> None:
    @task(registry=REGISTRY, name="breaks-later")
    async def breaks_later() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    graph.add(breaks_later, key="a")
    assert _errors(_run(graph)) == {"a": "KeyError: 'x'"}


@pytest.mark.parametrize("error", [SystemExit(0), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_x15_an_exit_in_a_body_fails_that_node_only(graph: Graph, error: BaseException) -> None:
    @task(registry=REGISTRY, name=f"exits-{error!r}")
    def exits() -> None:
        raise error

    graph.add(exits, key="bad")
    graph.add(value, x=1, key="good")
    run = _run(graph)
    assert _states(run) == {"bad": "failed", "good": "succeeded"}
    assert type(error).__name__ in (_errors(run)["bad"] or "")


# --- X6, X7, X10, X16


def test_x6_the_builtin_task_that_fails_once_succeeds_the_second_time() -> None:
    graph = Graph("retry")
    graph.add(builtin.echo, value=graph.add(builtin.fail_once, value=5, key="a"), key="b")
    run = _run(graph)
    assert ([node.attempt for node in run.nodes()], run.output("b"), run.report().verdict) == ([2, 1], 5, "matches")


def test_x6_a_policy_may_allow_more_attempts_or_none_and_name_what_is_retried(graph: Graph) -> None:
    for key, policy in (
        ("once", {"max_attempts": 1}),
        ("thrice", {"max_attempts": 3}),
        ("other", {"max_attempts": 3, "retry_on": ["KeyError"]}),
        ("named", {"max_attempts": 3, "retry_on": ["RuntimeError"]}),
    ):
        graph.add(broken, key=key, policy=policy)
    run = _run(graph)
    assert {node.key: node.attempt for node in run.nodes()} == {"once": 1, "thrice": 3, "other": 1, "named": 3}


def test_x6_a_backoff_is_waited_for(graph: Graph) -> None:
    policy = {"backoff": {"initial_seconds": 0.02, "jitter": 0}}
    graph.add(broken, key="a", policy=policy)
    (row,) = _run(graph).nodes()
    assert (row.state, row.attempt) == ("failed", 2)


def test_x7_the_builtin_task_that_evolves_once_runs_as_evolved() -> None:
    graph = Graph("evolve")
    graph.add(builtin.evolve_once, value=3, key="a", scope="the old scope")
    run = _run(graph)
    (evolution,) = run.report().evolutions
    assert (run.output("a"), run.status, run.report().verdict) == (3, "succeeded", "matches")
    assert (evolution.original_scope, evolution.evolved_scope) == ("the old scope", "the evolved scope")


def test_x10_an_output_given_at_submit_stands_for_the_node_and_feeds_conditions(graph: Graph) -> None:
    a = graph.add(broken, key="a")
    for key, when in (("high", "result > 3"), ("low", "result <= 3")):
        graph.connect(a, graph.add(later, x=a, key=key), when=when)
    run = _run(graph, outputs={"a": 5})
    assert _states(run) == {"a": "succeeded", "high": "succeeded", "low": "skipped"}
    assert (run.output("high"), run.nodes()[0].pre_done, run.nodes()[0].attempt) == (6, True, 0)
    assert run.report().to_document()["nodes"]["a"]["status"] == "pre_done"


def test_x10_an_output_that_cannot_be_is_refused_before_anything_is_written(graph: Graph) -> None:
    graph.add(broken, key="a")
    with pytest.raises(GraphError, match="the output given for node 'a'"):
        _run(graph, outputs={"a": "text"})


@task(registry=REGISTRY, name="is-even")
def is_even(number: int) -> bool:
    return number % 2 == 0


def test_x16_done_with_a_failed_verification_is_a_failed_attempt_and_gets_the_retry(graph: Graph) -> None:
    tried: list[int] = []

    @task(registry=REGISTRY, name="counts-up")
    def counts_up() -> int:
        tried.append(1)
        return len(tried)

    graph.add(counts_up, key="second-try", verify=is_even)
    graph.add(value, x=1, key="never", verify=is_even)
    graph.add(value, x=2, key="at-once", verify=is_even)
    run = _run(graph)
    assert _states(run) == {"second-try": "succeeded", "never": "failed", "at-once": "succeeded"}
    assert [node.attempt for node in run.nodes()] == [2, 2, 1]
    assert "is-even returned False" in (_errors(run)["never"] or "")
    assert run.report().to_document()["nodes"]["at-once"]["verify"] == "pass"


# --- a run of its own


def test_a_run_without_a_ledger_keeps_its_own_as_long_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    graph = Graph("alone")
    graph.add(builtin.add, a=graph.add(builtin.echo, value=1), b=2, key="sum")
    run = graph.run()
    assert len(list(tmp_path.iterdir())) == 1
    assert run.output("sum") == 3
    del run
    gc.collect()
    assert list(tmp_path.iterdir()) == []
