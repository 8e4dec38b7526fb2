"""Running a node's body or its verification: bind, call, encode. Whatever the user's code does ends as an ``Outcome``.

It claims and settles nothing, and knows nothing of Celery.
"""

from __future__ import annotations

import hashlib
import json
import traceback as tracebacks
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from graphrun.codec import decode, encode
from graphrun.engine.binding import Bound, Upstream, bind_inputs
from graphrun.engine.commands import run_command
from graphrun.engine.idempotency import idempotency_key
from graphrun.engine.inside import node_running
from graphrun.engine.message import NodeMessage
from graphrun.engine.patience import until_answered
from graphrun.errors import EncodingError
from graphrun.execution.run import Resolution
from graphrun.model.spec import NodeSpec, command_of
from graphrun.registry import AnyTask, Context, Done, Evolved, Failed, TaskRegistry, normalise_return
from graphrun.settings import Settings
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Claim, InputEdge, OutputRef

Invoke = Callable[[AnyTask, Mapping[str, Any]], Any]
Guard = Callable[[], AbstractContextManager[object]]
Reraise = Callable[[BaseException], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the body came to, before it is recorded."""

    status: Literal["done", "failed", "evolved"]
    text: str | None = None
    evolved: Evolved | None = None
    error_type: str | None = None
    error: str | None = None
    traceback: str | None = None
    summary: str | None = None
    implemented: tuple[str, ...] = ()


class Body:
    """One attempt's way from its stored inputs to what the body came to.

    Args:
        claim: the attempt that this process owns.
        message: which attempt it is.
        ledger: where inputs are read.
        registry: the tasks this process knows.
        settings: limits.
        guard: entered around the user's code alone: a soft time limit may land inside it and nowhere else (X15).
        reraise: says whether an exit was asked for from outside, and is to go on as it came (X15).

    Attributes:
        missing: key of each upstream node that gave no value -> why; filled when the inputs are bound.
        subgraph_hash: of task, parameters, policy and the hashes of the inputs, known from then on (X6).
    """

    def __init__(
        self,
        claim: Claim,
        message: NodeMessage,
        *,
        ledger: Ledger,
        registry: TaskRegistry,
        settings: Settings,
        guard: Guard,
        reraise: Reraise,
    ) -> None:
        self._claim = claim
        self._message = message
        self._ledger = ledger
        self._registry = registry
        self._settings = settings
        self._guard = guard
        self._reraise = reraise
        self.missing: dict[str, str] = {}
        self.subgraph_hash: str | None = None

    def execute(self, call: Invoke) -> Outcome:
        """Run the node's own body."""
        return self._guarded(lambda: self._run_body(call))

    def verify(self, call: Invoke) -> Outcome:
        """Run the node's verify task on its output; only ``False``, ``Failed`` or an exception fails it (X16)."""
        return self._guarded(lambda: self._run_verify(call))

    def unrecorded(self, error: Exception) -> Outcome:
        """Return the failed outcome that stands for one that could not be recorded."""
        failed = self._failure(error)
        text = f"output of node {self._claim.spec.key} cannot be stored: {failed.error}"
        return Outcome("failed", error_type=failed.error_type, error=self._cut(text), traceback=failed.traceback)

    def _guarded(self, run: Callable[[], Outcome]) -> Outcome:
        try:
            return run()
        except BaseException as error:  # SystemExit and KeyboardInterrupt fail this node only (X15)
            if self._reraise(error):
                raise
            return self._failure(error)

    def _run_body(self, call: Invoke) -> Outcome:
        claim = self._claim
        task = self._registry.get(claim.spec.task)
        bound = self._bind(task)
        self.missing = bound.missing
        arguments = task.call_arguments(bound.values)
        if task.wants_context:
            arguments[task.wants_context] = self._context()
        with node_running(claim.spec.key), self._guard():
            returned = call(task, arguments)
        return self._returned(normalise_return(returned), task)

    def _run_verify(self, call: Invoke) -> Outcome:
        claim = self._claim
        output = "null" if claim.node_output is None else self._load(claim.node_output)
        command = command_of(claim.spec.verify or "")
        if command is not None:
            with self._guard():
                fault = run_command(command, output, self._settings)
            return Outcome("failed", error_type="VerifyFailed", error=self._cut(fault)) if fault else Outcome("done")
        task = self._registry.get(claim.spec.verify or "")
        name = next(iter(task.parameters), None)
        arguments: dict[str, Any] = {}
        if name is not None:
            arguments[name] = decode(output, task.parameters[name].annotation)
        if task.wants_context:
            arguments[task.wants_context] = self._context()
        with self._guard():
            returned = call(task, arguments)
        if isinstance(returned, Failed):
            return Outcome("failed", error_type="VerifyFailed", error=f"verify failed: {returned.reason}")
        if returned is False:
            return Outcome("failed", error_type="VerifyFailed", error=f"verify failed: {task.name} returned False")
        return Outcome("done")

    def _bind(self, task: AnyTask) -> Bound:
        cache: dict[int, Any] = {}

        def load(head: int, reference: Any) -> Any:
            if head not in cache:
                cache[head] = None if reference is None else json.loads(self._load(reference))
            return cache[head]

        upstream: dict[tuple[str, str], Upstream] = {}
        inputs = until_answered(lambda: self._ledger.inputs(self._message.run_id, self._message.node_id))
        self.subgraph_hash = _subgraph_hash(self._claim.spec, inputs)
        for item in inputs:
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

    def _load(self, reference: OutputRef) -> str:
        return until_answered(lambda: self._ledger.load(reference))

    def _context(self) -> Context:
        claim, message = self._claim, self._message
        return Context(
            run_id=message.run_id,
            key=claim.spec.key,
            attempt=message.attempt,
            idempotency_key=idempotency_key(message.run_id, claim.spec.key, claim.node.evolution),
            missing_inputs=dict(self.missing),
        )

    def _returned(self, returned: Done | Failed | Evolved, task: AnyTask) -> Outcome:
        match returned:
            case Evolved():
                return Outcome("evolved", evolved=returned, summary=returned.reason)
            case Failed(reason=reason, kind=kind):
                return Outcome("failed", error_type=kind or "Failed", error=self._cut(reason))
            case Done(value=value):
                return self._done(returned, value, task)

    def _done(self, returned: Done, value: Any, task: AnyTask) -> Outcome:
        key = self._claim.spec.key
        try:
            text = encode(value, task.return_annotation)
        except EncodingError as error:
            message = f"output of node {key} cannot be stored: {error}"
            return Outcome("failed", error_type="EncodingError", error=self._cut(message))
        limit = self._settings.payload_limit_bytes
        if len(text) > limit:
            message = f"output of node {key} cannot be stored: {len(text)} bytes, the limit is {limit}"
            return Outcome("failed", error_type="PayloadTooLargeError", error=message)
        implemented = returned.implemented
        parts = (implemented,) if isinstance(implemented, str) else tuple(implemented or ())
        return Outcome("done", text=text, summary=returned.summary, implemented=parts)

    def _failure(self, error: BaseException) -> Outcome:
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
        return Outcome(
            "failed",
            error_type=name,
            error=self._cut(f"{name}: {text}" if text else name),
            traceback=self._cut(trace),
        )

    def _cut(self, text: str) -> str:
        """Cut an error text to the limit, saying so; NUL and lone surrogates are written as escapes."""
        limit = self._settings.error_limit_characters
        clean = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
        return clean if len(clean) <= limit else f"{clean[:limit]}… [{len(clean) - limit} more characters]"


def _subgraph_hash(spec: NodeSpec, inputs: tuple[InputEdge, ...]) -> str:
    """Hash what an attempt is asked to do; a retry is asked the same (X6)."""
    given = [
        [item.head_key, item.edge.parameter, item.edge.resolution, item.output.digest if item.output else None]
        for item in inputs
    ]
    return hashlib.sha256(json.dumps([spec.subgraph_hash(), given]).encode()).hexdigest()
