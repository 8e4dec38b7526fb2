"""The implemented graph: what really ran, compared with what was asked, and the verdict (D14, D15, X19). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphrun.execution.state import FAILURE_CAUSES, TERMINAL_RUN, Cause, NodeState, RunState

_RULE = "═" * 51
_LIST_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNode:
    """One node as it ran. ``planned_wave`` is None for a node that an evolution added."""

    key: str
    task: str
    state: NodeState
    wave: int
    planned_wave: int | None
    attempts: int
    output: Any = None
    has_output: bool = False
    pre_done: bool = False
    owner: str | None = None
    declared_output: str | None = None
    summary: str | None = None
    error: str | None = None
    cause: Cause | None = None
    roots: tuple[str, ...] = ()
    missing_inputs: Mapping[str, str] = field(default_factory=dict)
    verify: str = "not run"
    subgraph: tuple[str, ...] = ()
    implemented: tuple[str, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def status(self) -> str:
        """The word that blocks, JSON and terminal use: a state, or ``pre_done``."""
        return "pre_done" if self.pre_done else self.state.value

    def to_document(self) -> dict[str, Any]:
        """Return the node's part of the report's JSON document."""
        document: dict[str, Any] = {
            "status": self.status,
            "attempts": self.attempts,
            "wave": self.wave,
            "output": self.output,
            "task": self.task,
        }
        optional = {
            "planned_wave": self.planned_wave if self.planned_wave != self.wave else None,
            "owner": self.owner,
            "summary": self.summary,
            "error": self.error,
            "cause": self.cause.value if self.cause else None,
            "roots": list(self.roots),
            "missing_inputs": dict(self.missing_inputs),
            "verify": self.verify if self.verify != "not run" else None,
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "finished_at": self.finished_at.isoformat() if self.finished_at else None,
        }
        return document | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEvolution:
    """One recorded evolution, or one that was refused."""

    node: str
    number: int
    original_scope: str
    evolved_scope: str
    asked_by: str | None = None
    reason: str | None = None
    refused: str | None = None
    added: tuple[str, ...] = ()
    added_edges: tuple[str, ...] = ()
    removed_edges: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the evolution as JSON."""
        document: dict[str, Any] = {
            "node": self.node,
            "number": self.number,
            "original_scope": self.original_scope,
            "evolved_scope": self.evolved_scope,
        }
        optional = {
            "asked_by": self.asked_by,
            "reason": self.reason,
            "refused": self.refused,
            "added": list(self.added),
            "added_edges": list(self.added_edges),
            "removed_edges": list(self.removed_edges),
        }
        return document | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The implemented graph beside the delegated one.

    ``off_script`` names what ran though nobody asked for it, ``gaps`` what was asked for and did not run. A recorded
    evolution and a skip by condition are listed and are no mismatch (X19).
    """

    run_id: str
    graph: str
    state: RunState
    nodes: tuple[ReportNode, ...]
    evolutions: tuple[ReportEvolution, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Keys of the nodes that failed for good."""
        return tuple(node.key for node in self.nodes if node.state is NodeState.FAILED)

    @property
    def off_script(self) -> tuple[str, ...]:
        """Nodes that no delegation and no evolution asked for, and ``node: part`` for parts no subgraph asked for."""
        added = {key for item in self.evolutions if item.refused is None for key in item.added}
        strangers = [node.key for node in self.nodes if node.planned_wave is None and node.key not in added]
        parts = [
            f"{node.key}: {part}"
            for node in self.nodes
            if node.subgraph
            for part in node.implemented
            if part not in node.subgraph
        ]
        return (*strangers, *parts)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Delegated nodes that did not run because of a failure or a cancel, and parts that a node left out."""
        missing = [node.key for node in self.nodes if _is_gap(node, self.state)]
        parts = [
            f"{node.key}: {part}"
            for node in self.nodes
            if node.implemented
            for part in node.subgraph
            if part not in node.implemented
        ]
        return (*missing, *parts)

    @property
    def verdict(self) -> str:
        """``matches``, ``mismatches``, or ``open`` while the run goes on; computed, never claimed (D15)."""
        if self.state not in TERMINAL_RUN:
            return "open"
        return "mismatches" if self.failures or self.off_script or self.gaps else "matches"

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Node keys by wave, wave 1 first."""
        last = max((node.wave for node in self.nodes), default=0)
        waves: list[list[str]] = [[] for _ in range(last)]
        for node in self.nodes:
            waves[node.wave - 1].append(node.key)
        return tuple(tuple(wave) for wave in waves)

    def to_document(self) -> dict[str, Any]:
        """Return the one stable JSON document of a run."""
        return {
            "run_id": self.run_id,
            "graph": self.graph,
            "status": self.state.value,
            "verdict": self.verdict,
            "waves": [list(wave) for wave in self.waves],
            "nodes": {node.key: node.to_document() for node in self.nodes},
            "failures": list(self.failures),
            "evolutions": [item.to_document() for item in self.evolutions],
            "off_script": list(self.off_script),
            "gaps": list(self.gaps),
        }

    def __str__(self) -> str:
        lines = [_RULE, f"IMPLEMENTED GRAPH: {self.graph}", _RULE, ""]
        for number in range(1, len(self.waves) + 1):
            lines.append(f"WAVE {number}")
            lines.extend(_node_line(node) for node in self.nodes if node.wave == number)
            lines.append("")
        evolved = [_evolution_text(item) for item in self.evolutions]
        verdict = "mismatches listed above" if self.verdict == "mismatches" else self.verdict
        lines += [
            f"FAILURES   : {_listed(self.failures)}",
            f"EVOLUTIONS : {_listed(evolved)}",
            f"OFF-SCRIPT : {_listed(self.off_script)}",
            f"GAPS       : {_listed(self.gaps)}",
            f"VERDICT    : {verdict}",
            _RULE,
        ]
        return "\n".join(lines)


def _is_gap(node: ReportNode, state: RunState) -> bool:
    if node.state is NodeState.CANCELLED or (node.state is NodeState.SKIPPED and node.cause in FAILURE_CAUSES):
        return True
    unfinished = node.state in (NodeState.PENDING, NodeState.QUEUED, NodeState.RUNNING, NodeState.WAITING)
    return unfinished and state in TERMINAL_RUN


def _word(node: ReportNode) -> str:
    match node.state:
        case NodeState.SUCCEEDED:
            return "pre-done" if node.pre_done else "done"
        case NodeState.SKIPPED | NodeState.CANCELLED if node.cause is not None:
            return f"{node.state.value}({node.cause.value})"
        case _:
            return node.state.value


def _node_line(node: ReportNode) -> str:
    output = node.declared_output or (f"{node.key}.output" if node.has_output else "none")
    parts = [f"{shown(node.key)} status={_word(node)} output={shown(output)} verify={node.verify}"]
    if node.attempts > 1:
        parts.append(f"attempts={node.attempts}")
    if node.roots:
        parts.append("because of " + ", ".join(shown(root) for root in node.roots))
    if node.missing_inputs:
        parts.append("proceeded without " + ", ".join(shown(key) for key in node.missing_inputs))
    if node.state is NodeState.FAILED and node.error:
        parts.append("— " + shown(node.error, limit=160))
    return "  " + " ".join(parts)


def _evolution_text(item: ReportEvolution) -> str:
    head = f"{{ {shown(item.node)}, original: {shown(item.original_scope)}, evolved: {shown(item.evolved_scope)}"
    if item.refused:
        head += f", refused: {shown(item.refused)}"
    return head + " }"


def _listed(items: Iterable[str]) -> str:
    texts = [shown(item, limit=300) for item in items]
    if not texts:
        return "none"
    rest = len(texts) - _LIST_LIMIT
    return ", ".join(texts[:_LIST_LIMIT]) + (f", … {rest} more" if rest > 0 else "")


def shown(text: str, *, limit: int = 80) -> str:
    """Return a text on one line, cut to ``limit`` characters, control characters escaped; for people, not for data."""
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"
