"""Compiling what an evolved return asks for, on the worker that knows the tasks' signatures (X7).

The coordinator decides about it; here it is only checked for shape, tasks and parameters. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphrun.codec import from_plain
from graphrun.engine.compiling import new_edges, node_issues
from graphrun.errors import FormatError, GraphrunError, LedgerUnavailableError
from graphrun.execution.inputs import evaluate_condition, run_scope
from graphrun.execution.run import EvolutionRequest, NewEdge, NewNode
from graphrun.execution.state import NodeState
from graphrun.model.parameters import copied, is_reference
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, references
from graphrun.registry import Evolved, TaskRegistry
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Claim


def compile_evolution(evolved: Evolved, claim: Claim, registry: TaskRegistry, ledger: Ledger) -> EvolutionRequest:
    """Return the request that the coordinator decides on; with ``refusal`` set when it could not be compiled."""
    try:
        specs = ledger.node_specs(claim.run.run_id, tenant_id=claim.tenant_id)
        request = _compiled(evolved, claim, registry, {spec.key: spec for spec in specs.values()})
        return replace(request, edges=_joined(request.edges, claim, ledger, specs))
    except LedgerUnavailableError:
        raise
    except GraphrunError as error:
        return EvolutionRequest(
            rewritten=claim.spec, asked_by=claim.spec.owner or "local", reason=evolved.reason, refusal=str(error)
        )


def _compiled(
    evolved: Evolved, claim: Claim, registry: TaskRegistry, known: Mapping[str, NodeSpec]
) -> EvolutionRequest:
    rewritten = _rewritten(evolved, claim.spec, registry)
    document = {"name": "evolution", "nodes": list(evolved.add), "edges": _edge_documents(evolved.edges)}
    part = GraphSpec.from_document(document, source="the evolution")
    _refuse_faults(part.nodes, registry)
    edges = new_edges(part.nodes, part.edges, {**known, rewritten.key: rewritten}, registry, claim.failure_policy)
    return EvolutionRequest(
        rewritten=rewritten,
        nodes=tuple(NewNode(spec=node) for node in part.nodes),
        edges=edges,
        removed=tuple((head, tail) for head, tail in evolved.remove_edges),
        asked_by=claim.spec.owner or "local",
        reason=evolved.reason,
    )


def _joined(
    edges: tuple[NewEdge, ...], claim: Claim, ledger: Ledger, specs: Mapping[int, NodeSpec]
) -> tuple[NewEdge, ...]:
    """Fit new edges to the running graph: parameters that are free, conditions on heads that have ended (X3).

    Raises:
        FormatError: an edge gives a parameter that has a value already.
    """
    if not any(edge.when or edge.parameter for edge in edges):
        return edges
    run_id = claim.run.run_id
    rows = {row.key: row for row in ledger.nodes(run_id, tenant_id=claim.tenant_id)}
    bound: set[tuple[str, str]] = set()
    joined: list[NewEdge] = []
    for edge in edges:
        tail, head = rows.get(edge.tail), rows.get(edge.head)
        if edge.parameter is not None and tail is not None:
            place = (edge.tail, edge.parameter)
            if edge.parameter in specs[tail.node.node_id].params or place in bound:
                raise FormatError(f"parameter {edge.parameter!r} of node {edge.tail!r} has a value already")
            bound.add(place)
        if edge.when is not None and head is not None and head.state is NodeState.SUCCEEDED:
            text = "null" if head.output is None else ledger.load(head.output)
            truth = evaluate_condition(
                edge.when,
                result=from_plain(json.loads(text)),
                status=head.state.value,
                params=specs[head.node.node_id].params,
                run=run_scope(run_id),
            )
            joined.append(replace(edge, truth=truth))
        else:
            joined.append(edge)
    return tuple(joined)


def _rewritten(evolved: Evolved, spec: NodeSpec, registry: TaskRegistry) -> NodeSpec:
    """Rewrite the node: the new scope and parameters replace the old ones, every other field is kept (D13)."""
    params = dict(spec.params)
    if evolved.params:
        given, faults = copied(_literal_params(evolved.params, spec, registry), "params")
        if faults:
            raise FormatError("; ".join(faults))
        known = {head for _name, head, _path, _nested in references(spec.params)}
        strange = [head for _name, head, _path, _nested in references(given) if head not in known]
        if strange:
            raise FormatError(f"new parameters read {strange[0]!r}, which node {spec.key!r} has no edge from")
        params |= given
    return replace(
        spec,
        params=params,
        scope=evolved.scope if evolved.scope is not None else spec.scope,
        owner=evolved.owner if evolved.owner is not None else spec.owner,
    )


def _literal_params(given: Any, spec: NodeSpec, registry: TaskRegistry) -> dict[str, Any]:
    """Encode the parameters that an evolution sets, checked together with those that stay."""
    task = registry.get(spec.task)
    merged = {name: value for name, value in spec.params.items() if name not in given}
    encoded, faults = task.bind(dict(given), is_reference)
    serious = [fault for fault in faults if fault.parameter in given or fault.parameter not in merged]
    if serious:
        raise FormatError("; ".join(f"parameter {fault.parameter!r}: {fault.message}" for fault in serious))
    return encoded


def _edge_documents(edges: Iterable[Any]) -> list[dict[str, Any]]:
    return [edge.to_document() if isinstance(edge, EdgeSpec) else dict(edge) for edge in edges]


def _refuse_faults(nodes: Iterable[NodeSpec], registry: TaskRegistry) -> None:
    issues = [issue for node in nodes for issue in node_issues(node, registry)]
    if issues:
        raise FormatError("; ".join(str(issue) for issue in issues))
