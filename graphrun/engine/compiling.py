"""Compiling a graph for a run: checked against the registry, split into waves, made into the rows that are submitted.

Used by ``plan`` and ``submit`` alike, so that ``graphrun plan`` is green exactly when submit would accept, and by a
worker for the parts that an evolution adds. It sends and stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrun.codec import from_plain
from graphrun.errors import EncodingError, RegistryError
from graphrun.execution.run import EdgeRun, NewEdge, NodeRun, planned_node
from graphrun.model.parameters import is_reference, is_tagged
from graphrun.model.spec import EdgeSpec, FailurePolicy, GraphSpec, NodeSpec, command_of, references
from graphrun.model.validation import Issue, Report, validate
from graphrun.plan.waves import assign_waves
from graphrun.registry import AnyTask, TaskRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A graph that may run: its rows as they are before anything started, and the validation report with warnings."""

    spec: GraphSpec
    nodes: tuple[NodeRun, ...]
    edges: tuple[EdgeRun, ...]
    waves: tuple[int, ...]
    report: Report

    @property
    def depth(self) -> int:
        """The number of waves."""
        return max(self.waves, default=0)


def check(spec: GraphSpec, registry: TaskRegistry) -> Report:
    """Return every fault of a graph at once: shape, cycle, unknown tasks, parameters, conditions (X1)."""
    report = validate(spec, lambda node: node_issues(node, registry))
    return replace(report, issues=(*report.issues, *_disabled_issues(spec, registry)))


def compile_graph(spec: GraphSpec, registry: TaskRegistry) -> Compiled:
    """Check a graph and make its rows.

    Raises:
        ValidationFailedError: with every fault; nothing was written or sent (X1).
    """
    report = check(spec, registry)
    report.raise_if_refused(spec.name)
    edges = list(_unique(edge for edge in spec.edges if edge.enabled))
    pairs = [(spec.position[edge.head], spec.position[edge.tail]) for edge in edges]
    waves = assign_waves(len(spec.nodes), pairs, [node.resources for node in spec.nodes])
    return Compiled(
        spec=spec,
        nodes=tuple(planned_node(number, node, wave=waves[number]) for number, node in enumerate(spec.nodes)),
        edges=tuple(_rows(spec, edges, registry)),
        waves=tuple(waves),
        report=report,
    )


def node_issues(node: NodeSpec, registry: TaskRegistry) -> list[Issue]:
    """Return the faults of one node that only its task's signature shows: unknown task, bad parameters."""
    issues: list[Issue] = []
    if not registry.is_external(node.task):  # the signature of an external task is known where it runs
        try:
            issues += _parameter_issues(node, registry.get(node.task))
        except RegistryError as error:
            issues.append(Issue("error", "unknown_task", str(error), node=node.key))
    if node.verify is not None and (fault := _verify_fault(node.verify, registry)):
        issues.append(Issue("error", "unknown_task", fault, node=node.key, path="verify"))
    if node.done_when not in (None, "output", *registry.condition_names()):
        message = f"done_when names {node.done_when!r}, which is neither 'output' nor a condition"
        issues.append(Issue("error", "invalid_condition", message, node=node.key))
    if node.done_when == "output" and node.output is None:
        issues.append(Issue("error", "invalid_condition", "done_when is 'output', but none is declared", node=node.key))
    return issues


def _verify_fault(verify: str, registry: TaskRegistry) -> str | None:
    try:
        known = command_of(verify) is not None or verify in registry
    except ValueError as error:
        return f"{verify!r} is no command: {error}"
    return None if known else f"{verify!r} is neither a task nor a command (a command begins with '$ ')"


def _parameter_issues(node: NodeSpec, task: AnyTask) -> list[Issue]:
    try:
        literals = {name: decoded(value) for name, value in node.params.items()}
    except EncodingError as error:
        return [Issue("error", "bad_params", str(error), node=node.key, path="params")]
    _bound, faults = task.bind(literals, is_reference)
    return [
        Issue("error", "bad_params", fault.message, node=node.key, path=f"params.{fault.parameter}") for fault in faults
    ]


def decoded(value: Any) -> Any:
    """Return a stored parameter as a value, references left where they stand."""
    if is_reference(value):
        return value
    if isinstance(value, Mapping):
        if is_tagged(value):
            return from_plain(value)
        return {key: decoded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [decoded(item) for item in value]
    return value


def _disabled_issues(spec: GraphSpec, registry: TaskRegistry) -> Iterable[Issue]:
    """Name parameters that a disabled edge alone would give, and that cannot do without."""
    given = {(edge.head, edge.tail, edge.parameter) for edge in spec.edges if edge.enabled}
    lost = [edge for edge in spec.edges if edge.parameter is not None and not edge.enabled]
    needs = _Needs(spec.nodes if lost else (), registry, spec.settings.failure_policy)
    for edge in lost:
        tail_is_known = edge.tail in spec.position and not registry.is_external(spec.node(edge.tail).task)
        if tail_is_known and (edge.head, edge.tail, edge.parameter) not in given and not needs.of(edge)[1]:
            message = (
                f"the edge from {edge.head!r} is disabled, and the parameter has neither a default nor allows None"
            )
            yield Issue("error", "bad_params", message, node=edge.tail, path=f"params.{edge.parameter}")


def new_edges(
    nodes: Iterable[NodeSpec],
    edges: Iterable[EdgeSpec],
    specs: Mapping[str, NodeSpec],
    registry: TaskRegistry,
    policy: FailurePolicy,
) -> tuple[NewEdge, ...]:
    """Compile the edges that an evolution adds, implied and declared ones, without disabled ones."""
    needs = _Needs([*specs.values(), *nodes], registry, policy)
    compiled: list[NewEdge] = []
    for edge in _unique(edge for edge in edges if edge.enabled):
        required, droppable = needs.of(edge)
        compiled.append(
            NewEdge(
                head=edge.head,
                tail=edge.tail,
                parameter=edge.parameter,
                when=edge.when,
                required=required,
                droppable=droppable,
            )
        )
    return tuple(compiled)


def _unique(edges: Iterable[EdgeSpec]) -> Iterable[EdgeSpec]:
    """Drop repeated edges: equal ends, parameter and condition count once (X2)."""
    seen: dict[tuple[str, str, str | None, str | None], EdgeSpec] = {}
    for edge in edges:
        seen.setdefault(edge.identity, edge)
    return seen.values()


def _rows(spec: GraphSpec, edges: Iterable[EdgeSpec], registry: TaskRegistry) -> Iterable[EdgeRun]:
    needs = _Needs(spec.nodes, registry, spec.settings.failure_policy)
    position = spec.position
    for number, edge in enumerate(edges):
        required, droppable = needs.of(edge)
        head, tail = position[edge.head], position[edge.tail]
        yield EdgeRun(number, head, tail, edge.parameter, edge.when, required, droppable)


class _Needs:
    """What each edge means to its tail: whether a failed head blocks it, and whether it can do without a value."""

    def __init__(self, nodes: Iterable[NodeSpec], registry: TaskRegistry, policy: FailurePolicy) -> None:
        self._nodes = {node.key: node for node in nodes}
        self._registry = registry
        self._policy = policy
        self._nested: dict[str, dict[tuple[str, str], bool]] = {}

    def of(self, edge: EdgeSpec) -> tuple[bool, bool]:
        """Return (required, droppable) of an edge (X4, X5)."""
        if edge.parameter is None:
            return (edge.required is not False, True)
        tail = self._nodes.get(edge.tail)
        if tail is None:
            return (edge.required is not False, True)
        optional = _optional(_task(self._registry, tail.task), edge.parameter)
        if edge.required is not None:
            required = edge.required
        elif self._policy == "proceed":
            required = optional is not True
        else:
            required = True
        return required, optional is not False or self._is_nested(tail, edge.parameter, edge.head)

    def _is_nested(self, tail: NodeSpec, parameter: str, head: str) -> bool:
        """Say whether a head's output stands inside a list or dict of a parameter, where it may be left out."""
        if tail.key not in self._nested:
            found = references(tail.params)
            self._nested[tail.key] = {(name, key): inside for name, key, _path, inside in found}
        return self._nested[tail.key].get((parameter, head), False)


def _optional(task: AnyTask | None, name: str) -> bool | None:
    """Say whether a parameter can do without a value; None for one of ``**kwargs``, which may simply be absent."""
    if task is None:
        return False
    parameter = task.parameters.get(name)
    if parameter is None:
        return None
    return parameter.has_default or parameter.allows_none


def _task(registry: TaskRegistry, name: str) -> AnyTask | None:
    try:
        return registry.get(name)
    except RegistryError:
        return None
