"""D14, D15 and X19: the implemented graph, its lists and its verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from graphrun.execution.report import Report, ReportEvolution, ReportNode, shown
from graphrun.execution.state import Cause, NodeState, RunState

DONE = ReportNode(
    key="a", task="t", state=NodeState.SUCCEEDED, wave=1, planned_wave=1, attempts=1, output=5, has_output=True
)
FAILED = replace(DONE, key="f", state=NodeState.FAILED, attempts=2, output=None, has_output=False, error="Boom: why")
SKIPPED = replace(
    FAILED,
    key="s",
    state=NodeState.SKIPPED,
    wave=2,
    planned_wave=2,
    attempts=0,
    error=None,
    cause=Cause.CONDITION,
    roots=("a",),
)
EVOLUTION = ReportEvolution(node="a", number=1, original_scope="little", evolved_scope="much")


def report(*nodes: ReportNode, state: RunState = RunState.SUCCEEDED, **rest) -> Report:
    return Report(run_id="r", graph="g", state=state, nodes=nodes, **rest)


# --- lists and verdict


def test_d15_a_run_as_it_was_asked_for_matches():
    said = report(DONE)
    assert (said.failures, said.off_script, said.gaps, said.verdict) == ((), (), (), "matches")


def test_d15_the_empty_graph_matches():
    assert (report().verdict, report().waves) == ("matches", ())


def test_x19_a_failure_is_a_mismatch():
    said = report(DONE, FAILED, state=RunState.FAILED)
    assert (said.failures, said.verdict) == (("f",), "mismatches")


@pytest.mark.parametrize("cause", [Cause.UPSTREAM_FAILED, Cause.CONDITION_ERROR])
def test_x19_a_skip_because_of_a_failure_is_a_gap(cause):
    said = report(DONE, replace(SKIPPED, cause=cause), state=RunState.FAILED)
    assert (said.gaps, said.verdict) == (("s",), "mismatches")


def test_x19_a_cancelled_node_is_a_gap():
    node = replace(SKIPPED, key="c", state=NodeState.CANCELLED, cause=Cause.FAIL_FAST)
    assert report(node, state=RunState.FAILED).gaps == ("c",)


def test_x19_a_skip_by_condition_and_a_recorded_evolution_are_no_mismatch():
    said = report(DONE, SKIPPED, evolutions=(EVOLUTION,))
    assert (said.gaps, said.verdict) == ((), "matches")


def test_x19_a_node_that_an_evolution_added_is_not_off_script():
    added = replace(DONE, key="new", planned_wave=None)
    assert report(added, evolutions=(replace(EVOLUTION, added=("new",)),)).off_script == ()
    assert report(added, evolutions=(replace(EVOLUTION, added=("new",), refused="no"),)).off_script == ("new",)
    said = report(added)
    assert (said.off_script, said.verdict) == (("new",), "mismatches")


def test_x19_parts_of_a_subgraph_are_compared_one_by_one():
    said = report(replace(DONE, subgraph=("read", "count"), implemented=("read", "guess")))
    assert (said.off_script, said.gaps, said.verdict) == (("a: guess",), ("a: count",), "mismatches")


def test_x19_a_node_that_says_nothing_of_its_parts_is_taken_at_its_word():
    assert report(replace(DONE, subgraph=("read",))).verdict == "matches"
    assert report(replace(DONE, implemented=("read",))).verdict == "matches"


def test_d15_a_run_that_goes_on_has_no_verdict_and_no_gaps_yet():
    waiting = replace(FAILED, key="p", state=NodeState.PENDING, attempts=0, error=None)
    said = report(DONE, waiting, state=RunState.RUNNING)
    assert (said.gaps, said.verdict) == ((), "open")


@pytest.mark.parametrize("state", [NodeState.PENDING, NodeState.QUEUED, NodeState.RUNNING, NodeState.WAITING])
def test_a_node_left_unfinished_by_a_run_that_ended_is_a_gap(state):
    assert report(replace(DONE, state=state), state=RunState.CANCELLED).gaps == ("a",)


def test_x10_a_pre_done_node_counts_as_done_and_says_so():
    said = report(replace(DONE, pre_done=True, attempts=0))
    assert (said.verdict, said.nodes[0].status) == ("matches", "pre_done")
    assert "a status=pre-done output=a.output verify=not run" in str(said)


# --- the block


def test_d14_the_block_lists_each_wave_then_the_five_fields():
    text = str(report(DONE, FAILED, SKIPPED, state=RunState.FAILED, evolutions=(EVOLUTION,)))
    assert text.splitlines() == [
        "═" * 51,
        "IMPLEMENTED GRAPH: g",
        "═" * 51,
        "",
        "WAVE 1",
        "  a status=done output=a.output verify=not run",
        "  f status=failed output=none verify=not run attempts=2 — Boom: why",
        "",
        "WAVE 2",
        "  s status=skipped(condition) output=none verify=not run because of a",
        "",
        "FAILURES   : f",
        "EVOLUTIONS : { a, original: little, evolved: much }",
        "OFF-SCRIPT : none",
        "GAPS       : none",
        "VERDICT    : mismatches listed above",
        "═" * 51,
    ]


def test_d14_none_is_said_and_a_match_is_called_so():
    text = str(report(DONE))
    for name in ("FAILURES  ", "EVOLUTIONS", "OFF-SCRIPT", "GAPS      "):
        assert f"{name} : none" in text
    assert "VERDICT    : matches" in text


def test_d14_a_line_says_declared_output_verify_and_what_was_missing():
    node = replace(DONE, declared_output="s3://b/x", verify="pass", missing_inputs={"left": "condition"})
    assert "a status=done output=s3://b/x verify=pass proceeded without left" in str(report(node))


def test_d14_a_cancelled_node_is_named_so():
    node = replace(SKIPPED, state=NodeState.CANCELLED, cause=Cause.FAIL_FAST, roots=())
    assert "s status=cancelled" in str(report(node, state=RunState.FAILED))


def test_d14_a_refused_evolution_says_why():
    said = report(FAILED, state=RunState.FAILED, evolutions=(replace(EVOLUTION, refused="a cycle"),))
    assert "EVOLUTIONS : { a, original: little, evolved: much, refused: a cycle }" in str(said)


def test_d14_odd_keys_and_long_errors_keep_to_one_line():
    node = replace(FAILED, key="a\nb", error="x" * 500 + "\n")
    text = str(report(node, state=RunState.FAILED))
    line = next(line for line in text.splitlines() if line.startswith("  a"))
    assert line.startswith("  a\\nb status=failed")
    assert line.endswith("x" * 159 + "…")
    assert "FAILURES   : a\\nb" in text


def test_d14_a_long_list_is_cut_and_counted():
    nodes = [replace(FAILED, key=f"n{number}") for number in range(25)]
    assert "n19, … 5 more" in str(report(*nodes, state=RunState.FAILED))


def test_shown_leaves_printable_text_alone():
    assert shown("lire données 名前") == "lire données 名前"
    assert shown("a\x00\ud800") == "a\\x00\\ud800"
    assert shown("abcdef", limit=4) == "abc…"


# --- the document


def test_the_document_of_a_run_is_stable():
    document = report(DONE, FAILED, SKIPPED, state=RunState.FAILED, evolutions=(EVOLUTION,)).to_document()
    assert document == {
        "run_id": "r",
        "graph": "g",
        "status": "failed",
        "verdict": "mismatches",
        "waves": [["a", "f"], ["s"]],
        "nodes": {
            "a": {"status": "succeeded", "attempts": 1, "wave": 1, "output": 5, "task": "t"},
            "f": {"status": "failed", "attempts": 2, "wave": 1, "output": None, "task": "t", "error": "Boom: why"},
            "s": {
                "status": "skipped",
                "attempts": 0,
                "wave": 2,
                "output": None,
                "task": "t",
                "cause": "condition",
                "roots": ["a"],
            },
        },
        "failures": ["f"],
        "evolutions": [{"node": "a", "number": 1, "original_scope": "little", "evolved_scope": "much"}],
        "off_script": [],
        "gaps": [],
    }


def test_the_document_holds_what_else_is_known():
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    node = replace(
        DONE,
        wave=3,
        planned_wave=2,
        owner="me",
        summary="well",
        missing_inputs={"l": "condition"},
        verify="pass",
        started_at=at,
        finished_at=at,
    )
    document = node.to_document()
    assert document["planned_wave"] == 2
    assert document["missing_inputs"] == {"l": "condition"}
    assert (document["owner"], document["summary"], document["verify"]) == ("me", "well", "pass")
    assert document["started_at"] == document["finished_at"] == "2026-01-02T03:04:05+00:00"
    evolution = replace(
        EVOLUTION,
        asked_by="me",
        reason="why",
        added=("b",),
        added_edges=("a -> b",),
        removed_edges=("a -> c",),
        refused="no",
    ).to_document()
    assert evolution["asked_by"] == "me"
    assert (evolution["added"], evolution["added_edges"], evolution["removed_edges"]) == (["b"], ["a -> b"], ["a -> c"])
    assert (evolution["reason"], evolution["refused"]) == ("why", "no")
