"""Compiling what an evolved return asks for, on the worker that knows the tasks' signatures (X7).

The coordinator decides about it; here it is only checked for shape, tasks and parameters. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from graphrun.engine.compiling import is_reference, new_edges, node_issues
from graphrun.errors import FormatError, GraphrunError
from graphrun.execution.run import EvolutionRequest, NewNode
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, references
from graphrun.registry import Evolved, TaskRegistry
from graphrun.storage.records import Claim


def compile_evolution(evolved: Evolved, claim: Claim, registry: TaskRegistry) -> EvolutionRequest:
    """Return the request that the coordinator decides on; with ``refusal`` set when it could not be compiled."""
    try:
        return _compiled(evolved, claim, registry)
    except GraphrunError as error:
        return EvolutionRequest(
            rewritten=claim.spec, asked_by=claim.spec.owner or "local", reason=evolved.reason, refusal=str(error)
        )


def _compiled(evolved: Evolved, claim: Claim, registry: TaskRegistry) -> EvolutionRequest:
    rewritten = _rewritten(evolved, claim.spec, registry)
    document = {"name": "evolution", "nodes": list(evolved.add), "edges": _edge_documents(evolved.edges)}
    part = GraphSpec.from_document(document, source="the evolution")
    _refuse_faults(part.nodes, registry)
    edges = new_edges(part.nodes, part.edges, {rewritten.key: rewritten}, registry, claim.failure_policy)
    return EvolutionRequest(
        rewritten=rewritten,
        nodes=tuple(NewNode(spec=node) for node in part.nodes),
        edges=edges,
        removed=tuple((head, tail) for head, tail in evolved.remove_edges),
        asked_by=claim.spec.owner or "local",
        reason=evolved.reason,
    )


def _rewritten(evolved: Evolved, spec: NodeSpec, registry: TaskRegistry) -> NodeSpec:
    """Rewrite the node: the new scope and parameters replace the old ones, every other field is kept (D13)."""
    params = dict(spec.params)
    if evolved.params:
        given = _literal_params(evolved.params, spec, registry)
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
