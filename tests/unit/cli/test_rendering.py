"""Plans, nodes and reports as people read them."""

from __future__ import annotations

import io

from rich.console import Console
from rows import node_row

from graphrun.cli.rendering import beside, beside_table, node_table, planned_waves, report_text, wave_line
from graphrun.execution.report import Report, ReportEvolution, ReportNode
from graphrun.execution.state import Cause, NodeState, RunState


def report_node(key, wave=1, state=NodeState.SUCCEEDED, planned_wave=1, attempts=1, **more):
    return ReportNode(key=key, task="t", state=state, wave=wave, planned_wave=planned_wave, attempts=attempts, **more)


def test_waves_are_written_as_the_plan_writes_them():
    assert wave_line([["a", "b"], ["c"]]) == "wave1[a∥b] → gate → wave2[c]"


def test_of_a_wide_wave_the_beginning_is_written():
    assert wave_line([[f"n{n}" for n in range(50)]]) == "wave1[n0∥n1∥n2∥n3∥n4∥n5∥… 44 more]"


def test_of_many_waves_the_first_and_the_last_are_written():
    text = wave_line([[f"n{n}"] for n in range(100)])
    assert text.startswith("wave1[n0] → gate")
    assert text.endswith("… 89 more waves → gate → wave100[n99]")


def test_lines_end_between_waves():
    text = wave_line([["aaaa"], ["bbbb"], ["cccc"]], width=40, indent=4)
    assert text.splitlines() == ["wave1[aaaa] → gate → wave2[bbbb]", "    → gate → wave3[cccc]"]


def test_a_report_beside_its_plan_names_each_difference():
    nodes = (
        report_node("a"),
        report_node("b", attempts=2),
        report_node("c", attempts=2, planned_wave=2, wave=2),
        report_node("new", planned_wave=None, wave=3),
    )
    evolution = ReportEvolution(node="c", number=1, original_scope="x", evolved_scope="y", added=("new",))
    report = Report(run_id="r", graph="g", state=RunState.SUCCEEDED, nodes=nodes, evolutions=(evolution,))
    console = Console(file=io.StringIO(), width=80)
    console.print(beside_table(report))
    rows = [" ".join(row.split()) for row in console.file.getvalue().splitlines()]
    assert rows[1:] == [
        "a wave 1 wave 1 1 succeeded",
        "b wave 1 wave 1 2 failed once, then done",
        "c wave 2 wave 2 2 evolved: y",
        "new - wave 3 1 added by the evolution of c",
    ]


def test_no_waves_are_nothing():
    assert wave_line([]) == "nothing"


def test_added_nodes_are_in_no_planned_wave():
    nodes = [node_row(0, "a"), node_row(1, "b", wave=2, planned_wave=2), node_row(2, "new", wave=2, planned_wave=None)]
    assert planned_waves(nodes) == [["a"], ["b"]]


def test_the_plan_stands_beside_what_ran():
    report = Report(run_id="r", graph="g", state=RunState.SUCCEEDED, nodes=(report_node("a"), report_node("b")))
    assert beside([["a", "b"]], report).splitlines() == [
        "PLANNED     : wave1[a∥b]",
        "IMPLEMENTED : wave1[a∥b]",
    ]


def test_a_small_report_is_whole():
    report = Report(run_id="r", graph="g", state=RunState.SUCCEEDED, nodes=(report_node("a"),))
    assert report_text(report) == str(report)


def test_a_big_report_lists_what_is_not_simply_done_and_keeps_its_summary():
    nodes = [report_node(f"n{n}") for n in range(200)]
    nodes += [report_node("again", attempts=2), report_node("moved", wave=2), report_node("new", 2, planned_wave=None)]
    nodes += [report_node("gone", 2, NodeState.SKIPPED, 2, 0, cause=Cause.UPSTREAM_FAILED, roots=("bad",))]
    report = Report(run_id="0123456789", graph="g", state=RunState.FAILED, nodes=tuple(nodes))
    text = report_text(report)
    assert "204 nodes in 2 waves, 203 done; see the others below" in text
    assert "  wave 1: again succeeded attempts=2" in text
    assert "  wave 2: moved succeeded planned for wave 1" in text
    assert "  wave 2: new succeeded added by an evolution" in text
    assert "  wave 2: gone skipped(upstream_failed) because of bad" in text
    assert "n7" not in text
    assert "VERDICT" in text


def test_the_node_table_says_why():
    nodes = [
        node_row(0, "bad", NodeState.FAILED, error="OSError: down", worker="host:0123456789ab", attempt=2),
        node_row(1, "next", NodeState.SKIPPED, wave=2, cause=Cause.UPSTREAM_FAILED, roots=("bad",)),
        node_row(2, "also", wave=2, missing_inputs={"bad": "failed"}),
    ]
    console = Console(file=io.StringIO(), width=200)
    console.print(node_table(nodes, []))
    text = console.file.getvalue()
    assert "OSError: down" in text
    assert "host:012345" in text
    assert "because of bad" in text
    assert "without bad" in text
