"""The delegated graph: what is asked, declared before anything is sent (D1), as data and as text.

It lays out a spec and its waves; it checks nothing and knows no signature. The data is whole; the text, which people
read, shows at most ``LINES`` nodes and edges and ``MEMBERS`` members of a wave, and says how many it leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec
from graphrun.plan.waves import wave_sets

LINES = 60
MEMBERS = 6
_LINE_WAVES = 12
_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedGraph:
    """A spec with its waves; ``str()`` gives the DELEGATED GRAPH block, ``line`` the waves in one line (D18)."""

    spec: GraphSpec
    waves: tuple[int, ...]
    pre_done: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """The waves in one line: ``wave1[A∥B] → gate → wave2[C]``."""
        sets = wave_sets(self.waves)
        if not sets:
            return "no waves"
        parts = [f"wave{number}[{self._members(nodes)}]" for number, nodes in enumerate(sets, 1)]
        if len(parts) > _LINE_WAVES:
            parts = [*parts[: _LINE_WAVES - 2], f"… {len(parts) - _LINE_WAVES + 1} more waves", parts[-1]]
        return " → gate → ".join(parts)

    def to_document(self) -> dict[str, Any]:
        """Return the whole delegated graph as JSON."""
        return {
            "graph": self.spec.name,
            "nodes": [
                {
                    "key": node.key,
                    "task": node.task,
                    "domain": node.owner or "local",
                    "output": node.output,
                    "status": self._status(node),
                    "wave": wave,
                }
                for node, wave in zip(self.spec.nodes, self.waves, strict=True)
            ],
            "edges": [edge.to_document() for edge in self.spec.edges],
            "waves": [[self.spec.nodes[node].key for node in nodes] for nodes in wave_sets(self.waves)],
        }

    def __str__(self) -> str:
        nodes = [self._node_line(node) for node in self.spec.nodes]
        edges = [_edge_line(edge) for edge in self.spec.edges if edge.enabled]
        waves = [
            f"  WAVE {number} : [{self._members(members, ' ∥ ')}]"
            for number, members in enumerate(wave_sets(self.waves), 1)
        ]
        sections = (("NODES", nodes), ("EDGES", edges), ("WAVES", waves))
        lines = [f"DELEGATED GRAPH: {named(self.spec.name)}"]
        for title, items in sections:
            lines += ["", f"{title}:", *(_cut(items) or ["  none"])]
        return "\n".join(lines)

    def _node_line(self, node: NodeSpec) -> str:
        output = named(node.output) if node.output else f"{named(node.key)}.output"
        return f"  {named(node.key)} domain={named(node.owner or 'local')} output={output} status={self._status(node)}"

    def _status(self, node: NodeSpec) -> str:
        return "pre-done" if node.key in self.pre_done else "pending"

    def _members(self, nodes: Sequence[int], separator: str = "∥") -> str:
        names = [named(self.spec.nodes[node].key) for node in nodes[:MEMBERS]]
        rest = len(nodes) - MEMBERS
        return separator.join(names) + (f"{separator}… {rest} more" if rest > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Within how many seconds a run ends once workers serve it (promise 1), or the nodes that make it unbounded."""

    seconds: float | None
    unbounded: tuple[str, ...] = ()


def delegate(spec: GraphSpec, waves: Sequence[int], pre_done: Collection[str] = ()) -> DelegatedGraph:
    """Return the delegated graph of a spec.

    Args:
        spec: the graph.
        waves: the wave of each node, from 1.
        pre_done: keys of nodes whose output is there already (D4).
    """
    return DelegatedGraph(spec=spec, waves=tuple(waves), pre_done=frozenset(pre_done))


def bound(spec: GraphSpec, waves: Sequence[int], *, notice_seconds: float) -> Bound:
    """Return the time within which a run ends, counted from when its nodes find free slots.

    A wave lasts as long as its slowest node at its worst: every attempt that its policy allows, again after every
    evolution, each delivery up to the time limit and twice the time to notice that it was lost, and every backoff.
    A whole worker that goes away is not counted: its nodes come back when the broker delivers them again.
    """
    unbounded = tuple(node.key for node in spec.nodes if node.policy.timeout_seconds is None)
    if unbounded:
        return Bound(seconds=None, unbounded=unbounded)
    worst: dict[int, float] = {}
    for node, wave in zip(spec.nodes, waves, strict=True):
        worst[wave] = max(worst.get(wave, 0.0), _worst_seconds(node, notice_seconds))
    return Bound(seconds=sum(worst.values()))


def _worst_seconds(node: NodeSpec, notice_seconds: float) -> float:
    policy = node.policy
    once = (policy.timeout_seconds or 0.0) + 2 * notice_seconds
    kinds = 2 if node.verify is not None else 1
    attempts = policy.max_attempts * (policy.max_evolutions + 1)
    pause = 0.0 if policy.backoff is None else policy.backoff.seconds(policy.max_attempts, 1.0)
    return attempts * (kinds * policy.max_deliveries * once + pause)


def named(text: str) -> str:
    """Return a key or name on one line and at most forty characters, for people."""
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return line if len(line) <= _NAME else line[: _NAME - 1] + "…"


def _edge_line(edge: EdgeSpec) -> str:
    head, tail = named(edge.head), named(edge.tail)
    notes = []
    if edge.parameter is not None:
        notes.append(f"{tail} reads {head}.output as {named(edge.parameter)}")
    if edge.when is not None:
        notes.append(f"when {named(edge.when)}")
    if edge.required is not None:
        notes.append("required" if edge.required else "optional")
    return f"  {head} → {tail}" + (f"  ({', '.join(notes)})" if notes else "")


def _cut(lines: list[str]) -> list[str]:
    rest = len(lines) - LINES
    return lines if rest <= 0 else [*lines[:LINES], f"  … {rest} more"]
