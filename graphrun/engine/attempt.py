"""Running one attempt of a node: claim, bind, call, encode, settle (§3.3, §3.4).

It knows nothing of Celery: a worker and an inline run call it alike. Whatever the body does, it returns a status word
and never raises, except for a delivery that lost its claim (``ClaimLostError``): a loser must not count in the chord.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

from graphrun.codec import from_plain
from graphrun.engine.body import Body, Guard, Invoke, Outcome, Reraise
from graphrun.engine.evolving import compile_evolution
from graphrun.engine.message import NodeMessage
from graphrun.engine.patience import until_answered
from graphrun.errors import GraphrunError
from graphrun.execution.event import Settled
from graphrun.execution.inputs import evaluate_condition, run_scope
from graphrun.execution.run import AttemptKind, Truth
from graphrun.execution.state import NodeState
from graphrun.registry import AnyTask, TaskRegistry
from graphrun.settings import Settings
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import AttemptRecord, Claim, ClaimAbsent, ClaimLost, SettleResult

log = logging.getLogger("graphrun.attempt")


class ClaimLostError(GraphrunError):
    """This delivery did not get the attempt: another has it, or it is over. Nothing was run."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of an attempt: its status word, and whether this settle has to send the gate."""

    status: str
    result: SettleResult


class AttemptRunner:
    """Runs attempts against one ledger.

    Args:
        ledger: the record that is the truth.
        registry: the tasks this process knows.
        settings: limits and waits.
        worker: the name under which attempts are claimed.
        guard: entered around the body alone, see ``Body``.
        reraise: which exits go on as they came, see ``Body``.
    """

    def __init__(
        self,
        ledger: Ledger,
        registry: TaskRegistry,
        settings: Settings,
        *,
        worker: str,
        guard: Guard = nullcontext,
        reraise: Reraise = lambda _error: False,
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._settings = settings
        self._worker = worker
        self._guard = guard
        self._reraise = reraise

    @cached_property
    def _loop(self) -> asyncio.Runner:
        """One event loop a process for async bodies (§3.11)."""
        return asyncio.Runner()

    def close(self) -> None:
        """Close the event loop, if an async body made one."""
        loop = self.__dict__.pop("_loop", None)
        if loop is not None:
            loop.close()

    def run(self, message: NodeMessage, *, task_id: str, invoke: Invoke | None = None) -> Settlement:
        """Run one delivery of an attempt to its end.

        Args:
            message: which attempt.
            task_id: the id of this delivery, by which a parent process finds the claim.
            invoke: how to call the body; the function itself when None.

        Raises:
            ClaimLostError: another delivery has the attempt, it is over, or the run no longer lets it start.
        """
        token = uuid4().hex
        # Asked under one token until there is an answer: a claim that was committed without one is found again.
        claim = until_answered(lambda: self._claim(message, token, task_id))
        call = invoke or self._call
        body = Body(
            claim,
            message,
            ledger=self._ledger,
            registry=self._registry,
            settings=self._settings,
            guard=self._guard,
            reraise=self._reraise,
        )
        outcome = body.verify(call) if message.kind is AttemptKind.VERIFY else body.execute(call)
        try:
            return until_answered(lambda: self._settle(message, token, claim, outcome, body))
        except ClaimLostError:
            raise
        except Exception as error:
            # Nothing was written: the transaction is whole or not there. An attempt that ends must be recorded (promise
            # 1), so what cannot be is a failed one that says why.
            log.exception("run %s node %d: the outcome could not be recorded", message.run_id, message.node_id)
            unrecorded = body.unrecorded(error)
            return until_answered(lambda: self._settle(message, token, claim, unrecorded, body))

    def _claim(self, message: NodeMessage, token: str, task_id: str) -> Claim:
        """Take the attempt; a row that is not there yet is waited for, then given up and never called done (O25)."""
        deadline = time.monotonic() + self._settings.claim_wait_seconds
        pause = 0.02
        while True:
            result = self._ledger.claim(
                message.run_id,
                message.node_id,
                message.attempt,
                message.kind,
                token=token,
                worker=self._worker,
                task_id=task_id,
                revision=message.revision,
                wave=message.wave,
                round=message.round,
            )
            match result:
                case Claim():
                    return result
                case ClaimLost(reason=reason):
                    log.info("run %s node %d: not claimed: %s", message.run_id, message.node_id, reason)
                    raise ClaimLostError(reason)
                case ClaimAbsent() if time.monotonic() >= deadline:
                    log.error("run %s node %d: no such row; message dropped", message.run_id, message.node_id)
                    raise ClaimLostError("no such row")
            time.sleep(pause)
            pause = min(pause * 2, 0.5)

    def _call(self, task: AnyTask, arguments: Mapping[str, Any]) -> Any:
        if task.is_async:
            return self._run_async(task.function(**arguments))
        return task.function(**arguments)

    def _run_async(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Run an async body to its end; one that a limit cut off is cancelled, lest it goes on in the next one."""
        loop = self._loop.get_loop()
        running = loop.create_task(body)
        try:
            return loop.run_until_complete(running)
        except BaseException:
            if not running.done():
                running.cancel()
                loop.run_until_complete(asyncio.wait([running]))
            raise

    def _settle(
        self,
        message: NodeMessage,
        token: str,
        claim: Claim,
        outcome: Outcome,
        body: Body,
    ) -> Settlement:
        verifying = message.kind is AttemptKind.VERIFY
        request = None
        if outcome.evolved is not None:
            request = compile_evolution(outcome.evolved, claim, self._registry, self._ledger)
        record = AttemptRecord(
            summary=_summary(outcome, body.missing),
            error_type=outcome.error_type,
            error=outcome.error,
            traceback=outcome.traceback,
            output=outcome.text,
            evolution=request,
            missing_inputs=dict(body.missing),
            verify_result=_verdict(outcome) if verifying else None,
            implemented=outcome.implemented,
            subgraph_hash=body.subgraph_hash,
        )
        fact = Settled(
            node_id=message.node_id,
            attempt=message.attempt,
            kind=message.kind,
            status=outcome.status,
            error_type=outcome.error_type,
            error=outcome.error,
        )
        truths = {} if outcome.status != "done" else self._truths(message, claim, outcome)
        result = self._ledger.settle(
            message.run_id, message.node_id, token=token, fact=fact, record=record, truths=truths
        )
        if not result.accepted:
            log.warning("run %s node %d: a late outcome was refused", message.run_id, message.node_id)
            raise ClaimLostError("the attempt was taken away while it ran")
        return Settlement(outcome.status, result)

    def _truths(self, message: NodeMessage, claim: Claim, outcome: Outcome) -> dict[int, Truth]:
        """Evaluate the conditions of the node's outgoing edges on what it returned (X3)."""
        edges = self._ledger.outbound(message.run_id, message.node_id)
        if not edges:
            return {}
        text = outcome.text
        if message.kind is AttemptKind.VERIFY and claim.node_output is not None:
            text = self._ledger.load(claim.node_output)
        result = None if text is None else from_plain(json.loads(text))
        return {
            edge.edge_id: evaluate_condition(
                edge.when or "",
                result=result,
                status=NodeState.SUCCEEDED.value,
                params=claim.spec.params,
                run=run_scope(message.run_id),
            )
            for edge in edges
        }


def _summary(outcome: Outcome, missing: Mapping[str, str]) -> str | None:
    """Say in the return's summary which inputs the node went on without (X5)."""
    if not missing:
        return outcome.summary
    without = "proceeded without " + ", ".join(f"{key} ({cause})" for key, cause in missing.items())
    return f"{outcome.summary}; {without}" if outcome.summary else without


def _verdict(outcome: Outcome) -> str:
    return "pass" if outcome.status == "done" else f"fail: {outcome.error or 'no reason given'}"
