"""The ledger: the SQL record that is the truth of every run. One facade over its roles, each in a file of its own.

Every write is one transaction that happened or did not, whatever the connection did (``writing``). No method sends
anything or runs a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection

from graphrun.execution.command import Decision
from graphrun.execution.event import Claimed, DeliveryLost, Settled
from graphrun.execution.run import AttemptKind, EdgeRun, Run, RunView, Truth
from graphrun.execution.state import RunState
from graphrun.model.spec import GraphSpec, NodeSpec
from graphrun.storage.claims import Claims
from graphrun.storage.columns import prose
from graphrun.storage.database import Database
from graphrun.storage.gates import Gates
from graphrun.storage.outputs import Outputs
from graphrun.storage.payloads import Payloads, SqlPayloads
from graphrun.storage.reading import Reading
from graphrun.storage.records import (
    AttemptRecord,
    AttemptRow,
    ClaimResult,
    Dispatch,
    EventRow,
    EvolutionRow,
    InputEdge,
    LostResult,
    NodeRow,
    OutputRef,
    RunRow,
    SettleResult,
    Submission,
    Submitted,
    Unsent,
)
from graphrun.storage.settling import Settlements
from graphrun.storage.submission import Submissions
from graphrun.storage.sweeping import Sweeping
from graphrun.storage.writing import Writer


class Ledger:
    """The record of runs in one database.

    Args:
        database: where.
        payloads: the store of large outputs; blobs in ``database`` when None.
        inline_limit_bytes: outputs up to this size stay in their row.
    """

    def __init__(
        self, database: Database, payloads: Payloads | None = None, *, inline_limit_bytes: int = 65_536
    ) -> None:
        writer = Writer(database)
        self.database = database
        self._outputs = Outputs(payloads or SqlPayloads(database), inline_limit_bytes)
        self._submissions = Submissions(writer, self._outputs)
        self._gates = Gates(writer, self._outputs)
        self._claims = Claims(database, writer)
        self._settlements = Settlements(database, writer, self._outputs)
        self._sweeping = Sweeping(database)
        self._reading = Reading(database, self._outputs)

    # submit and gate

    def submit(self, submission: Submission, *, connection: Connection | None = None) -> Submitted:
        """Write a run as ``created``, in one transaction; nothing is sent.

        Args:
            submission: the compiled graph.
            connection: the caller's transaction to join; it is not committed here, and rolled back leaves nothing.

        Raises:
            IdempotencyConflictError: the key was used for another graph (X17).
            LedgerError: the run id is taken, or a name cannot be stored.
            PayloadTooLargeError: an output given for a pre-done node is over the limit.
        """
        return self._submissions.submit(submission, connection=connection)

    def gate(self, run_id: str, decide: Callable[[RunView, datetime], Decision], *, token: str) -> Decision:
        """Decide about a run under its lock and write the decision; one without events writes nothing (X8).

        Args:
            run_id: the run.
            decide: the planner, given the view and the database's clock (§3.10); called again when the transaction has
                to be repeated.
            token: made by the caller for this gate alone; ``mark_sent`` takes it when the decision was sent.

        Raises:
            RunNotFoundError: no such run.
        """
        return self._gates.gate(run_id, decide, token=token)

    # claim and settle

    def claim(  # noqa: PLR0913 - what a message says, and who took it
        self,
        run_id: str,
        node_id: int,
        attempt: int,
        kind: AttemptKind,
        *,
        token: str,
        worker: str,
        task_id: str,
        revision: int,
        wave: int = 0,  # noqa: ARG002 - the attempt number says as much: it grows over the whole run
        round: int = 0,  # noqa: A002, ARG002 - the same, and the word of the glossary
    ) -> ClaimResult:
        """Take an attempt before its body runs (§3.3).

        Args:
            run_id: the run.
            node_id: the node.
            attempt: the attempt that the message names.
            kind: its body, or its verification.
            token: made by the caller for this claim alone.
            worker: who takes it.
            task_id: of this delivery; its parent process settles by it.
            revision: of the run, from the message.
            wave: from the message, for the log.
            round: from the message, for the log.

        Returns:
            ``Claim``; ``ClaimLost`` when another has it, it is over, or the run does not let it start; ``ClaimAbsent``
            when there is no such row.
        """
        fact = Claimed(node_id=node_id, attempt=attempt, kind=kind, worker=prose(worker) or "")
        return self._claims.claim(run_id, fact, token=token, task_id=task_id, revision=revision)

    def inputs(self, run_id: str, node_id: int) -> tuple[InputEdge, ...]:
        """Return the inbound edges of a node in declared order, with key and output of each head (X9)."""
        return self._claims.inputs(run_id, node_id)

    def outbound(self, run_id: str, node_id: int) -> tuple[EdgeRun, ...]:
        """Return the edges out of a node that have a condition, in declared order."""
        return self._claims.outbound(run_id, node_id)

    def settle(
        self,
        run_id: str,
        node_id: int,
        *,
        token: str,
        fact: Settled,
        record: AttemptRecord,
        truths: Mapping[int, Truth] | None = None,
    ) -> SettleResult:
        """Record how an attempt ended, if its claim still holds (promise 2); twice with one token counts once.

        Args:
            run_id: the run.
            node_id: the node.
            token: of the claim.
            fact: how it ended.
            record: what it leaves; an ``output`` given as text is stored first, outside the transaction.
            truths: what the conditions of its outgoing edges came to, by edge id.

        Raises:
            RunNotFoundError: no such node.
            PayloadTooLargeError: the output is over the limit; nothing was written.
        """
        _require_same(node_id, fact.node_id)
        return self._settlements.settle(run_id, fact, token=token, record=record, truths=truths or {})

    def settle_for(
        self, run_id: str, node_id: int, *, task_id: str, fact: Settled, record: AttemptRecord
    ) -> SettleResult:
        """Record how an attempt ended whose process cannot: a hard time limit, an exit (§3.6).

        Args:
            run_id: the run.
            node_id: the node.
            task_id: of the delivery that holds the claim; another one is refused.
            fact: how it ended.
            record: what it leaves.

        Raises:
            RunNotFoundError: no such node.
        """
        _require_same(node_id, fact.node_id)
        return self._settlements.settle_for(run_id, fact, task_id=task_id, writer=uuid4().hex, record=record)

    def lose_delivery(self, run_id: str, node_id: int, *, task_id: str, fact: DeliveryLost) -> LostResult:
        """Take an attempt from a delivery that died; the same attempt is queued again, up to the policy's limit (X6).

        Raises:
            RunNotFoundError: no such node.
        """
        _require_same(node_id, fact.node_id)
        return self._settlements.lose(run_id, fact, task_id=task_id, writer=uuid4().hex)

    def store_output(self, text: str) -> OutputRef:
        """Store an encoded output before its attempt settles.

        Raises:
            PayloadTooLargeError: over the limit.
        """
        return self._outputs.store(text)

    def load(self, reference: OutputRef) -> str:
        """Return an encoded output.

        Raises:
            LedgerError: it is not in the store, or damaged.
        """
        return self._outputs.load(reference)

    # send and sweep

    def dispatches(self, run_id: str, node_ids: Sequence[int]) -> tuple[Dispatch, ...]:
        """Return what the messages of nodes need, in the order given; a node that was claimed meanwhile is left out."""
        return self._sweeping.dispatches(run_id, node_ids)

    def queued(self, run_id: str) -> tuple[int, ...]:
        """Return the nodes of the open round that may be sent now and that nobody has claimed."""
        return self._sweeping.queued(run_id)

    def mark_sent(self, run_id: str, token: str) -> None:
        """Note that the round of a gate's token was sent; a later round stays unsent."""
        self._sweeping.mark_sent(run_id, token)

    def unsent(self, older_than_seconds: float, limit: int) -> tuple[Unsent, ...]:
        """Return running rounds that were committed so long ago and are not known to be sent."""
        return self._sweeping.unsent(older_than_seconds, limit)

    def created(self, older_than_seconds: float, limit: int) -> tuple[Run, ...]:
        """Return runs that were submitted so long ago and not started."""
        return self._sweeping.created(older_than_seconds, limit)

    def stalled_gates(self, older_than_seconds: float, limit: int) -> tuple[tuple[str, int, int, int], ...]:
        """Return (run, revision, wave, round) of running runs without an open node, unchanged for so long."""
        return self._sweeping.stalled_gates(older_than_seconds, limit)

    def hand_back(self, run_id: str, node_id: int, attempt: int, *, after_seconds: float) -> bool:
        """Let an attempt that nobody has taken be sent again after a while; say whether there was one (§3.6)."""
        return self._sweeping.hand_back(run_id, node_id, attempt, after_seconds=after_seconds)

    def due_nodes(self, limit: int) -> tuple[tuple[Run, int], ...]:
        """Hand out queued nodes whose ``not_before`` has passed; again after a minute if nobody claimed them."""
        return self._sweeping.due_nodes(limit)

    # read

    def run(self, run_id: str, *, tenant_id: str) -> RunRow:
        """Return a run by its id, or by a unique beginning of it; so do all readers below.

        Raises:
            RunNotFoundError: none for this tenant.
            LedgerError: several begin so.
        """
        return self._reading.run(run_id, tenant_id)

    def runs(
        self,
        *,
        tenant_id: str,
        state: RunState | None = None,
        graph: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[RunRow, ...]:
        """Return the tenant's runs, the latest first."""
        return self._reading.runs(tenant_id, state=state, graph=graph, limit=limit, offset=offset)

    def nodes(self, run_id: str, *, tenant_id: str) -> tuple[NodeRow, ...]:
        """Return the nodes of a run, in declared order; those that an evolution added come last."""
        return self._reading.nodes(run_id, tenant_id)

    def edges(self, run_id: str, *, tenant_id: str) -> tuple[EdgeRun, ...]:
        """Return the edges of a run as it is now, in declared order."""
        return self._reading.edges(run_id, tenant_id)

    def attempts(self, run_id: str, key: str | None = None, *, tenant_id: str) -> tuple[AttemptRow, ...]:
        """Return the ends of claims, of one node or of all, in the order in which they ended."""
        return self._reading.attempts(run_id, tenant_id, key)

    def events(self, run_id: str, after: Mapping[int, int] | None = None, *, tenant_id: str) -> tuple[EventRow, ...]:
        """Return the log of a run.

        Args:
            run_id: the run.
            after: the last ``n`` that the reader has of each stream (``EventRow.node_id``); everything when None. A
                reader that keeps it sees each event once, in order within its stream, however late it was committed.
            tenant_id: whose run it is.
        """
        return self._reading.events(run_id, tenant_id, after or {})

    def evolutions(self, run_id: str, *, tenant_id: str) -> tuple[EvolutionRow, ...]:
        """Return accepted and refused evolutions, in order."""
        return self._reading.evolutions(run_id, tenant_id)

    def output(self, run_id: str, key: str, *, tenant_id: str) -> str:
        """Return the encoded output of a succeeded node.

        Raises:
            LedgerError: there is no such node, or it has no output; the message names its state.
        """
        return self._reading.output(run_id, tenant_id, key)

    def spec(self, run_id: str, *, tenant_id: str) -> GraphSpec:
        """Return the delegated graph, equal to the one that was submitted."""
        return self._reading.spec(run_id, tenant_id)

    def node_specs(self, run_id: str, *, tenant_id: str) -> dict[int, NodeSpec]:
        """Return the spec that each node runs now, as evolved, by node id."""
        return self._reading.node_specs(run_id, tenant_id)


def _require_same(node_id: int, of_fact: int) -> None:
    if node_id != of_fact:
        raise ValueError(f"the fact is about node {of_fact}, not about node {node_id}")
