"""A plan: how a graph would run, for people and as data. It writes and sends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphrun.engine.compiling import Compiled, compile_graph
from graphrun.model.spec import GraphSpec
from graphrun.model.validation import Report
from graphrun.plan.delegated import Bound, DelegatedGraph, bound, delegate
from graphrun.registry import TaskRegistry
from graphrun.settings import Settings

_HOURS_TOLD = 48
_HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The delegated graph, the warnings of its validation, and the bound in which a run ends (promise 1)."""

    compiled: Compiled
    delegated: DelegatedGraph
    bound: Bound

    @property
    def report(self) -> Report:
        """The validation report; errors would have refused the graph."""
        return self.compiled.report

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Node keys by wave, wave 1 first."""
        waves: list[list[str]] = [[] for _ in range(self.compiled.depth)]
        for node in self.compiled.nodes:
            waves[node.wave - 1].append(node.key)
        return tuple(tuple(wave) for wave in waves)

    def to_document(self) -> dict[str, Any]:
        """Return the plan as one JSON document."""
        return {
            "graph": self.compiled.spec.name,
            "content_hash": self.compiled.spec.content_hash,
            "waves": [list(wave) for wave in self.waves],
            "line": self.delegated.line,
            "delegated": self.delegated.to_document(),
            "warnings": [str(issue) for issue in self.report.warnings],
            "bound_seconds": self.bound.seconds,
            "unbounded": list(self.bound.unbounded),
        }

    def __str__(self) -> str:
        lines = [str(self.delegated), "", self.delegated.line, ""]
        lines += [f"warning: {issue}" for issue in self.report.warnings]
        lines += [f"unbounded: {key}" for key in self.bound.unbounded]
        if self.bound.seconds is not None:
            lines.append(f"ends within {_hours(self.bound.seconds)}, given a free slot for each node of a wave")
        return "\n".join(lines)


def make_plan(spec: GraphSpec, registry: TaskRegistry, settings: Settings) -> Plan:
    """Check a graph and lay out how it would run.

    Raises:
        ValidationFailedError: it may not run; the error carries every fault (X1).
    """
    compiled = compile_graph(spec, registry)
    return Plan(
        compiled=compiled,
        delegated=delegate(spec, compiled.waves),
        bound=bound(
            spec, compiled.waves, notice_seconds=settings.sweep_grace_seconds + settings.sweep_interval_seconds
        ),
    )


def _hours(seconds: float) -> str:
    """Return seconds as they are up to an hour, up to two days as hours, else as days."""
    if seconds <= _HOUR_SECONDS:
        return f"{seconds:g} s"
    hours = seconds / _HOUR_SECONDS
    return f"{hours:.1f} h" if hours <= _HOURS_TOLD else f"{hours / 24:.0f} days"
