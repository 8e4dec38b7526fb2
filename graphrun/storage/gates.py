"""The gate's transaction: lock the run, read the part of it that one decision needs, decide, write (§3.5).

The decision itself is a function given by the caller. The cost is that of the open and the next wave, never of the
graph, but for an evolution.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from graphrun.codec import from_plain
from graphrun.errors import RunNotFoundError
from graphrun.execution.command import Decision, SendWave
from graphrun.execution.event import NodeEvolved, NodeFailed
from graphrun.execution.inputs import evaluate_condition, run_scope
from graphrun.execution.run import EvolutionRequest, NodeRun, Run, RunView, Truth
from graphrun.execution.state import NodeState
from graphrun.storage.documents import spec_to_text, to_text
from graphrun.storage.outputs import Outputs
from graphrun.storage.recording import Basis, Marks, spec_values, write_decision
from graphrun.storage.rows import StoredRun, lock_run, read_output, read_run
from graphrun.storage.tables import evolutions, node_specs
from graphrun.storage.views import Loaded, current_document, load_view
from graphrun.storage.writing import Writer


class Gates:
    """Carries out gates."""

    def __init__(self, writer: Writer, outputs: Outputs) -> None:
        self._writer = writer
        self._outputs = outputs

    def gate(self, run_id: str, decide: Callable[[RunView, datetime], Decision], *, token: str) -> Decision:
        """Decide about a run under its lock; see ``Ledger.gate``."""
        made: list[Decision] = []

        def write(connection: Connection) -> Decision:
            run = lock_run(connection, run_id)
            if run is None:
                raise RunNotFoundError(f"there is no run {run_id}")
            if run.gate_token == token and made:
                return made[-1]
            loaded = self._with_truths(connection, load_view(connection, run.run))
            decision = decide(loaded.view, run.now)
            made.append(decision)
            if decision.events:
                _write(connection, run, loaded, decision, token)
            return decision

        def landed(connection: Connection) -> Decision | None:
            run = read_run(connection, run_id)
            return made[-1] if made and run is not None and run.gate_token == token else None

        return self._writer.run(write, landed)

    def _with_truths(self, connection: Connection, loaded: Loaded) -> Loaded:
        """Return the view with every condition evaluated that an evolution asks for on a head that has ended (X3).

        The worker that asked did so for those that had ended by then; a sibling may have ended since.
        """
        structure = loaded.view.structure
        if structure is None:
            return loaded
        ended = {node.key: node for node in structure.nodes.values() if node.state is NodeState.SUCCEEDED}
        requests = {}
        for node_id, request in loaded.view.requests.items():
            edges = tuple(
                replace(edge, truth=self._truth(connection, loaded.view.run, ended[edge.head], edge.when))
                if edge.when is not None and edge.truth is None and edge.head in ended
                else edge
                for edge in request.edges
            )
            requests[node_id] = replace(request, edges=edges)
        return replace(loaded, view=replace(loaded.view, requests=requests))

    def _truth(self, connection: Connection, run: Run, head: NodeRun, when: str) -> Truth:
        output = read_output(connection, run.run_id, head.node_id)
        return evaluate_condition(
            when,
            result=None
            if output is None
            else from_plain(json.loads(self._outputs.load(output, connection=connection))),
            status=head.state.value,
            params=json.loads(current_document(connection, run.run_id, head.node_id)).get("params", {}),
            run=run_scope(run.run_id),
        )


def _write(connection: Connection, run: StoredRun, loaded: Loaded, decision: Decision, token: str) -> None:
    basis = Basis(run=run, node_events=loaded.node_events)
    evolved = {event.node_id: event for event in decision.events if isinstance(event, NodeEvolved)}
    rewritten = {node_id: spec_values(loaded.view.requests[node_id].rewritten) for node_id in evolved}
    originals = {node_id: current_document(connection, run.run.run_id, node_id) for node_id in loaded.view.requests}
    marks = Marks(run=_sending(run, decision, token), nodes=rewritten)
    write_decision(connection, basis, decision, marks)
    for node_id, request in loaded.view.requests.items():
        _record_evolution(connection, basis, loaded, decision, (node_id, request, originals[node_id]))


def _sending(run: StoredRun, decision: Decision, token: str) -> Mapping[str, Any]:
    """Return what says that a committed round is still to be sent, or that nothing is (§3.7)."""
    after = decision.run
    if any(isinstance(command, SendWave) for command in decision.commands):
        return {"gate_token": token, "sent": False, "sent_token": token}
    if (after.state, after.wave, after.round) != (run.run.state, run.run.wave, run.run.round):
        return {"gate_token": token, "sent": True}
    return {"gate_token": token}


def _record_evolution(
    connection: Connection, basis: Basis, loaded: Loaded, decision: Decision, asked: tuple[int, EvolutionRequest, str]
) -> None:
    """Keep an evolution, accepted or refused: original and evolved scope, who asked, why, and what changed (X7)."""
    node_id, request, original = asked
    node = loaded.view.nodes[node_id]
    event = next((e for e in decision.events if isinstance(e, NodeEvolved) and e.node_id == node_id), None)
    failed = next((e for e in decision.events if isinstance(e, NodeFailed) and e.node_id == node_id), None)
    if event is None and failed is None:
        return
    run_id = basis.run.run.run_id
    number = node.evolution + 1 if event is None else event.number
    evolved = spec_to_text(request.rewritten)
    row = {
        "run_id": run_id,
        "node_id": node_id,
        "number": number,
        "original": original,
        "evolved": evolved,
        "changes": to_text({} if event is None else _changes(loaded, decision, event)),
        "asked_by": request.asked_by,
        "reason": request.reason,
        "refused": failed.error if event is None and failed is not None else None,
        "at": basis.now,
    }
    connection.execute(insert(evolutions).values(row))
    if event is not None:
        spec_row = {"run_id": run_id, "node_id": node_id, "evolution": number, "document": evolved}
        connection.execute(insert(node_specs).values(spec_row))


def _changes(loaded: Loaded, decision: Decision, event: NodeEvolved) -> dict[str, Any]:
    """Return the changed part of the graph, by key: node and edge numbers mean nothing to a reader."""
    structure = loaded.view.structure
    before = {} if structure is None else structure.nodes
    edges = {} if structure is None else structure.edges
    keys = {node_id: node.key for node_id, node in before.items()}
    keys |= {node.node_id: node.key for node in decision.nodes}  # what another evolution of this gate added, too
    removed = [edges[edge_id] for edge_id in event.removed_edges if edge_id in edges]
    return {
        "added": [node.key for node in event.added_nodes],
        "added_edges": [(keys[edge.head], keys[edge.tail]) for edge in event.added_edges],
        "removed_edges": [(keys[edge.head], keys[edge.tail]) for edge in removed],
        "moved": [(keys[node_id], before[node_id].wave, wave) for node_id, wave in event.moved if node_id in before],
    }
