"""Whether a node may start: each inbound edge resolves once (X3), then the node decides (X4). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrun.errors import ExpressionError
from graphrun.execution.event import EdgeResolved
from graphrun.execution.run import EdgeRun, NodeRun, Resolution, Run, Truth
from graphrun.execution.state import FAILURE_CAUSES, Cause, NodeState
from graphrun.model.expression import compile_expression
from graphrun.model.spec import Join


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a node when all its inbound edges were resolved."""

    start: bool
    edges: tuple[EdgeResolved, ...] = ()
    cause: Cause | None = None
    roots: tuple[str, ...] = ()


def evaluate_condition(
    when: str, *, result: object, status: str, params: Mapping[str, Any], run: Mapping[str, Any]
) -> Truth:
    """Return what a condition comes to; one that raises comes to ``error`` (X3)."""
    try:
        value = compile_expression(when).evaluate({"result": result, "status": status, "params": params, "run": run})
    except ExpressionError:
        return Truth.ERROR
    return Truth.TRUE if value else Truth.FALSE


def reads_status(when: str) -> bool:
    """Say whether a condition is evaluated on every final state of its head, or on success only (X3)."""
    return "status" in compile_expression(when).names


def run_scope(run_id: str) -> dict[str, str]:
    """Return what a condition sees as ``run``."""
    return {"run_id": run_id}


def decide_node(
    inbound: Sequence[EdgeRun],
    nodes: Mapping[int, NodeRun],
    *,
    join: Join,
    run: Run,
    params: Mapping[int, Mapping[str, Any]],
) -> Verdict:
    """Resolve every inbound edge of a node and say whether it starts (X3, X4).

    Args:
        inbound: the enabled edges into the node, in declared order.
        nodes: the heads of those edges, all in a final state.
        join: ``any`` or ``all``.
        run: the run, for conditions.
        params: declared parameters of heads whose condition reads them on a state other than success.
    """
    resolved = tuple(_resolve(edge, nodes, run, params) for edge in inbound)
    if not resolved:
        return Verdict(start=True)
    kinds = [item.resolution for item in resolved]
    if Resolution.BLOCKED in kinds:
        return _skip(resolved, [item for item in resolved if item.resolution is Resolution.BLOCKED])
    if Resolution.SUPPRESSED in kinds and (join == "all" or all(kind is Resolution.SUPPRESSED for kind in kinds)):
        return _skip(resolved, resolved)
    if unbound := _unbound(inbound, resolved):
        return _skip(resolved, unbound)
    return Verdict(start=True, edges=resolved)


def _unbound(inbound: Sequence[EdgeRun], resolved: Sequence[EdgeResolved]) -> list[EdgeResolved]:
    """Return what leaves a parameter without a value it cannot do without, under any join (X4).

    Of several edges from one head to one parameter, with conditions of their own, one that delivered is enough.
    """
    pairs = list(zip(inbound, resolved, strict=True))
    given = {(edge.head, edge.parameter) for edge, item in pairs if item.resolution is Resolution.DELIVERED}
    return [
        item
        for edge, item in pairs
        if item.resolution in (Resolution.SUPPRESSED, Resolution.MISSING)
        and not edge.droppable
        and (edge.head, edge.parameter) not in given
    ]


def _skip(resolved: tuple[EdgeResolved, ...], because: Sequence[EdgeResolved]) -> Verdict:
    """Skip with the first cause that is not ``condition``, and the roots of all edges of that cause (X4)."""
    causes = [item.cause for item in because if item.cause is not None]
    cause = next((item for item in causes if item is not Cause.CONDITION), Cause.CONDITION)
    roots = dict.fromkeys(root for item in because if item.cause is cause for root in item.roots)
    return Verdict(start=False, edges=resolved, cause=cause, roots=tuple(roots))


def _resolve(
    edge: EdgeRun, nodes: Mapping[int, NodeRun], run: Run, params: Mapping[int, Mapping[str, Any]]
) -> EdgeResolved:
    head = nodes[edge.head]
    truth = _truth(edge, head, run, params.get(edge.head, {}))
    if truth is Truth.ERROR:
        name = f"{head.key} -> {nodes[edge.tail].key}" if edge.tail in nodes else f"edge from {head.key}"
        return _resolved(edge, Resolution.BLOCKED, Cause.CONDITION_ERROR, (name,))
    if truth is Truth.TRUE:
        return EdgeResolved(edge_id=edge.edge_id, resolution=Resolution.DELIVERED)
    if truth is Truth.FALSE:
        cause, roots = (head.cause, head.roots) if head.cause else (Cause.CONDITION, (head.key,))
        return _resolved(edge, Resolution.SUPPRESSED, cause, roots)
    return _resolve_unconditioned(edge, head)


def _truth(edge: EdgeRun, head: NodeRun, run: Run, params: Mapping[str, Any]) -> Truth | None:
    """Return the truth of an edge's condition, or None where its head's state alone decides."""
    if edge.when is None:
        return Truth.TRUE if head.state is NodeState.SUCCEEDED else None
    if head.state is NodeState.SUCCEEDED:
        return edge.truth if edge.truth is not None else Truth.ERROR
    if not reads_status(edge.when):
        return None
    return evaluate_condition(edge.when, result=None, status=head.state.value, params=params, run=run_scope(run.run_id))


def _resolve_unconditioned(edge: EdgeRun, head: NodeRun) -> EdgeResolved:
    if head.state is NodeState.FAILED:
        return _failed_head(edge, Cause.UPSTREAM_FAILED, (head.key,))
    if head.state is NodeState.SKIPPED and head.cause in FAILURE_CAUSES:
        return _failed_head(edge, head.cause, head.roots)
    return _resolved(edge, Resolution.SUPPRESSED, head.cause or Cause.CONDITION, head.roots or (head.key,))


def _failed_head(edge: EdgeRun, cause: Cause, roots: tuple[str, ...]) -> EdgeResolved:
    return _resolved(edge, Resolution.BLOCKED if edge.required else Resolution.MISSING, cause, roots)


def _resolved(edge: EdgeRun, resolution: Resolution, cause: Cause, roots: tuple[str, ...]) -> EdgeResolved:
    return EdgeResolved(edge_id=edge.edge_id, resolution=resolution, cause=cause, roots=roots)
