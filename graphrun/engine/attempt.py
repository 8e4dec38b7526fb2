"""Running one attempt of a node: claim, bind, call, encode, settle (§3.3, §3.4).

It knows nothing of Celery: a worker and an inline run call it alike. Whatever the body does, it returns a status word
and never raises, except for a delivery that lost its claim (``ClaimLostError``): a loser must not count in the chord.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback as tracebacks
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal
from uuid import uuid4

from graphrun.codec import decode, encode, from_plain
from graphrun.engine.binding import Bound, Upstream, bind_inputs
from graphrun.engine.commands import run_command
from graphrun.engine.evolving import compile_evolution
from graphrun.engine.idempotency import idempotency_key
from graphrun.engine.inside import node_running
from graphrun.engine.message import NodeMessage
from graphrun.errors import EncodingError, GraphrunError
from graphrun.execution.event import Settled
from graphrun.execution.inputs import evaluate_condition, run_scope
from graphrun.execution.run import AttemptKind, Resolution, Truth
from graphrun.model.spec import command_of
from graphrun.registry import AnyTask, Context, Done, Evolved, Failed, TaskRegistry, normalise_return
from graphrun.settings import Settings
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import AttemptRecord, Claim, ClaimAbsent, ClaimLost, SettleResult

log = logging.getLogger("graphrun.attempt")

Invoke = Callable[[AnyTask, Mapping[str, Any]], Any]


class ClaimLostError(GraphrunError):
    """This delivery did not get the attempt: another has it, or it is over. Nothing was run."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of an attempt: its status word, and whether this settle has to send the gate."""

    status: str
    result: SettleResult


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What the body came to, before it is recorded."""

    status: Literal["done", "failed", "evolved"]
    value: Any = None
    text: str | None = None
    evolved: Evolved | None = None
    error_type: str | None = None
    error: str | None = None
    traceback: str | None = None
    summary: str | None = None
    implemented: tuple[str, ...] = ()


class AttemptRunner:
    """Runs attempts against one ledger.

    Args:
        ledger: the record that is the truth.
        registry: the tasks this process knows.
        settings: limits and waits.
        worker: the name under which attempts are claimed.
        guard: entered around the body alone: a soft time limit may land inside it and nowhere else (X15).
        reraise: says whether an exit was asked for from outside, and is to go on as it came (X15).
    """

    def __init__(
        self,
        ledger: Ledger,
        registry: TaskRegistry,
        settings: Settings,
        *,
        worker: str,
        guard: Callable[[], AbstractContextManager[object]] = nullcontext,
        reraise: Callable[[BaseException], bool] = lambda _error: False,
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
        claim = self._claim(message, token, task_id)
        call = invoke or self._call
        body = _Body(self, claim, message)
        outcome = body.verify(call) if message.kind is AttemptKind.VERIFY else body.execute(call)
        return self._settle(message, token, claim, outcome, body.missing)

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
            return self._loop.run(task.function(**arguments))
        return task.function(**arguments)

    def _settle(
        self,
        message: NodeMessage,
        token: str,
        claim: Claim,
        outcome: _Outcome,
        missing: Mapping[str, str],
    ) -> Settlement:
        verifying = message.kind is AttemptKind.VERIFY
        request = None
        if outcome.evolved is not None:
            request = compile_evolution(outcome.evolved, claim, self._registry)
        record = AttemptRecord(
            summary=_summary(outcome, missing),
            error_type=outcome.error_type,
            error=outcome.error,
            traceback=outcome.traceback,
            output=outcome.text,
            evolution=request,
            missing_inputs=dict(missing),
            verify_result=_verdict(outcome) if verifying else None,
            implemented=outcome.implemented,
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

    def _truths(self, message: NodeMessage, claim: Claim, outcome: _Outcome) -> dict[int, Truth]:
        """Evaluate the conditions of the node's outgoing edges on what it returned (X3)."""
        edges = self._ledger.outbound(message.run_id, message.node_id)
        if not edges:
            return {}
        result = outcome.value
        if message.kind is AttemptKind.VERIFY and claim.node_output is not None:
            result = from_plain(json.loads(self._ledger.load(claim.node_output)))
        scope = {
            "result": result,
            "status": "succeeded",
            "params": claim.spec.params,
            "run": run_scope(message.run_id),
        }
        return {edge.edge_id: evaluate_condition(edge.when or "", **scope) for edge in edges}


class _Body:
    """One attempt's way from its stored inputs to what the body came to."""

    def __init__(self, runner: AttemptRunner, claim: Claim, message: NodeMessage) -> None:
        self._runner = runner
        self._claim = claim
        self._message = message
        self.missing: dict[str, str] = {}

    def execute(self, call: Invoke) -> _Outcome:
        """Run the node's own body."""
        return self._guarded(lambda: self._run_body(call))

    def verify(self, call: Invoke) -> _Outcome:
        """Run the node's verify task on its output; only ``False``, ``Failed`` or an exception fails it (X16)."""
        return self._guarded(lambda: self._run_verify(call))

    def _guarded(self, run: Callable[[], _Outcome]) -> _Outcome:
        try:
            return run()
        except BaseException as error:  # SystemExit and KeyboardInterrupt fail this node only (X15)
            if self._runner._reraise(error):  # noqa: SLF001 - one role in two classes
                raise
            return self._failure(error)

    def _run_body(self, call: Invoke) -> _Outcome:
        runner, claim = self._runner, self._claim
        task = runner._registry.get(claim.spec.task)  # noqa: SLF001
        bound = self._bind(task)
        self.missing = bound.missing
        arguments = task.call_arguments(bound.values)
        if task.wants_context:
            arguments[task.wants_context] = self._context()
        with node_running(claim.spec.key), runner._guard():  # noqa: SLF001
            returned = call(task, arguments)
        return self._returned(normalise_return(returned), task)

    def _run_verify(self, call: Invoke) -> _Outcome:
        runner, claim = self._runner, self._claim
        output = "null" if claim.node_output is None else runner._ledger.load(claim.node_output)  # noqa: SLF001
        command = command_of(claim.spec.verify or "")
        if command is not None:
            with runner._guard():  # noqa: SLF001
                fault = run_command(command, output, runner._settings)  # noqa: SLF001
            return _Outcome("failed", error_type="VerifyFailed", error=self._cut(fault)) if fault else _Outcome("done")
        task = runner._registry.get(claim.spec.verify or "")  # noqa: SLF001
        name = next(iter(task.parameters), None)
        arguments: dict[str, Any] = {}
        if name is not None:
            arguments[name] = decode(output, task.parameters[name].annotation)
        if task.wants_context:
            arguments[task.wants_context] = self._context()
        with runner._guard():  # noqa: SLF001
            returned = call(task, arguments)
        if isinstance(returned, Failed):
            return _Outcome("failed", error_type="VerifyFailed", error=f"verify failed: {returned.reason}")
        if returned is False:
            return _Outcome("failed", error_type="VerifyFailed", error=f"verify failed: {task.name} returned False")
        return _Outcome("done")

    def _bind(self, task: AnyTask) -> Bound:
        ledger = self._runner._ledger  # noqa: SLF001
        cache: dict[int, Any] = {}

        def load(head: int, reference: Any) -> Any:
            if head not in cache:
                cache[head] = json.loads(ledger.load(reference)) if reference is not None else None
            return cache[head]

        upstream: dict[tuple[str, str], Upstream] = {}
        for item in ledger.inputs(self._message.run_id, self._message.node_id):
            edge = item.edge
            name = edge.parameter or ""
            known = upstream.get((item.head_key, name))
            if known is not None and known.resolution is Resolution.DELIVERED:
                continue
            upstream[item.head_key, name] = Upstream(
                edge.resolution or Resolution.DELIVERED,
                edge.cause.value if edge.cause else None,
                partial(load, edge.head, item.output),
            )
        return bind_inputs(self._claim.spec.params, upstream, task)

    def _context(self) -> Context:
        claim, message = self._claim, self._message
        return Context(
            run_id=message.run_id,
            key=claim.spec.key,
            attempt=message.attempt,
            idempotency_key=idempotency_key(message.run_id, claim.spec.key, claim.node.evolution),
            missing_inputs=dict(self.missing),
        )

    def _returned(self, returned: Done | Failed | Evolved, task: AnyTask) -> _Outcome:
        match returned:
            case Evolved():
                return _Outcome("evolved", evolved=returned, summary=returned.reason)
            case Failed(reason=reason, kind=kind):
                return _Outcome("failed", error_type=kind or "Failed", error=self._cut(reason))
            case Done(value=value):
                return self._done(returned, value, task)

    def _done(self, returned: Done, value: Any, task: AnyTask) -> _Outcome:
        key = self._claim.spec.key
        try:
            text = encode(value, task.return_annotation)
        except EncodingError as error:
            message = f"output of node {key} cannot be stored: {error}"
            return _Outcome("failed", error_type="EncodingError", error=self._cut(message))
        limit = self._runner._settings.payload_limit_bytes  # noqa: SLF001
        if len(text) > limit:
            message = f"output of node {key} cannot be stored: {len(text)} bytes, the limit is {limit}"
            return _Outcome("failed", error_type="PayloadTooLargeError", error=message)
        implemented = returned.implemented
        parts = (implemented,) if isinstance(implemented, str) else tuple(implemented or ())
        plain = from_plain(json.loads(text)) if len(text) <= limit else None
        return _Outcome("done", value=plain, text=text, summary=returned.summary, implemented=parts)

    def _failure(self, error: BaseException) -> _Outcome:
        """Keep class name, text and traceback as text; an exception object is never shipped (O21)."""
        try:
            text = str(error)
        except Exception as broken:  # noqa: BLE001 - a __str__ that raises is the user's, and only its text is lost
            text = f"<{type(error).__name__} whose text cannot be made: {type(broken).__name__}>"
        if isinstance(error, SystemExit):
            text = f"the body called sys.exit({error.code!r})"
        elif type(error).__name__ == "SoftTimeLimitExceeded":
            policy = self._claim.spec.policy
            limit = policy.soft_timeout_seconds or policy.timeout_seconds
            text = f"running time limit of {limit:g} s exceeded" if limit else "soft time limit exceeded"
        try:
            trace = "".join(tracebacks.format_exception(error, chain=True))
        except Exception:  # noqa: BLE001 - formatting asks the same broken __str__
            trace = "".join(tracebacks.format_tb(error.__traceback__))
        name = type(error).__name__
        return _Outcome(
            "failed",
            error_type=name,
            error=self._cut(f"{name}: {text}" if text else name),
            traceback=self._cut(trace),
        )

    def _cut(self, text: str) -> str:
        """Cut an error text to the limit, saying so; NUL and lone surrogates are written as escapes."""
        limit = self._runner._settings.error_limit_characters  # noqa: SLF001
        clean = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
        return clean if len(clean) <= limit else f"{clean[:limit]}… [{len(clean) - limit} more characters]"


def _summary(outcome: _Outcome, missing: Mapping[str, str]) -> str | None:
    """Say in the return's summary which inputs the node went on without (X5)."""
    if not missing:
        return outcome.summary
    without = "proceeded without " + ", ".join(f"{key} ({cause})" for key, cause in missing.items())
    return f"{outcome.summary}; {without}" if outcome.summary else without


def _verdict(outcome: _Outcome) -> str:
    return "pass" if outcome.status == "done" else f"fail: {outcome.error or 'no reason given'}"
