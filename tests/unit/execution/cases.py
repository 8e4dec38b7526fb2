"""Random graphs with random outcomes, as plain values that the oracle and the driver both read.

Nothing of the planner is imported: what a failure policy makes of an edge is resolved here, as the compiler does (X5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

Kind = Literal["done", "fail", "evolve", "unclaimed"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What becomes of one attempt. ``lost`` and ``verdict_lost`` deliveries of it are lost before it ends."""

    kind: Kind = "done"
    error: str = "Boom"
    final: bool = False
    outside: bool = False
    lost: int = 0
    verdict: bool = True
    verdict_lost: int = 0


@dataclass(frozen=True, kw_only=True)
class NodeCase:
    """A node and its script; the last step repeats."""

    key: str
    steps: tuple[Step, ...] = (Step(),)
    value: int | None = 1
    x: int = 1
    max_attempts: int = 2
    max_deliveries: int = 3
    max_evolutions: int = 2
    retry_on: tuple[str, ...] = ()
    backoff: bool = False
    join: Literal["any", "all"] = "any"
    pre_done: bool = False
    verified: bool = False
    resources: tuple[str, ...] = ()

    def step(self, attempt: int) -> Step:
        return self.steps[min(attempt, len(self.steps)) - 1]


@dataclass(frozen=True, kw_only=True)
class EdgeCase:
    """An enabled edge, its ends by key."""

    head: str
    tail: str
    parameter: str | None = None
    when: str | None = None
    required: bool = True
    droppable: bool = True


@dataclass(frozen=True, kw_only=True)
class Case:
    nodes: tuple[NodeCase, ...] = ()
    edges: tuple[EdgeCase, ...] = ()
    policy: Literal["proceed", "skip_dependents", "fail_fast"] = "proceed"
    extra: Mapping[str, NodeCase] = field(default_factory=dict)  # scripts of nodes that an evolution may add


def _never(**_names: Any) -> bool:
    raise ZeroDivisionError


# Text -> (reads status, the same in Python): what the planner evaluates, and what the oracle thinks of it.
CONDITIONS: Mapping[str, tuple[bool, Callable[..., bool]]] = {
    "result > 0": (False, lambda result, **_: result > 0),
    "result < 0": (False, lambda result, **_: result < 0),
    "params.x > 0": (False, lambda params, **_: params["x"] > 0),
    "1 / 0 > 0": (False, _never),
    'status == "succeeded"': (True, lambda status, **_: status == "succeeded"),
    'status == "failed"': (True, lambda status, **_: status == "failed"),
    'status == "skipped"': (True, lambda status, **_: status == "skipped"),
    'status in ("succeeded", "skipped")': (True, lambda status, **_: status in ("succeeded", "skipped")),
    'status != "" and params.x > 0': (True, lambda params, **_: params["x"] > 0),
    'status == "failed" or result > 0': (True, lambda status, result, **_: status == "failed" or result > 0),
    "status > 1": (True, _never),
}


def random_case(
    random: Random,
    size: int,
    *,
    policy: Literal["proceed", "skip_dependents", "fail_fast"] | None = None,
    resources: bool = False,
    evolving: bool = False,
) -> Case:
    """Return a graph of ``size`` nodes; edges point from earlier nodes to later ones."""
    policy = policy or random.choice(("proceed", "skip_dependents"))
    density = random.choice((0.1, 0.25, 0.5))
    nodes = tuple(_random_node(random, f"n{number}", resources=resources, evolving=evolving) for number in range(size))
    edges: dict[tuple[Any, ...], EdgeCase] = {}
    for tail in range(size):
        for head in range(tail):
            if random.random() < density:
                edge = _random_edge(random, nodes[head].key, nodes[tail].key, policy)
                for one in (edge, _random_edge(random, edge.head, edge.tail, policy))[: 1 + (random.random() < 0.15)]:
                    edges.setdefault((one.head, one.tail, one.parameter, one.when), one)
    shuffled = list(edges.values())
    random.shuffle(shuffled)
    return Case(nodes=nodes, edges=tuple(shuffled), policy=policy)


def _random_node(random: Random, key: str, *, resources: bool, evolving: bool = False) -> NodeCase:
    healthy = random.random() < 0.6
    steps = (Step(),) if healthy else tuple(_random_step(random) for _ in range(random.randint(1, 4)))
    if evolving and random.random() < 0.3:
        steps = (*(Step(kind="evolve") for _ in range(random.choice((1, 1, 2, 3)))), *steps)
    return NodeCase(
        key=key,
        steps=steps,
        value=random.choice((1, -1, -1, None)),
        x=random.choice((1, -1)),
        max_attempts=random.randint(1, 3),
        max_deliveries=random.randint(1, 3),
        max_evolutions=random.randint(0, 2),
        retry_on=random.choice(((), (), (), ("Boom",), ("VerifyFailed",))),
        backoff=random.random() < 0.2,
        join=random.choice(("any", "any", "all")),
        pre_done=random.random() < 0.08,
        verified=random.random() < 0.2,
        resources=(random.choice("rs"),) if resources and random.random() < 0.5 else (),
    )


def _random_step(random: Random) -> Step:
    return Step(
        kind=random.choice(
            ("done", "fail", "fail", "fail", "unclaimed") if random.random() < 0.2 else ("done", "fail")
        ),
        error=random.choice(("Boom", "Boom", "Bang")),
        final=random.random() < 0.1,
        outside=random.random() < 0.2,
        lost=random.choice((0, 0, 0, 1, 2, 3)),
        verdict=random.random() < 0.6,
        verdict_lost=random.choice((0, 0, 0, 1, 2, 3)),
    )


def _random_edge(random: Random, head: str, tail: str, policy: str) -> EdgeCase:
    when = random.choice(tuple(CONDITIONS)) if random.random() < 0.4 else None
    said = random.choice((None, None, None, True, False))
    if random.random() < 0.4:
        return EdgeCase(head=head, tail=tail, when=when, required=said is not False)
    optional, nested = random.random() < 0.6, random.random() < 0.3
    required = said if said is not None else (not optional if policy == "proceed" else True)
    parameter = random.choice("pq")
    return EdgeCase(
        head=head, tail=tail, parameter=parameter, when=when, required=required, droppable=optional or nested
    )


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What an evolved return asks for, by key. Much of it breaks a rule, and then all of it is refused (X7)."""

    x: int = 1
    add: tuple[NodeCase, ...] = ()
    edges: tuple[EdgeCase, ...] = ()
    remove: tuple[tuple[str, str], ...] = ()
    refusal: str | None = None


def random_wish(
    random: Random, *, fresh: str, keys: list[str], unstarted: list[str], ends: list[tuple[str, str]]
) -> Wish:
    """Return a wish of a node that runs in a graph.

    Args:
        random: decides.
        fresh: a prefix of keys that are free.
        keys: of all nodes.
        unstarted: of the nodes that may change.
        ends: of all edges.
    """
    add = [
        replace(_random_node(random, f"{fresh}{number}", resources=True), pre_done=False)
        for number in range(random.choice((0, 1, 1, 2)))
    ]
    if random.random() < 0.05:
        add.append(NodeCase(key=random.choice(keys)))
    new = [node.key for node in add]
    tails = (new + unstarted if random.random() < 0.9 else keys) or keys
    edges = []
    for _ in range(random.choice((0, 1, 2, 3)) if new or unstarted else 0):
        head, tail = random.choice(keys + new), random.choice(tails)
        edges.append(_random_edge(random, head if random.random() < 0.97 else "nobody", tail, "proceed"))
    movable = [pair for pair in ends if pair[1] in unstarted or random.random() < 0.05]
    remove = random.sample(movable, min(len(movable), random.choice((0, 0, 1, 2))))
    return Wish(
        x=random.choice((1, -1)),
        add=tuple(add),
        edges=tuple(edges),
        remove=tuple(remove),
        refusal="parameter 'p': no such thing" if random.random() < 0.05 else None,
    )
