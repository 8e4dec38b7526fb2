"""Splitting a graph into waves. Everything is iterative and near linear (X2).

Nodes are numbers in insertion order, edges pairs of them; keys, tasks and policies are not known here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Pairs = Sequence[tuple[int, int]]


def assign_waves(
    count: int, edges: Pairs, resources: Sequence[Sequence[str]] = (), *, floors: Sequence[int] | None = None
) -> list[int]:
    """Return the wave of each node, from 1: one more than the latest of its heads, and apart from shared resources.

    Args:
        count: the number of nodes.
        edges: (head, tail) pairs; repeated ones do no harm.
        resources: names a node; two nodes that share one never share a wave: the later in insertion order moves to the
            earliest wave without a conflict, and its dependents follow (X2).
        floors: the earliest wave each node may enter; 1 when None.

    Raises:
        ValueError: the edges hold a cycle.
    """
    tails: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for head, tail in edges:
        tails[head].append(tail)
        waiting[tail] += 1
    earliest = list(floors) if floors is not None else [1] * count
    places = _Places(resources)
    for node in range(count):
        if not waiting[node]:
            places.arrive(node, earliest[node])
    waves = [0] * count
    placed = 0
    while (ready := places.next_wave()) is not None:
        wave, nodes = ready
        placed += len(nodes)
        for node in nodes:
            waves[node] = wave
            for tail in tails[node]:
                earliest[tail] = max(earliest[tail], wave + 1)
                waiting[tail] -= 1
                if not waiting[tail]:
                    places.arrive(tail, earliest[tail])
    if placed < count:
        raise ValueError("the edges hold a cycle")
    return waves


class _Places:
    """Hands out nodes wave by wave; a node whose resource is taken is parked with that resource.

    Of the nodes parked with one resource only the first in insertion order can be next, so only that one is tried in
    the next wave: ten thousand nodes that share a resource cost no more than ten thousand that do not.
    """

    def __init__(self, resources: Sequence[Sequence[str]]) -> None:
        self._resources = resources
        self._arrivals: dict[int, list[int]] = {}
        self._waves: list[int] = []
        self._parked: dict[str, list[int]] = {}
        self._wave = 0

    def arrive(self, node: int, wave: int) -> None:
        if wave not in self._arrivals:
            self._arrivals[wave] = []
            heapq.heappush(self._waves, wave)
        self._arrivals[wave].append(node)

    def next_wave(self) -> tuple[int, list[int]] | None:
        """Return the next wave that has nodes, with its nodes in insertion order; None when nothing is left."""
        if self._parked:
            self._wave += 1
            if self._waves and self._waves[0] == self._wave:
                heapq.heappop(self._waves)
        elif self._waves:
            self._wave = heapq.heappop(self._waves)
        else:
            return None
        candidates = self._arrivals.pop(self._wave, [])
        if not self._resources:
            candidates.sort()
            return self._wave, candidates
        heapq.heapify(candidates)
        parked_with: dict[int, str] = {}
        for name in list(self._parked):
            self._unpark(name, candidates, parked_with)
        return self._wave, self._placed(candidates, parked_with)

    def _placed(self, candidates: list[int], parked_with: dict[int, str]) -> list[int]:
        taken: set[str] = set()
        nodes: list[int] = []
        while candidates:
            node = heapq.heappop(candidates)
            names = self._resources[node]
            blocking = next((name for name in names if name in taken), None)
            if blocking is None:
                taken.update(names)
                nodes.append(node)
                continue
            name = parked_with.get(node)
            if name is not None and name not in taken:
                # It is another resource that keeps this node back: the next one that waits for ``name`` may go first.
                self._unpark(name, candidates, parked_with)
            heapq.heappush(self._parked.setdefault(blocking, []), node)
        return nodes

    def _unpark(self, name: str, candidates: list[int], parked_with: dict[int, str]) -> None:
        queue = self._parked.get(name)
        if not queue:
            return
        node = heapq.heappop(queue)
        parked_with[node] = name
        heapq.heappush(candidates, node)
        if not queue:
            del self._parked[name]


def wave_sets(waves: Sequence[int]) -> list[list[int]]:
    """Return the nodes of each wave, wave 1 first, each in insertion order."""
    sets: list[list[int]] = [[] for _ in range(max(waves, default=0))]
    for node, wave in enumerate(waves):
        sets[wave - 1].append(node)
    return sets
