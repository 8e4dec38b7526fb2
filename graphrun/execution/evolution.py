"""Evolving a running graph: what a node asked for, checked and compiled into one event, or refused (X7). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphrun.errors import ExpressionError
from graphrun.execution.event import NodeEvolved
from graphrun.execution.run import EdgeRun, EvolutionRequest, NewEdge, NewNode, NodeRun, Structure, planned_node
from graphrun.execution.state import NodeState
from graphrun.model.expression import compile_expression
from graphrun.model.spec import key_fault
from graphrun.model.traversal import find_cycle
from graphrun.plan.waves import assign_waves


@dataclass(frozen=True, slots=True)
class Refused:
    """An evolution that would break a rule; the node fails for good and says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Evolution:
    """An accepted evolution: the event to record, the specs of the added nodes, and the graph after it."""

    event: NodeEvolved
    added: tuple[tuple[int, NewNode], ...]
    after: Structure


def evolve(node: NodeRun, request: EvolutionRequest, structure: Structure, *, wave: int) -> Evolution | Refused:
    """Check an evolution against the running graph and compile it.

    Args:
        node: the node that asked; it stands in the open wave and runs again there.
        request: what it asked for.
        structure: every node and enabled edge of the run.
        wave: the open wave; added and moved nodes enter later ones.
    """
    if request.refusal:
        return Refused(request.refusal)
    if node.evolution >= node.policy.max_evolutions:
        return Refused(f"more than {node.policy.max_evolutions} evolutions of node {node.key!r}")
    by_key = {item.key: item for item in structure.nodes.values()}
    added = _added_nodes(request, by_key, first=max(structure.nodes, default=-1) + 1)
    if isinstance(added, Refused):
        return added
    everyone = by_key | {item.key: item for item in added}
    removed = _removed_edges(request, by_key, structure)
    if isinstance(removed, Refused):
        return removed
    edges = _added_edges(request, everyone, structure, removed)
    if isinstance(edges, Refused):
        return edges
    return _compiled(node, request, structure, added, edges, removed, wave)


def _added_nodes(request: EvolutionRequest, by_key: Mapping[str, NodeRun], first: int) -> list[NodeRun] | Refused:
    nodes: list[NodeRun] = []
    seen: set[str] = set()
    for number, new in enumerate(request.nodes):
        spec = new.spec
        if fault := key_fault(spec.key):
            return Refused(fault)
        if spec.key in by_key or spec.key in seen:
            return Refused(f"node {spec.key!r} is in the graph already")
        seen.add(spec.key)
        nodes.append(planned_node(first + number, spec, wave=0))
    return nodes


def _removed_edges(
    request: EvolutionRequest, by_key: Mapping[str, NodeRun], structure: Structure
) -> tuple[int, ...] | Refused:
    removed: list[int] = []
    for head, tail in request.removed:
        matches = [
            edge.edge_id
            for edge in structure.edges.values()
            if head in by_key
            and tail in by_key
            and edge.head == by_key[head].node_id
            and edge.tail == by_key[tail].node_id
        ]
        if not matches:
            return Refused(f"edge {head} -> {tail} is not in the graph")
        if by_key[tail].state is not NodeState.PENDING:
            return Refused(f"edge {head} -> {tail} cannot be removed: {tail!r} has started")
        removed.extend(matches)
    return tuple(removed)


def _added_edges(
    request: EvolutionRequest, everyone: Mapping[str, NodeRun], structure: Structure, removed: tuple[int, ...]
) -> list[EdgeRun] | Refused:
    edges: list[EdgeRun] = []
    gone = set(removed)
    there = {_identity(edge) for edge_id, edge in structure.edges.items() if edge_id not in gone}
    first = max(structure.edges, default=-1) + 1
    for new in request.edges:
        for key in (new.head, new.tail):
            if key not in everyone:
                return Refused(f"edge {new.head} -> {new.tail} names {key!r}, which is not in the graph")
        head, tail = everyone[new.head], everyone[new.tail]
        if tail.state is not NodeState.PENDING:
            return Refused(f"edge {new.head} -> {new.tail} is refused: {new.tail!r} has started")
        if fault := _condition_fault(new.when):
            return Refused(f"edge {new.head} -> {new.tail}: {fault}")
        if new.when is not None and new.truth is None and head.state is NodeState.SUCCEEDED:
            return Refused(f"edge {new.head} -> {new.tail}: its condition reads {new.head!r}, which ended meanwhile")
        edge = _edge_run(first + len(edges), new, head, tail)
        if _identity(edge) not in there:  # an edge that is there already counts once (X2)
            there.add(_identity(edge))
            edges.append(edge)
    return edges


def _identity(edge: EdgeRun) -> tuple[int, int, str | None, str | None]:
    return (edge.head, edge.tail, edge.parameter, edge.when)


def _condition_fault(when: str | None) -> str | None:
    """Say why a condition cannot be read: every later gate would stumble over it."""
    try:
        if when is not None:
            compile_expression(when)
    except ExpressionError as error:
        return str(error)
    return None


def _edge_run(edge_id: int, new: NewEdge, head: NodeRun, tail: NodeRun) -> EdgeRun:
    return EdgeRun(
        edge_id=edge_id,
        head=head.node_id,
        tail=tail.node_id,
        parameter=new.parameter,
        when=new.when,
        required=new.required,
        droppable=new.droppable,
        truth=new.truth,
    )


def _compiled(
    node: NodeRun,
    request: EvolutionRequest,
    structure: Structure,
    added: list[NodeRun],
    edges: list[EdgeRun],
    removed: tuple[int, ...],
    wave: int,
) -> Evolution | Refused:
    """Re-plan the unstarted part, refuse a cycle, and make the event."""
    nodes = dict(structure.nodes) | {item.node_id: item for item in added}
    gone = set(removed)
    kept = {edge_id: edge for edge_id, edge in structure.edges.items() if edge_id not in gone}
    kept |= {edge.edge_id: edge for edge in edges}
    outgoing: dict[int, dict[int, int]] = {node_id: {} for node_id in nodes}
    for edge in kept.values():
        outgoing[edge.head][edge.edge_id] = edge.tail
    cycle = find_cycle(outgoing)
    if cycle is not None:
        return Refused("the evolved graph has a cycle: " + " -> ".join(nodes[one].key for one in [*cycle, cycle[0]]))
    waves = _replanned(nodes, kept, wave)
    added = [replace(item, wave=waves[item.node_id]) for item in added]
    moved = tuple(
        (node_id, waves[node_id])
        for node_id, item in structure.nodes.items()
        if item.state is NodeState.PENDING and item.wave != waves[node_id]
    )
    rewritten = replace(
        node,
        evolution=node.evolution + 1,
        policy=request.rewritten.policy,
        verified=request.rewritten.verify is not None,
    )
    event = NodeEvolved(
        node_id=node.node_id,
        number=node.evolution + 1,
        asked_by=request.asked_by,
        reason=request.reason,
        rewritten=rewritten,
        added_nodes=tuple(added),
        added_edges=tuple(edges),
        removed_edges=removed,
        moved=moved,
    )
    after = nodes | {item.node_id: item for item in added} | {node.node_id: rewritten}
    for node_id, number in moved:
        after[node_id] = replace(after[node_id], wave=number)
    specs = tuple((item.node_id, new) for item, new in zip(added, request.nodes, strict=True))
    return Evolution(event, specs, Structure(nodes=after, edges=kept))


def _replanned(nodes: Mapping[int, NodeRun], edges: Mapping[int, EdgeRun], wave: int) -> dict[int, int]:
    """Return the waves of all unstarted nodes: after the open wave, after their heads, resources apart (X2).

    A head may be done already and stand in a later wave, since it was done before the run (X10).
    """
    pending = [node_id for node_id, node in nodes.items() if node.state is NodeState.PENDING]
    index = {node_id: number for number, node_id in enumerate(pending)}
    floors = [wave + 1] * len(pending)
    for edge in edges.values():
        if edge.tail in index and edge.head not in index:
            floors[index[edge.tail]] = max(floors[index[edge.tail]], nodes[edge.head].wave + 1)
    pairs = [(index[e.head], index[e.tail]) for e in edges.values() if e.head in index and e.tail in index]
    numbers = assign_waves(len(pending), pairs, [nodes[node_id].resources for node_id in pending], floors=floors)
    return dict(zip(pending, numbers, strict=True))
