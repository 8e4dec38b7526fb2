"""X2: waves by longest path, resource conflicts split, near linear and without recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrun.plan.waves import assign_waves, wave_sets


def _naive(count: int, edges: list[tuple[int, int]], resources: list[list[str]], floors: list[int]) -> list[int]:
    """Fill waves one by one, in insertion order, looking at every node each time."""
    waves = [0] * count
    wave = 0
    while not all(waves):
        wave += 1
        taken: set[str] = set()
        for node in range(count):
            ready = all(0 < waves[head] < wave for head, tail in edges if tail == node)
            if not waves[node] and ready and floors[node] <= wave and not taken & set(resources[node]):
                waves[node] = wave
                taken |= set(resources[node])
    return waves


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[list[str]], list[int]]:
    count = draw(st.integers(0, 9))
    order = draw(st.permutations(range(count)))
    pairs = [(order[a], order[b]) for a in range(count) for b in range(a + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=14)) if pairs else []
    resources = [draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)) for _ in range(count)]
    floors = [draw(st.integers(1, 3)) for _ in range(count)]
    return count, edges, resources, floors


@settings(max_examples=120, deadline=None)
@given(_graphs())
def test_x2_waves_are_those_of_a_naive_filling(graph: tuple[int, list[tuple[int, int]], list[list[str]], list[int]]):
    count, edges, resources, floors = graph
    assert assign_waves(count, edges, resources, floors=floors) == _naive(count, edges, resources, floors)


def test_x2_a_diamond_has_three_waves():
    assert assign_waves(4, [(0, 1), (0, 2), (1, 3), (2, 3)]) == [1, 2, 2, 3]


def test_d5_nodes_of_one_resource_never_share_a_wave_and_the_later_one_moves():
    assert assign_waves(4, [(1, 3)], [["disk"], ["disk"], [], []]) == [1, 2, 1, 3]


class _Counted(Sequence[Sequence[str]]):
    """Resources that count how often a node was tried."""

    def __init__(self, resources: list[list[str]]) -> None:
        self.resources = resources
        self.tries = 0

    def __len__(self) -> int:
        return len(self.resources)

    def __getitem__(self, node: Any) -> Any:
        self.tries += 1
        return self.resources[node]


@pytest.mark.parametrize(
    ("names", "last"),
    [
        (lambda _node: ["disk"], 20_000),
        (lambda node: ["disk", f"own-{node}"], 20_000),
        (lambda node: [f"pair-{node // 2}", "disk"], 20_000),
        (lambda node: [f"shard-{node % 100}"], 200),
    ],
    ids=["one", "one and an own", "a pair and one", "a hundred"],
)
def test_x2_twenty_thousand_nodes_that_share_resources_are_planned_in_a_few_tries_each(
    names: Callable[[int], list[str]], last: int
):
    resources = _Counted([names(node) for node in range(20_000)])
    waves = assign_waves(20_000, [], resources)
    assert max(waves) == last
    assert resources.tries <= 3 * 20_000


def test_x2_the_later_node_in_insertion_order_moves_and_its_dependents_follow():
    assert assign_waves(3, [(1, 2)], [["gpu"], ["gpu"], []]) == [1, 2, 3]


def test_x2_a_node_that_needs_two_resources_holds_back_nobody_while_it_waits():
    assert assign_waves(3, [], [["a"], ["a", "b"], ["b"]]) == [1, 2, 1]


def test_x2_a_node_that_another_resource_keeps_back_lets_the_next_one_go_first():
    resources = [["b"], ["a"], ["a", "b"], ["a"]]
    assert assign_waves(4, [], resources, floors=[2, 1, 1, 1]) == [2, 1, 3, 2]


def test_x2_floors_leave_waves_empty_where_nobody_may_enter():
    assert assign_waves(3, [(0, 1)], floors=[3, 1, 1]) == [3, 4, 1]


def test_x2_repeated_edges_do_no_harm_and_no_graph_has_no_waves():
    assert assign_waves(2, [(0, 1)] * 5) == [1, 2]
    assert assign_waves(0, []) == []
    assert wave_sets([]) == []


def test_o27_a_chain_of_ten_thousand_and_a_ladder_of_forty_layers_are_planned():
    assert assign_waves(10_000, [(n, n + 1) for n in range(9_999)])[-1] == 10_000
    ladder = [(2 * layer + a, 2 * layer + 2 + b) for layer in range(40) for a in (0, 1) for b in (0, 1)]
    assert max(assign_waves(82, ladder)) == 41


@pytest.mark.parametrize("resources", [(), [["disk"]] * 3], ids=["free", "shared"])
def test_a_cycle_cannot_be_planned(resources: list[list[str]]):
    with pytest.raises(ValueError, match="cycle"):
        assign_waves(3, [(0, 1), (1, 2), (2, 1)], resources)


def test_wave_sets_keep_insertion_order():
    assert wave_sets([2, 1, 2, 1]) == [[1, 3], [0, 2]]
