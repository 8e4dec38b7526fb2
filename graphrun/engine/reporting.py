"""Reading a run's rows into its report: the implemented graph beside the delegated one. Reads only."""

from __future__ import annotations

import json

from graphrun.execution.report import Report, ReportEvolution, ReportNode
from graphrun.model.spec import NodeSpec
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import EvolutionRow, NodeRow


def make_report(ledger: Ledger, run_id: str, *, tenant_id: str) -> Report:
    """Return the report of a run as it stands now.

    Raises:
        RunNotFoundError: the tenant has no such run.
    """
    run = ledger.run(run_id, tenant_id=tenant_id)
    nodes = ledger.nodes(run.run_id, tenant_id=tenant_id)
    evolutions = ledger.evolutions(run.run_id, tenant_id=tenant_id)
    delegated = {node.key: node for node in ledger.spec(run.run_id, tenant_id=tenant_id).nodes}
    return Report(
        run_id=run.run_id,
        graph=run.graph,
        state=run.state,
        nodes=tuple(_node(ledger, node, delegated.get(node.key)) for node in nodes),
        evolutions=tuple(_evolution(item) for item in evolutions),
    )


def _node(ledger: Ledger, row: NodeRow, asked: NodeSpec | None) -> ReportNode:
    output = None if row.output is None else json.loads(ledger.load(row.output))
    return ReportNode(
        key=row.key,
        task=row.task,
        state=row.state,
        wave=row.wave,
        planned_wave=row.planned_wave,
        attempts=row.attempt,
        output=output,
        has_output=row.output is not None,
        pre_done=row.pre_done,
        owner=row.owner,
        declared_output=asked.output if asked else None,
        summary=row.summary,
        error=row.error,
        cause=row.cause,
        roots=row.roots,
        missing_inputs=row.missing_inputs,
        verify=row.verify_result or "not run",
        subgraph=asked.subgraph if asked else (),
        implemented=row.implemented,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def _evolution(row: EvolutionRow) -> ReportEvolution:
    return ReportEvolution(
        node=row.key,
        number=row.number,
        original_scope=_scope(row.original),
        evolved_scope=_scope(row.evolved),
        asked_by=row.asked_by,
        reason=row.reason,
        refused=row.refused,
        added=row.added,
        added_edges=tuple(f"{head} -> {tail}" for head, tail in row.added_edges),
        removed_edges=tuple(f"{head} -> {tail}" for head, tail in row.removed_edges),
    )


def _scope(spec: NodeSpec) -> str:
    """Return what a node was to do: its scope in words, else its task with its parameters."""
    if spec.scope is not None:
        return spec.scope
    params = ", ".join(f"{name}={json.dumps(value)}" for name, value in spec.params.items())
    return f"{spec.task}({params})"
