"""Joining the edges that are declared with those that parameters imply.

An entry between two nodes amends the data edges that stand there, as ``Graph.connect`` does; one that names a parameter
amends that one, or binds the parameter if it has no value yet; ``kind: order`` asks for an edge of its own beside them.
What has been amended once is not amended again: another entry is another edge, with a condition of its own (X2).

This module must not judge whether ends exist or the graph may run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import ConfigDict

from graphrun.model.parts import STRICT, EdgeKind, EdgeSpec, NodeSpec, implied_edges


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeEntry:
    """An edge as a document declares it; without ``kind`` it is whatever stands between its ends."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    head: str
    tail: str
    kind: EdgeKind | None = None
    parameter: str | None = None
    when: str | None = None
    required: bool | None = None
    enabled: bool = True

    def edge(self, parameter: str | None) -> EdgeSpec:
        """Return the edge into a parameter, or the order edge when None."""
        return EdgeSpec(
            head=self.head,
            tail=self.tail,
            kind="order" if parameter is None else "data",
            parameter=parameter,
            when=self.when,
            required=self.required,
            enabled=self.enabled,
        )


class EdgeBinder:
    """Collects the edges of a document.

    Attributes:
        nodes: the nodes, with the parameters that entries bound.
        faults: what is wrong with the entries, each with its place.
    """

    def __init__(self, nodes: Iterable[NodeSpec]) -> None:
        self.nodes = list(nodes)
        self.faults: list[str] = []
        self._position: dict[str, int] = {}
        self._data: dict[tuple[str, str, str], list[EdgeSpec]] = {}
        self._untouched: set[tuple[str, str, str]] = set()
        self._parameters: dict[tuple[str, str], list[str]] = {}
        self._order: list[EdgeSpec] = []
        for index, node in enumerate(self.nodes):
            self._position.setdefault(node.key, index)
            for edge in implied_edges(node):
                place = (edge.head, edge.tail, edge.parameter or "")
                if place not in self._data:
                    self._start(place, edge)
                    self._untouched.add(place)

    def edges(self) -> tuple[EdgeSpec, ...]:
        """Return all edges: those of data in the order of the parameters, then the others as they were declared."""
        return (*(edge for edges in self._data.values() for edge in edges), *self._order)

    def declare(self, entry: EdgeEntry, place: str) -> None:
        """Take one entry; ``place`` is what to call it in a fault."""
        if entry.parameter is not None:
            if entry.kind == "order":
                self.faults.append(f"{place}: an edge of kind order has no parameter")
            else:
                self._declare_data(entry, entry.parameter, place)
            return
        names = self._parameters.get((entry.head, entry.tail), [])
        if entry.kind == "order" or (entry.kind is None and not names):
            self._order.append(entry.edge(None))
        elif names:
            for name in names:
                self._amend((entry.head, entry.tail, name), entry.edge(name))
        else:
            self.faults.append(f"{place}: an edge of kind data names the parameter that it gives")

    def _declare_data(self, entry: EdgeEntry, name: str, place: str) -> None:
        key = (entry.head, entry.tail, name)
        if key in self._data:
            self._amend(key, entry.edge(name))
            return
        if entry.tail in self._position:
            index = self._position[entry.tail]
            tail = self.nodes[index]
            if name in tail.params:
                self.faults.append(f"{place}: parameter {name!r} of node {entry.tail!r} has a value already")
                return
            self.nodes[index] = replace(tail, params={**tail.params, name: {"$node": entry.head}})
        self._start(key, entry.edge(name))

    def _amend(self, key: tuple[str, str, str], edge: EdgeSpec) -> None:
        if key in self._untouched:
            self._untouched.discard(key)
            self._data[key] = [edge]
        else:
            self._data[key].append(edge)

    def _start(self, key: tuple[str, str, str], edge: EdgeSpec) -> None:
        self._data[key] = [edge]
        self._parameters.setdefault(key[:2], []).append(key[2])
