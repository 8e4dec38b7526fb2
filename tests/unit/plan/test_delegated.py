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
