"""Traversal: orders, cycles and paths over an adjacency, for any kind of vertex.

This module answers for the algorithms. It must not know nodes, edges or locks, nor recurse: a chain of 10,000 vertices
is ordinary. Every function is linear in vertices and edges, and changes nothing.

An adjacency maps every vertex to its edges, and each of them to the vertex at its other end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import TypeAlias, TypeVar

V = TypeVar("V", bound=Hashable)
L = TypeVar("L", bound=Hashable)

Adjacency: TypeAlias = Mapping[V, Mapping[L, V]]


def topological_order(outgoing: Adjacency[V, L]) -> list[V]:
    """Return the vertices in Kahn's order, ties in insertion order (G24); those on or behind a cycle are left out."""
    waiting = dict.fromkeys(outgoing, 0)
    for links in outgoing.values():
        for tail in links.values():
            waiting[tail] += 1
    order = [vertex for vertex, count in waiting.items() if not count]
    for vertex in order:  # it grows while it is read
        for tail in outgoing[vertex].values():
            waiting[tail] -= 1
            if not waiting[tail]:
                order.append(tail)
    return order


def find_cycle(outgoing: Adjacency[V, L]) -> list[V] | None:
    """Return the vertices of one cycle in the order of its edges, each once; None when there is none (G23)."""
    entered: set[V] = set()
    for start in outgoing:
        if start in entered:
            continue
        entered.add(start)
        path: dict[V, None] = {start: None}
        branches = [iter(outgoing[start].values())]  # of each vertex on the path, the tails not tried yet
        while branches:
            for tail in branches[-1]:
                if tail in path:
                    on_path = list(path)
                    return on_path[on_path.index(tail) :]
                if tail not in entered:
                    entered.add(tail)
                    path[tail] = None
                    branches.append(iter(outgoing[tail].values()))
                    break
            else:
                path.popitem()
                branches.pop()
    return None


def shortest_path(outgoing: Adjacency[V, L], start: V, end: V) -> list[L] | None:
    """Return the edges of a path with the fewest of them, ``[]`` for equal ends; None when there is none (G25)."""
    reached: dict[V, tuple[V, L] | None] = {start: None}
    queue = deque([start])
    while queue and end not in reached:
        vertex = queue.popleft()
        for link, tail in outgoing[vertex].items():
            if tail not in reached:
                reached[tail] = (vertex, link)
                queue.append(tail)
    return path_to(reached, end) if end in reached else None


def path_to(reached: Mapping[V, tuple[V, L] | None], end: V) -> list[L]:
    """Return the edges that led to ``end``, given by which vertex and edge each vertex was reached first."""
    path: list[L] = []
    step = reached[end]
    while step is not None:
        vertex, link = step
        path.append(link)
        step = reached[vertex]
    path.reverse()
    return path
