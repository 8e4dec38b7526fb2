"""The public Graph: a ``model.Graph`` that is built from tasks, and can be planned, submitted and run.

It answers for turning calls into nodes and edges: keys, handles, parameters, policies. How a graph behaves is the
model's business, whether it may run the validation's, running it the engine's, which is imported inside functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrun.engine.message import TWIN_PREFIX
from graphrun.errors import ExpressionError, GraphError, RegistryError, RelationError
from graphrun.model.condition import ExpressionCondition
from graphrun.model.edge import Edge
from graphrun.model.freezing import freeze
from graphrun.model.graph import Graph as ModelGraph
from graphrun.model.node import Node
from graphrun.model.parameters import path_step
from graphrun.model.spec import (
    FailurePolicy,
    GraphSpec,
    Join,
    NodeSpec,
    Policy,
    key_fault,
    node_from_document,
    policy_from,
)
from graphrun.registry import AnyTask, Task, TaskRegistry, default_registry

if TYPE_CHECKING:
    from graphrun.client import Client, RunHandle
    from graphrun.engine.inline import InlineRun
    from graphrun.engine.planning import Plan


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node of a graph that is being built; inside a parameter it stands for the node's output.

    ``handle["items"][0]`` stands for that part of the output.
    """

    graph: Graph
    key: str
    path: str = ""

    def __getitem__(self, part: str | int) -> NodeHandle:
        """Return a handle on a part of the output.

        Raises:
            TypeError: the part is neither a key nor an index.
        """
        if isinstance(part, bool) or not isinstance(part, str | int):
            raise TypeError(f"a part of the output of node {self.key!r} is named by a text or an int, not {part!r}")
        return replace(self, path=self.path + path_step(part, first=not self.path))

    def __iter__(self) -> Any:
        """Refuse: how many parts there are is known when the node has run.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the output of node {self.key!r} cannot be unpacked before it ran; use handle[0], handle[1]")

    def __repr__(self) -> str:
        return f"NodeHandle({self.key!r}{', ' + repr(self.path) if self.path else ''})"

    def reference(self) -> dict[str, str]:
        """Return what stands for this handle in stored parameters."""
        return {"$node": self.key, "path": self.path} if self.path else {"$node": self.key}


class Graph(ModelGraph):
    """A graph of tasks.

    Args:
        name: what the graph is called; runs are listed under it.
        failure_policy: what a failed node does to the rest (X5).
        registry: where task names are looked up; the default registry when None.
    """

    __slots__ = ("_numbers", "_registry", "failure_policy")

    payload_fields = ModelGraph.payload_fields | {"failure_policy"}

    def __init__(
        self,
        name: str = "graph",
        *,
        failure_policy: FailurePolicy = "proceed",
        registry: TaskRegistry | None = None,
        **element: Any,
    ) -> None:
        super().__init__(name=name, **element)
        self.failure_policy: FailurePolicy = failure_policy
        self._registry = registry
        self._numbers: dict[str, int] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object; the registry is this process' own and not part of it."""
        return super().to_dict() | {"failure_policy": self.failure_policy}

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new graph; it finds its tasks in the default registry (G28)."""
        self._registry = None
        self._numbers = {}
        super().load_fields(payload, place)
        settings = {"failure_policy": payload.get("failure_policy", "proceed")}
        self.failure_policy = GraphSpec.from_document({"nodes": [], "settings": settings}).settings.failure_policy

    @property
    def registry(self) -> TaskRegistry:
        """Where task names are looked up."""
        return self._registry if self._registry is not None else default_registry()

    def add(  # noqa: PLR0913 - everything a node may say, by name
        self,
        task: AnyTask | str | Any,
        /,
        *,
        key: str | None = None,
        after: NodeHandle | Iterable[NodeHandle] = (),
        params: Mapping[str, Any] | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        join: Join = "any",
        resources: Iterable[str] | None = None,
        owner: str | None = None,
        output: str | None = None,
        done_when: str | None = None,
        verify: AnyTask | str | None = None,
        why: str | None = None,
        scope: str | None = None,
        subgraph: Iterable[str] = (),
        **arguments: Any,
    ) -> NodeHandle:
        """Add a node.

        Args:
            task: a ``@task`` function, a plain Celery task of an installed app, or the name of either.
            key: unique in the graph; derived from the task's name when None: ``fetch``, ``fetch-2`` …
            after: nodes that must have succeeded first, without giving a value.
            params: parameters by name, for those whose name is one of this method's own.
            policy: attempts, time limits, queue …: a ``Policy``, or a dict of what differs from the task's defaults.
            join: ``any`` or ``all`` (X4).
            resources: names that no other node of the same wave may share (X2).
            owner: who does it; the task's owner when None.
            output: the path or URL that the node produces.
            done_when: ``"output"`` or the name of a registered condition (X10).
            verify: a task that checks the node's output (X16).
            why: the reason this node exists.
            scope: what it is to do, in words; an evolution may rewrite it.
            subgraph: the parts the node is to implement, compared with what it says it did (D15).
            **arguments: the task's parameters; a handle anywhere inside one is a data edge.

        Raises:
            RegistryError: the task is unknown, or parameters do not fit its signature; every fault is named.
            FormatError: the policy or another option has a value that it cannot have; every fault is named.
            RelationError: the key is taken, or a handle belongs to another graph or its node is gone.
            GraphError: the key cannot be one, or ``after`` holds no handles.
        """
        known = self._task(task)
        twice = [name for name in params or {} if name in arguments]
        if twice:
            raise RegistryError(f"task {known.name}: given twice, in params and by name: {', '.join(twice)}")
        stored, heads = self._bound(known, {**(params or {}), **arguments})
        before = _handles(after)
        for handle in [*before, *(handle for _name, handle in heads)]:
            self._require_own(handle)
        defaults = known.defaults
        key = key if key is not None else self._derived_key(known.name)
        if fault := key_fault(key):
            raise GraphError(fault)
        spec = NodeSpec(
            key=key,
            task=known.name,
            params=stored,
            policy=_policy(known, policy),
            join=join,
            resources=_texts("resources", defaults.resources if resources is None else resources),
            owner=owner or defaults.owner,
            output=output,
            done_when=_name(done_when) or _name(defaults.done_when),
            verify=_name(verify) or _name(defaults.verify),
            why=why,
            scope=scope,
            subgraph=_texts("subgraph", subgraph),
        )
        options = {k: v for k, v in spec.to_document().items() if k not in ("key", "task", "params")}
        if options:
            node_from_document({"key": key, "task": known.name, **options}, source=f"node {key!r}")
        node = Node(key=key, task=known.name, params=stored, options=options)
        self.add_node(node)
        for name, head in dict.fromkeys((name, handle.key) for name, handle in heads):
            self.add_edge(Edge(self[head], node, parameter=name))
        for head in dict.fromkeys(handle.key for handle in before):
            self.add_edge(Edge(self[head], node))
        return NodeHandle(self, node.key)

    def connect(
        self,
        head: NodeHandle,
        tail: NodeHandle,
        *,
        when: str | None = None,
        required: bool | None = None,
        enabled: bool | None = None,
    ) -> None:
        """Amend the edges that stand between two nodes, or add an order edge where there is none.

        Args:
            head: where the edge begins.
            tail: where it ends.
            when: a safe expression over ``result, status, params, run``; the edge delivers when it is true (X3).
            required: whether a failed head blocks the tail; None leaves it to the failure policy (X5).
            enabled: a disabled edge counts for nothing.

        Raises:
            ExpressionError: the condition cannot be read.
            RelationError: a handle belongs to another graph.
        """
        for handle in (head, tail):
            self._require_own(handle)
        try:
            condition = None if when is None else ExpressionCondition(when)
        except ExpressionError as error:
            raise ExpressionError(f"edge {head.key} -> {tail.key}: {error}") from error
        between = [edge for edge in self.find_node_edge(head.key, "out") if edge.tail == self[tail.key].id]
        if not between:
            edge = Edge(self[head.key], self[tail.key])
            self.add_edge(edge)
            between = [edge]
        for edge in between:
            if condition is not None:
                edge.condition = condition
            if required is not None:
                edge.update_property("required", required)
            if enabled is not None:
                edge.update_property("enabled", enabled)

    def freeze(self) -> GraphSpec:
        """Return the immutable spec of this graph, the one that is planned and run (G32).

        Raises:
            FormatError: the failure policy is none.
        """
        return freeze(self).with_settings(failure_policy=self.failure_policy)

    def plan(self) -> Plan:
        """Return how this graph would run: waves, validation report, delegated graph.

        Raises:
            ValidationFailedError: it may not run; the error carries every fault.
        """
        from graphrun.engine.planning import make_plan  # noqa: PLC0415 - building a graph loads no engine
        from graphrun.settings import Settings  # noqa: PLC0415

        return make_plan(self.freeze(), self.registry, Settings.load())

    def submit(self, client: Client | None = None, **options: Any) -> RunHandle:
        """Submit this graph through a client, one made from the settings when None; see ``Client.submit``."""
        if client is None:
            from graphrun.client import Client as MadeFromSettings  # noqa: PLC0415

            client = MadeFromSettings(registry=self._registry)
        return client.submit(self, **options)

    def run(self, **options: Any) -> InlineRun:
        """Run this graph here, in this process, without a broker, through the same planner and ledger.

        Args:
            **options: those of ``graphrun.engine.inline.run_inline``.
        """
        from graphrun.engine.inline import run_inline  # noqa: PLC0415

        return run_inline(self.freeze(), registry=self.registry, **options)

    def _task(self, task: Any) -> AnyTask:
        if isinstance(task, Task):
            self.registry.register(task)  # it refuses another function of the same name
            return task
        if isinstance(task, str):
            return self._named(task)
        if hasattr(task, "apply_async") and hasattr(task, "run"):
            from graphrun.engine.twin import twin_of  # noqa: PLC0415 - only a Celery task brings Celery in

            known = twin_of(task)
            self.registry.register(known)
            return known
        raise RegistryError(f"{task!r} is no task: decorate the function with @task, or give a Celery task or a name")

    def _named(self, name: str) -> AnyTask:
        twin = TWIN_PREFIX + name
        if name not in self.registry and twin in self.registry:
            return self.registry.get(twin)
        return self.registry.get(name)

    def _bound(self, task: AnyTask, params: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, NodeHandle]]]:
        """Check and encode parameters, and collect the handles in them by parameter, in declared order."""
        bound, faults = task.bind(params, lambda value: isinstance(value, NodeHandle))
        if faults:
            listed = "; ".join(str(fault) for fault in faults)
            raise RegistryError(f"task {task.name.removeprefix(TWIN_PREFIX)}: {listed}")
        heads: list[tuple[str, NodeHandle]] = []
        stored = {name: _stored(value, name, heads) for name, value in bound.items()}
        return stored, heads

    def _require_own(self, handle: object) -> None:
        if not isinstance(handle, NodeHandle):
            raise GraphError(f"{handle!r} is no node of this graph: give what add() returned")
        if handle.graph is not self:
            raise RelationError(f"node {handle.key!r} belongs to another graph ({handle.graph.name!r})")
        if not self._has_key(handle.key):
            raise RelationError(f"node {handle.key!r} is not in {self!r} any more")

    def _derived_key(self, name: str) -> str:
        stem = name.rpartition(".")[2].rpartition(":")[2]
        number = self._numbers.get(stem, 0) + 1
        while self._has_key(key := stem if number == 1 else f"{stem}-{number}"):
            number += 1
        # Where the next search begins: numbers are not given twice, and a graph of many nodes is built in linear time.
        self._numbers[stem] = number
        return key

    def _has_key(self, key: str) -> bool:
        try:
            self[key]
        except GraphError:
            return False
        return True


def _stored(value: Any, name: str, heads: list[tuple[str, NodeHandle]]) -> Any:
    """Put references where handles stand; what holds no handle is plain already."""
    if isinstance(value, NodeHandle):
        heads.append((name, value))
        return value.reference()
    if isinstance(value, dict):
        if "$literal" in value:
            inside: list[tuple[str, NodeHandle]] = []
            _stored(value["$literal"], name, inside)
            if inside:
                key = inside[0][1].key
                raise RegistryError(
                    f"parameter {name!r}: node {key!r} stands in a dict with a key that begins with '$', where nothing "
                    "is replaced by an output; give it another key"
                )
        return {key: _stored(item, name, heads) for key, item in value.items()}
    if isinstance(value, list):
        return [_stored(item, name, heads) for item in value]
    return value


def _policy(task: AnyTask, given: Policy | Mapping[str, Any] | None) -> Policy:
    if isinstance(given, Policy):
        return given
    default = task.defaults.policy()
    return default if not given else policy_from(default, given)


def _handles(after: Any) -> list[NodeHandle]:
    return [after] if isinstance(after, NodeHandle) or not isinstance(after, Iterable) else list(after)


def _texts(what: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise GraphError(f"{what} is a list of texts, not the text {given!r}")
    return tuple(given)


def _name(task: Any) -> str | None:
    name: str | None = getattr(task, "name", task)
    return name
