"""What a run must come to, straight from the words of X3 to X8, X16 and X19, written apart from the planner.

It recurses over the nodes, a node after its heads; it knows no events, rows or gates, and only under ``fail_fast``
waves, because which waves are dispatched is part of that rule. It imports nothing of ``graphrun``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .cases import CONDITIONS, Case, EdgeCase, NodeCase

Waiting = Literal["retry", "verification", "evolution"]


@dataclass(frozen=True)
class Fate:
    """How a node ends."""

    state: str
    attempts: int = 0
    cause: str | None = None
    roots: tuple[str, ...] = ()

    @property
    def because_of_a_failure(self) -> bool:
        return self.state == "failed" or (self.state == "skipped" and self.cause != "condition")


@dataclass(frozen=True)
class Resolved:
    """How an edge resolves (X3)."""

    edge: EdgeCase
    kind: Literal["delivered", "suppressed", "missing", "blocked"]
    cause: str | None = None
    roots: tuple[str, ...] = ()


def expected(case: Case, evolutions: Mapping[str, int] | None = None) -> tuple[str, dict[str, Fate]]:
    """Return the state of the run and the fate of each node, without ``fail_fast``.

    Args:
        case: the graph, as evolved.
        evolutions: how many evolutions of each node were accepted.
    """
    accepted = evolutions or {}
    by_key = {node.key: node for node in case.nodes}
    fates: dict[str, Fate] = {}

    def fate(key: str) -> Fate:
        if key not in fates:
            for edge in case.edges:
                if edge.tail == key:
                    fate(edge.head)
            node = by_key[key]
            fates[key] = _before_start(node, case, by_key, fates) or _ended(_life(node, accepted.get(key, 0)))
        return fates[key]

    for node in case.nodes:
        fate(node.key)
    return _run_state(fates), {node.key: fates[node.key] for node in case.nodes}


def expected_fail_fast(case: Case, waves: Mapping[str, int]) -> tuple[str, dict[str, Fate]]:
    """Return the same under ``fail_fast``, when every round has ended before its gate is called (X5)."""
    by_key = {node.key: node for node in case.nodes}
    fates = {node.key: Fate("succeeded") for node in case.nodes if node.pre_done}
    tripped = False
    for wave in range(1, max(waves.values(), default=0) + 1):
        lives = {}
        for node in case.nodes:
            if waves[node.key] != wave or node.pre_done:
                continue
            if tripped:
                fates[node.key] = Fate("cancelled", cause="fail_fast")
                continue
            decided = _before_start(node, case, by_key, fates)
            if decided is None:
                lives[node.key] = _life(node, 0)
            else:
                fates[node.key] = decided
        tripped = _play_wave(lives, fates) or tripped
    return _run_state(fates), {node.key: fates[node.key] for node in case.nodes}


def _play_wave(lives: dict[str, _Life], fates: dict[str, Fate]) -> bool:
    """Play the rounds of a wave; return whether a node failed for good, after which nothing more starts."""
    while lives:
        waiting: dict[str, tuple[Waiting, int]] = {}
        failed = False
        for key, life in lives.items():
            try:
                waiting[key] = next(life)
            except StopIteration as ended:
                fates[key] = ended.value
                failed = failed or ended.value.state == "failed"
        if failed:
            for key, (what, attempts) in waiting.items():
                # A retry that is not taken leaves a failed node; what else was not let start is cancelled.
                fates[key] = (
                    Fate("failed", attempts) if what == "retry" else Fate("cancelled", attempts, cause="fail_fast")
                )
            return True
        lives = {key: lives[key] for key in waiting}
    return False


def _run_state(fates: Mapping[str, Fate]) -> str:
    """X19."""
    return "failed" if any(fate.because_of_a_failure for fate in fates.values()) else "succeeded"


# --- X6, X7, X16: the attempts of a node

_Life = Generator[tuple[Waiting, int], None, Fate]


def _life(node: NodeCase, accepted: int) -> _Life:
    """Live through a node's attempts; yield, with the attempts so far, whenever it waits for its gate."""
    attempt = tries = 0
    while True:
        attempt, tries = attempt + 1, tries + 1
        step = node.step(attempt)
        if step.kind == "unclaimed" or step.lost >= node.max_deliveries:
            return Fate("failed", attempt)
        error, final = step.error, step.final
        if step.kind == "evolve":
            yield "evolution", attempt
            if not accepted:
                return Fate("failed", attempt)
            accepted, tries = accepted - 1, 0
            continue
        if step.kind == "done":
            if not node.verified:
                return Fate("succeeded", attempt)
            yield "verification", attempt
            if step.verdict_lost >= node.max_deliveries:
                return Fate("failed", attempt)
            if step.verdict:
                return Fate("succeeded", attempt)
            error, final = "VerifyFailed", False
        if final or tries >= node.max_attempts or (node.retry_on and error not in node.retry_on):
            return Fate("failed", attempt)
        yield "retry", attempt


def _ended(life: _Life) -> Fate:
    while True:
        try:
            next(life)
        except StopIteration as ended:
            fate: Fate = ended.value
            return fate


# --- X3, X4, X10: whether a node starts


def _before_start(node: NodeCase, case: Case, by_key: Mapping[str, NodeCase], fates: Mapping[str, Fate]) -> Fate | None:
    """Return the fate of a node that does not start, or None for one that does."""
    if node.pre_done:
        return Fate("succeeded")
    inbound = [_resolve(edge, by_key[edge.head], fates[edge.head]) for edge in case.edges if edge.tail == node.key]
    if not inbound:
        return None
    blocked = [item for item in inbound if item.kind == "blocked"]
    if blocked:
        return _skipped(blocked)
    suppressed = [item for item in inbound if item.kind == "suppressed"]
    if suppressed and (node.join == "all" or len(suppressed) == len(inbound)):
        return _skipped(inbound)
    given = {(item.edge.head, item.edge.parameter) for item in inbound if item.kind == "delivered"}
    unbound = [
        item
        for item in inbound
        if item.kind != "delivered" and not item.edge.droppable and (item.edge.head, item.edge.parameter) not in given
    ]
    return _skipped(unbound) if unbound else None


def _skipped(because: Iterable[Resolved]) -> Fate:
    carrying = [item for item in because if item.cause is not None]
    cause = next((item.cause for item in carrying if item.cause != "condition"), "condition")
    roots = dict.fromkeys(root for item in carrying if item.cause == cause for root in item.roots)
    return Fate("skipped", cause=cause, roots=tuple(roots))


def _resolve(edge: EdgeCase, head: NodeCase, fate: Fate) -> Resolved:
    reads_status, holds = CONDITIONS[edge.when] if edge.when else (False, None)
    if holds is not None and (reads_status or fate.state == "succeeded"):
        result = head.value if fate.state == "succeeded" else None
        try:
            true = holds(result=result, status=fate.state, params={"x": head.x})
        except (ZeroDivisionError, TypeError):
            return Resolved(edge, "blocked", "condition_error", (f"{edge.head} -> {edge.tail}",))
        if true:
            return Resolved(edge, "delivered")
        return _carrying(Resolved(edge, "suppressed", "condition", (head.key,)), fate)
    if fate.state == "succeeded":
        return Resolved(edge, "delivered")
    if fate.because_of_a_failure:
        return _carrying(
            Resolved(edge, "blocked" if edge.required else "missing", "upstream_failed", (head.key,)), fate
        )
    return _carrying(Resolved(edge, "suppressed"), fate)


def _carrying(resolved: Resolved, fate: Fate) -> Resolved:
    """An edge carries its head's cause and roots; a head that has none is the root itself."""
    return replace(resolved, cause=fate.cause, roots=fate.roots) if fate.cause else resolved
