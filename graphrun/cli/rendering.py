"""What a plan, a run and a report look like to a person: tables and lines, cut to what can be read.

It must not fetch anything; whole values are what ``--json`` is for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from graphrun.cli.console import duration, local_time, table
from graphrun.cli.progress import RUN_STYLES, node_seconds, state_text
from graphrun.execution.report import Report, ReportNode, shown
from graphrun.execution.state import NodeState
from graphrun.plan.delegated import MEMBERS, named
from graphrun.storage.records import AttemptRow, NodeRow, RunRow

_WHOLE_REPORT_UP_TO = 60
_KEYS_SHOWN = MEMBERS
_WAVES_SHOWN = 12
_ERROR_CHARACTERS = 300
_OUTPUTS_SHOWN = 10
_VALUE_CHARACTERS = 100
_NOT_RUN = frozenset({NodeState.PENDING, NodeState.QUEUED, NodeState.SKIPPED, NodeState.CANCELLED})


def wave_line(
    waves: Sequence[Sequence[str]],
    *,
    notes: Mapping[str, str] | None = None,
    width: int | None = None,
    indent: int = 0,
) -> str:
    """Return waves as the plan writes them; of wide waves and long runs the beginning.

    Args:
        waves: node keys by wave.
        notes: what stands in brackets behind a key.
        width: where to begin a new line, between two waves; None keeps them in one.
        indent: of the lines after the first.
    """
    parts = [f"wave{number}[{_keys(keys, notes)}]" for number, keys in enumerate(waves, start=1)]
    if len(parts) > _WAVES_SHOWN:
        hidden = len(parts) - _WAVES_SHOWN + 1
        parts = [*parts[: _WAVES_SHOWN - 2], f"… {hidden} more waves", parts[-1]]
    lines, used = "", indent
    for number, part in enumerate(parts):
        piece = f" → gate → {part}" if number else part
        if width is not None and number and used + len(piece) > width:
            lines += "\n" + " " * (indent - 1)
            used = indent - 1
        lines += piece
        used += len(piece)
    return lines or "nothing"


def beside(planned: Sequence[Sequence[str]], report: Report, *, width: int | None = None) -> str:
    """Return the plan beside what was implemented, one above the other; what did not run says so."""
    not_run = {node.key: node.status for node in report.nodes if node.state in _NOT_RUN}
    texts = {"PLANNED     : ": (planned, None), "IMPLEMENTED : ": (report.waves, not_run)}
    return "\n".join(
        name + wave_line(waves, notes=notes, width=width, indent=len(name)) for name, (waves, notes) in texts.items()
    )


def beside_table(report: Report) -> Table:
    """Return a row a node: when it was planned, when it ran, and what became of it."""
    made = table("node", "planned", "ran", "attempts", "what became of it", right=("attempts",))
    evolved = {item.node: item for item in report.evolutions}
    added = {key: item.node for item in report.evolutions for key in item.added}
    for node in sorted(report.nodes, key=lambda one: one.wave):
        fate = "failed once, then done" if node.attempts > 1 and node.state is NodeState.SUCCEEDED else node.status
        if node.key in evolved:
            fate = f"evolved: {shown(evolved[node.key].evolved_scope)}"
        elif node.key in added:
            fate = f"added by the evolution of {named(added[node.key])}"
        planned = "-" if node.planned_wave is None else f"wave {node.planned_wave}"
        made.add_row(named(node.key), planned, f"wave {node.wave}", str(node.attempts), fate)
    return made


def planned_waves(nodes: Iterable[NodeRow]) -> list[list[str]]:
    """Return node keys by the wave they were planned in; nodes that an evolution added are in none."""
    waves: dict[int, list[str]] = {}
    for node in nodes:
        if node.planned_wave is not None:
            waves.setdefault(node.planned_wave, []).append(node.key)
    return [waves.get(number, []) for number in range(1, max(waves, default=0) + 1)]


def report_text(report: Report) -> str:
    """Return the implemented graph; of a big one only the nodes that are not simply done, and the summary."""
    whole = str(report)
    if len(report.nodes) <= _WHOLE_REPORT_UP_TO:
        return whole
    lines = whole.splitlines()
    tail = next(index for index, text in enumerate(lines) if text.startswith("FAILURES"))
    notable = [node for node in report.nodes if not _plain(node)]
    waves = Counter(node.wave for node in report.nodes)
    done = sum(node.state is NodeState.SUCCEEDED for node in report.nodes)
    counts = [f"{len(report.nodes)} nodes in {len(waves)} waves, {done} done; see the others below"]
    if not notable:
        counts = [f"{len(report.nodes)} nodes in {len(waves)} waves, each done at the first attempt"]
    listed = [f"  wave {node.wave}: {shown(node.key)} {_what(node)}" for node in notable[:_WHOLE_REPORT_UP_TO]]
    if len(notable) > _WHOLE_REPORT_UP_TO:
        listed.append(f"  … {len(notable) - _WHOLE_REPORT_UP_TO} more")
    return "\n".join([*lines[:3], "", *counts, *listed, "graphrun report lists every node", "", *lines[tail:]])


def outputs_text(report: Report) -> str:
    """Return what the nodes of the last wave gave, which is mostly what a person wants; whole values are JSON's."""
    last = max((node.wave for node in report.nodes), default=0)
    given = [node for node in report.nodes if node.wave == last and node.output is not None]
    lines = [f"OUTPUT of {named(node.key)}: {_value(node.output)}" for node in given[:_OUTPUTS_SHOWN]]
    rest = len(given) - len(lines)
    return "\n".join([*lines, *([f"… {rest} more"] if rest else [])])


def _value(output: Any) -> str:
    """Return the beginning of an output as JSON; a long list is not written out whole to be cut."""
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(output):
        text += piece[:_VALUE_CHARACTERS]
        if len(text) >= _VALUE_CHARACTERS:
            return shown(text + " ", limit=_VALUE_CHARACTERS)
    return shown(text, limit=_VALUE_CHARACTERS)


def run_table(rows: Iterable[RunRow]) -> Table:
    """Return one row a run."""
    made = table("run", "graph", "status", "wave", "submitted", "took", right=("wave", "took"))
    for row in rows:
        made.add_row(
            row.run_id[:8],
            shown(row.graph, limit=30),
            Text(row.state.value, style=RUN_STYLES.get(row.state, "yellow")),
            f"{row.run.wave}/{row.run.waves}",
            local_time(row.created_at),
            duration(_took(row)),
        )
    return made


def run_document(row: RunRow) -> dict[str, Any]:
    """Return a run's row as JSON."""
    return {
        "run_id": row.run_id,
        "graph": row.graph,
        "status": row.state.value,
        "wave": row.run.wave,
        "waves": row.run.waves,
        "revision": row.run.revision,
        "failure_policy": row.run.failure_policy,
        "content_hash": row.content_hash,
        "idempotency_key": row.idempotency_key,
        "tenant_id": row.tenant_id,
        "created_at": _iso(row.created_at),
        "started_at": _iso(row.started_at),
        "finished_at": _iso(row.finished_at),
    }


def run_lines(row: RunRow) -> list[str]:
    """Return what ``show`` says of the run itself."""
    lines = [
        f"run        {row.run_id}",
        f"graph      {shown(row.graph)}",
        f"status     {row.state.value}",
        f"wave       {row.run.wave} of {row.run.waves}",
        f"policy     {row.run.failure_policy}",
        f"submitted  {local_time(row.created_at)}",
    ]
    if row.started_at is not None:
        lines.append(f"started    {local_time(row.started_at)}")
    if row.finished_at is not None:
        lines.append(f"finished   {local_time(row.finished_at)}, after {duration(_took(row))}")
    if row.idempotency_key is not None:
        lines.append(f"idempotency key  {shown(row.idempotency_key)}")
    return lines


def node_table(nodes: Sequence[NodeRow], attempts: Sequence[AttemptRow]) -> Table:
    """Return one row a node, by wave: state and cause, attempts, time, worker, error."""
    now = datetime.now(UTC)
    workers = {one.key: one.worker for one in attempts if one.worker}
    made = table("wave", "node", "state", "attempt", "time", "worker", "why", right=("wave", "attempt", "time"))
    for node in sorted(nodes, key=lambda row: row.node.wave):
        made.add_row(
            str(node.node.wave),
            shown(node.key, limit=60),
            state_text(node),
            str(node.node.attempt or ""),
            duration(node_seconds(node, now)),
            _worker(node.worker or workers.get(node.key)),
            _why(node),
        )
    return made


def node_document(node: NodeRow, attempts: Sequence[AttemptRow]) -> dict[str, Any]:
    """Return a node's row as JSON, with the end of each of its attempts."""
    return {
        "key": node.key,
        "task": node.task,
        "status": "pre_done" if node.node.pre_done else node.state.value,
        "wave": node.node.wave,
        "planned_wave": node.planned_wave,
        "attempt": node.node.attempt,
        "awaiting": node.node.awaiting.value if node.node.awaiting else None,
        "cause": node.node.cause.value if node.node.cause else None,
        "roots": list(node.node.roots),
        "error": node.node.error,
        "worker": node.worker,
        "seconds": node_seconds(node),
        "started_at": _iso(node.started_at),
        "finished_at": _iso(node.finished_at),
        "attempts": [attempt_document(one) for one in attempts],
    }


def attempt_document(attempt: AttemptRow) -> dict[str, Any]:
    """Return the end of an attempt as JSON."""
    return {
        "attempt": attempt.attempt,
        "kind": attempt.kind.value,
        "status": attempt.status,
        "delivery": attempt.delivery,
        "worker": attempt.worker,
        "claimed_at": _iso(attempt.claimed_at),
        "settled_at": _iso(attempt.settled_at),
        "error_type": attempt.error_type,
        "error": attempt.error,
    }


def _why(node: NodeRow) -> str:
    parts = []
    if node.node.roots:
        parts.append("because of " + _keys(node.node.roots))
    if node.missing_inputs:
        parts.append("without " + _keys(tuple(node.missing_inputs)))
    if node.node.error:
        parts.append(shown(node.node.error.strip(), limit=_ERROR_CHARACTERS))
    return "; ".join(parts)


def _plain(node: ReportNode) -> bool:
    alike = node.planned_wave == node.wave and not node.missing_inputs and not node.pre_done
    return alike and node.state is NodeState.SUCCEEDED and node.attempts == 1


def _what(node: ReportNode) -> str:
    parts = [node.status]
    if node.cause is not None:
        parts[0] += f"({node.cause.value})"
    if node.attempts > 1:
        parts.append(f"attempts={node.attempts}")
    if node.planned_wave is None:
        parts.append("added by an evolution")
    elif node.planned_wave != node.wave:
        parts.append(f"planned for wave {node.planned_wave}")
    if node.roots:
        parts.append("because of " + _keys(node.roots))
    if node.missing_inputs:
        parts.append("proceeded without " + _keys(tuple(node.missing_inputs)))
    if node.error and node.state is NodeState.FAILED:
        parts.append("— " + shown(node.error, limit=160))
    return " ".join(parts)


def _keys(keys: Sequence[str], notes: Mapping[str, str] | None = None) -> str:
    notes = notes or {}
    texts = [named(key) + (f" ({notes[key]})" if key in notes else "") for key in keys[:_KEYS_SHOWN]]
    rest = len(keys) - len(texts)
    return "∥".join(texts) + (f"∥… {rest} more" if rest else "")


def _worker(worker: str | None) -> str:
    """Return a worker's host and the first characters of its id."""
    if not worker:
        return ""
    host, _, number = worker.partition(":")
    return f"{shown(host, limit=20)}:{number[:6]}" if number else shown(host, limit=20)


def _took(row: RunRow) -> float | None:
    begun = row.started_at or row.created_at
    return None if row.finished_at is None else (row.finished_at - begun).total_seconds()


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
