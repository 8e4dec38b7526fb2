"""Whether a graph may run: every fault of its document in one report (X1, Z14, Z15).

It knows no task and no registry: what only a signature shows comes in as ``check_node``. It changes nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from graphrun.errors import ExpressionError, ValidationFailedError
from graphrun.model.expression import compile_expression
from graphrun.model.parts import MAX_NAME_CHARACTERS, storable
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, key_fault
from graphrun.model.traversal import find_cycle, topological_order

_SUGGEST_AMONG = 1_000  # looking for a similar key among more takes too long
_UNSTORABLE = "has a NUL or a lone surrogate, which no database stores"
CONDITION_NAMES = frozenset({"result", "status", "params", "run"})


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong, or worth a look.

    Attributes:
        severity: errors block submit and publish, warnings do not.
        code: one of the codes of ``contracts.md``.
        node: the key of the node concerned.
        edge: the edge concerned, ``head -> tail``.
        path: the field concerned.
        hint: what to do about it.
    """

    severity: Literal["error", "warning"]
    code: str
    message: str
    node: str | None = None
    edge: str | None = None
    path: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = f"node {self.node!r}: " if self.node is not None else f"edge {self.edge}: " if self.edge else ""
        path = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}: {place}{path}{self.message}{hint}"


@dataclass(frozen=True, slots=True)
class Report:
    """All issues of a graph, in the order of its document."""

    issues: tuple[Issue, ...] = ()

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues for which the graph is refused."""
        return tuple(issue for issue in self.issues if issue.severity == "error")

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The issues that do not block."""
        return tuple(issue for issue in self.issues if issue.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether the graph may run."""
        return not self.errors

    def raise_if_refused(self, name: str) -> None:
        """Refuse the graph when it has an error.

        Raises:
            ValidationFailedError: with every error.
        """
        if self.errors:
            raise ValidationFailedError(name, self.errors)


def validate(spec: GraphSpec, check_node: Callable[[NodeSpec], Iterable[Issue]] | None = None) -> Report:
    """Return every fault of a graph.

    Args:
        spec: the frozen graph.
        check_node: gives what only a task's signature shows; asked once a node.
    """
    issues: list[Issue] = []
    if not 0 < len(spec.name) <= MAX_NAME_CHARACTERS:
        message = f"a graph's name has 1 to {MAX_NAME_CHARACTERS} characters, this one has {len(spec.name)}"
        issues.append(Issue("error", "invalid_name", message))
    if not spec.nodes:
        issues.append(Issue("warning", "empty_graph", "the graph has no node; it succeeds at once"))
    issues += _node_issues(spec)
    if check_node is not None:
        for node in spec.nodes:
            issues += check_node(node)
    issues += _edge_issues(spec)
    issues += _cycle_issues(spec)
    return Report(tuple(issues))


def _node_issues(spec: GraphSpec) -> Iterable[Issue]:
    seen: set[str] = set()
    for node in spec.nodes:
        fault = key_fault(node.key)
        if fault:
            yield Issue("error", "invalid_key", fault, node=node.key)
        if node.key in seen:
            yield Issue("error", "duplicate_node", "the key is used twice", node=node.key, hint="rename one of them")
        seen.add(node.key)
        texts = {"task": node.task, "verify": node.verify, "policy.queue": node.policy.queue}
        for path, text in texts.items():
            if text is not None and not storable(text):
                yield Issue("error", "invalid_text", f"{text!r} {_UNSTORABLE}", node=node.key, path=path)


def _edge_issues(spec: GraphSpec) -> Iterable[Issue]:
    seen: set[tuple[str, str, str | None, str | None]] = set()
    position = spec.position
    for edge in spec.edges:
        if edge.head not in position or edge.tail not in position:
            ends = dict.fromkeys((edge.head, edge.tail))
            yield from (_unknown_end(spec, edge, end) for end in ends if end not in position)
        identity = edge.identity
        if identity in seen:
            yield Issue("warning", "duplicate_edge", "it is given more than once and counts once", edge=str(edge))
        seen.add(identity)
        if edge.parameter is not None and not storable(edge.parameter):
            message = f"{edge.parameter!r} {_UNSTORABLE}"
            yield Issue("error", "invalid_text", message, edge=str(edge), path="parameter")
        if edge.when is not None:
            yield from _condition_issues(edge, edge.when)


def _unknown_end(spec: GraphSpec, edge: EdgeSpec, end: str) -> Issue:
    few = len(spec.position) <= _SUGGEST_AMONG
    close = difflib.get_close_matches(end, spec.position, n=1) if few else []
    hint = f"did you mean {close[0]!r}?" if close else "add the node, or take the edge out"
    return Issue("error", "unknown_edge_end", f"node {end!r} is not in the graph", edge=str(edge), hint=hint)


def _condition_issues(edge: EdgeSpec, when: str) -> Iterable[Issue]:
    try:
        names = compile_expression(when).names
    except ExpressionError as error:
        yield Issue("error", "invalid_condition", str(error), edge=str(edge), path="when")
        return
    unknown = sorted(names - CONDITION_NAMES)
    if unknown:
        known = ", ".join(sorted(CONDITION_NAMES))
        message = f"{when!r} reads {', '.join(unknown)}"
        yield Issue(
            "error", "invalid_condition", message, edge=str(edge), path="when", hint=f"a condition sees {known}"
        )


def _cycle_issues(spec: GraphSpec) -> Iterable[Issue]:
    """Name one cycle over the enabled edges, in order (G24, Z13)."""
    outgoing: dict[str, dict[int, str]] = {key: {} for key in spec.position}
    for number, edge in enumerate(spec.edges):
        if edge.enabled and edge.head in outgoing and edge.tail in outgoing:
            outgoing[edge.head][number] = edge.tail
    sound = set(topological_order(outgoing))
    if len(sound) == len(outgoing):
        return
    left = {
        key: {number: tail for number, tail in tails.items() if tail not in sound}
        for key, tails in outgoing.items()
        if key not in sound
    }
    cycle = find_cycle(left)
    if cycle:
        yield Issue("error", "cycle", " -> ".join([*cycle, cycle[0]]), hint="take one of these edges out")
