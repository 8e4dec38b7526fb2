"""D1, D18: the delegated graph as data and text, and the bound in which a run ends."""

from __future__ import annotations

from graphrun.model.spec import Backoff, EdgeSpec, GraphSpec, NodeSpec, Policy
from graphrun.plan.delegated import LINES, MEMBERS, bound, delegate


def _spec(*keys: str, edges: tuple[tuple[str, str], ...] = ()) -> GraphSpec:
    nodes = tuple(NodeSpec(key=key, task="t") for key in keys)
    return GraphSpec(name="g", nodes=nodes, edges=tuple(EdgeSpec(head=head, tail=tail) for head, tail in edges))


def test_d18_the_waves_stand_in_one_line():
    spec = _spec("A", "B", "C", edges=(("A", "C"), ("B", "C")))
    assert delegate(spec, [1, 1, 2]).line == "wave1[A∥B] → gate → wave2[C]"


def test_d18_a_wide_wave_and_many_waves_are_summarised():
    wide = _spec(*(f"n{number}" for number in range(MEMBERS + 2)), "end")
    waves = [*([1] * (MEMBERS + 2)), 2]
    assert delegate(wide, waves).line == "wave1[n0∥n1∥n2∥n3∥n4∥n5∥… 2 more] → gate → wave2[end]"
    deep = delegate(_spec(*(f"n{number}" for number in range(20))), list(range(1, 21))).line
    assert deep.startswith("wave1[n0] → gate → wave2[n1] → gate → ")
    assert deep.endswith("wave10[n9] → gate → … 9 more waves → gate → wave20[n19]")


def test_d18_twelve_waves_are_shown_whole():
    line = delegate(_spec(*(f"n{number}" for number in range(12))), list(range(1, 13))).line
    assert line.count("wave") == 12


def test_d1_nodes_edges_and_waves_are_declared():
    spec = GraphSpec.from_document(
        {
            "name": "report",
            "nodes": [
                {"key": "a", "task": "t", "owner": "crawler", "output": "a.csv"},
                {"key": "b", "task": "t", "params": {"rows": {"$node": "a"}}},
            ],
            "edges": [{"head": "a", "tail": "b", "when": "result > 0"}],
        }
    )
    assert str(delegate(spec, [1, 2], pre_done={"a"})) == (
        "DELEGATED GRAPH: report\n"
        "\n"
        "NODES:\n"
        "  a domain=crawler output=a.csv status=pre-done\n"
        "  b domain=local output=b.output status=pending\n"
        "\n"
        "EDGES:\n"
        "  a → b  (b reads a.output as rows, when result > 0)\n"
        "\n"
        "WAVES:\n"
        "  WAVE 1 : [a]\n"
        "  WAVE 2 : [b]"
    )


def test_d1_what_amends_an_edge_is_said_and_a_disabled_edge_is_not_part_of_the_plan():
    nodes = tuple(NodeSpec(key=key, task="t") for key in "ab")
    edges = (
        EdgeSpec(head="a", tail="b", required=True),
        EdgeSpec(head="a", tail="b", kind="data", parameter="x", required=False),
        EdgeSpec(head="a", tail="b", enabled=False, when="result"),
    )
    delegated = delegate(GraphSpec(name="g", nodes=nodes, edges=edges), [1, 2])
    text = str(delegated).splitlines()
    assert text[text.index("EDGES:") + 1 : text.index("WAVES:") - 1] == [
        "  a → b  (required)",
        "  a → b  (b reads a.output as x, optional)",
    ]
    assert delegated.to_document()["edges"] == [edge.to_document() for edge in edges]


def test_d1_the_data_of_a_node_is_whole():
    nodes = (NodeSpec(key="a", task="t", owner="crawler", output="a.csv"),)
    document = delegate(GraphSpec(name="g", nodes=nodes), [1], pre_done={"a"}).to_document()
    assert document == {
        "graph": "g",
        "nodes": [
            {"key": "a", "task": "t", "domain": "crawler", "output": "a.csv", "status": "pre-done", "wave": 1},
        ],
        "edges": [],
        "waves": [["a"]],
    }


def test_a_wide_graph_is_summarised_in_text_and_whole_in_data():
    spec = _spec(*(f"n{number}" for number in range(1000)))
    delegated = delegate(spec, [1] * 1000)
    assert delegated.line.endswith(f"… {1000 - MEMBERS} more]")
    assert f"… {1000 - LINES} more" in str(delegated)
    document = delegated.to_document()
    assert len(document["nodes"]) == len(document["waves"][0]) == 1000


def test_o28_odd_keys_stay_on_one_line():
    text = str(delegate(_spec("rule\nds: 552", "k" * 300), [1, 1]))
    assert "rule\\nds: 552" in text
    assert "k" * 300 not in text
    assert max(map(len, text.splitlines())) < 150


def test_o28_no_text_of_a_node_or_edge_begins_a_line_of_its_own():
    nodes = (NodeSpec(key="a", task="t", owner="me\nWAVES:"), NodeSpec(key="b", task="t", output="b\nEDGES:"))
    edges = (EdgeSpec(head="a", tail="b", kind="data", parameter="x\nNODES:", when="result\n> 1"),)
    text = str(delegate(GraphSpec(name="g\nNODES:", nodes=nodes, edges=edges), [1, 2])).splitlines()
    titles = [line for line in text if line.endswith(":") and not line.startswith("DELEGATED")]
    assert titles == ["NODES:", "EDGES:", "WAVES:"]


def test_the_empty_graph_says_so():
    assert delegate(_spec(), []).line == "no waves"
    assert "none" in str(delegate(_spec(), []))


def test_promise_1_the_bound_is_the_sum_of_the_slowest_nodes_at_their_worst():
    slow = Policy(timeout_seconds=10, max_attempts=2, max_deliveries=3, max_evolutions=0)
    fast = Policy(timeout_seconds=1, max_attempts=1, max_deliveries=1, max_evolutions=1)
    spec = GraphSpec(
        name="g",
        nodes=(
            NodeSpec(key="a", task="t", policy=slow),
            NodeSpec(key="b", task="t", policy=fast),
            NodeSpec(key="c", task="t", policy=fast),
        ),
    )
    assert bound(spec, [1, 1, 2], notice_seconds=1).seconds == 2 * 3 * (10 + 2) + 2 * 1 * (1 + 2)


def test_x6_x7_each_evolution_has_all_attempts_of_its_own():
    policy = Policy(timeout_seconds=10, max_attempts=3, max_deliveries=1, max_evolutions=2)
    spec = GraphSpec(name="g", nodes=(NodeSpec(key="a", task="t", policy=policy),))
    assert bound(spec, [1], notice_seconds=0).seconds == 3 * (2 + 1) * 10


def test_a_backoff_and_a_verification_count():
    policy = Policy(
        timeout_seconds=1,
        max_attempts=1,
        max_deliveries=1,
        max_evolutions=0,
        backoff=Backoff(initial_seconds=5, factor=1, jitter=0),
    )
    spec = GraphSpec(name="g", nodes=(NodeSpec(key="a", task="t", policy=policy, verify="v"),))
    assert bound(spec, [1], notice_seconds=0).seconds == 2 * 1 + 5


def test_x15_a_node_without_a_time_limit_makes_the_run_unbounded_and_is_named():
    spec = GraphSpec(name="g", nodes=(NodeSpec(key="a", task="t", policy=Policy(timeout_seconds=None)),))
    assert (bound(spec, [1], notice_seconds=0).seconds, bound(spec, [1], notice_seconds=0).unbounded) == (None, ("a",))
