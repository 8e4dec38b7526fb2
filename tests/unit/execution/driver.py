"""Ledger, broker and workers in memory, for the planner: it holds the rows, delivers everything twice and out of order.

It has no sweeper but for retries that had to wait: a run that does not end by itself is a fault of the planner. What
the SQL ledger promises is kept here too: a claim gives a token, the end of an attempt is taken only from its holder,
and a settle says whether its caller has to send the gate.

Each decision is checked as it is applied: the rows are the fold of the events, the states move by the table, a gate
goes on once, and no wave starts before the one before it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from graphrun.execution.command import Decision, GoOn, SendNode, SendWave
from graphrun.execution.event import (
    Claimed,
    DeliveryLost,
    Event,
    Fact,
    GateReached,
    NodeAwaits,
    NodeCancelled,
    NodeClaimed,
    NodeEvolved,
    NodeFailed,
    NodeQueued,
    NodeRedelivered,
    NodeSkipped,
    NodeSucceeded,
    RoundOpened,
    RunFinished,
    RunStarted,
    SendLost,
    Settled,
    WaveOpened,
)
from graphrun.execution.fold import Rows, fold
from graphrun.execution.gate import is_open
from graphrun.execution.inputs import evaluate_condition, reads_status
from graphrun.execution.planner import advance
from graphrun.execution.run import (
    AttemptKind,
    EdgeRun,
    EvolutionRequest,
    NewEdge,
    NewNode,
    NodeRun,
    Run,
    RunView,
    Structure,
    Truth,
    planned_node,
)
from graphrun.execution.state import (
    NODE_TRANSITIONS,
    RUN_TRANSITIONS,
    TERMINAL_NODE,
    TERMINAL_RUN,
    Awaiting,
    NodeState,
    RunState,
    Trigger,
)
from graphrun.model.spec import Backoff, NodeSpec, Policy
from graphrun.plan.waves import assign_waves

from .cases import Case, EdgeCase, NodeCase, Step, Wish

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
Ask = Callable[["Driver", NodeRun], Wish]


@dataclass(eq=False)
class Chord:
    """Counts the members of a round that came back; the last one sends the gate."""

    gate: tuple[int, int, int]
    left: int


@dataclass(eq=False)
class Message:
    """One delivery of an attempt; ``copies`` of it are still to come, since a broker may deliver twice."""

    node_id: int
    attempt: int
    kind: AttemptKind
    chord: Chord | None = None
    copies: int = 2


@dataclass(eq=False)
class Execution:
    """A claim that a worker holds."""

    message: Message
    token: int


@dataclass
class Log:
    """What happened, for questions afterwards."""

    events: list[Event] = field(default_factory=list)
    commands: list[SendWave | SendNode | GoOn] = field(default_factory=list)
    node_moves: set[tuple[NodeState, Trigger]] = field(default_factory=set)
    run_moves: set[tuple[RunState, Trigger]] = field(default_factory=set)
    gates: list[tuple[int, int, int]] = field(default_factory=list)


class Driver:
    """Runs a case to its end.

    Args:
        case: the graph and what becomes of its attempts.
        random: decides the order of everything.
        lockstep: call a gate only when nothing else is left to do.
        early_gates: call gates at any time, as a sweeper might.
        crashes: now and then a sender dies when it has sent a part of a round, and the sweeper takes over.
        ask: what a step of kind ``evolve`` asks for.
    """

    def __init__(
        self,
        case: Case,
        random: Random | None = None,
        *,
        lockstep: bool = False,
        early_gates: bool = False,
        crashes: bool = False,
        ask: Ask | None = None,
    ) -> None:
        self.random = random or Random(0)
        self.case = case
        self.scripts: dict[str, NodeCase] = {node.key: node for node in case.nodes} | dict(case.extra)
        self.log = Log()
        self.now = MIDNIGHT
        self._lockstep, self._early_gates, self._crashes, self._ask = lockstep, early_gates, crashes, ask
        self._unsent: list[tuple[int, int, int]] = []
        self.inbox: list[Message] = []
        self.gates_due: list[tuple[int, int, int]] = []
        self._running: list[Execution] = []
        self._late: list[Fact] = []
        self.delayed: dict[int, datetime] = {}
        self._tokens: dict[int, int] = {}
        self._lost: dict[tuple[int, int, AttemptKind], int] = {}
        self.requests: dict[int, EvolutionRequest] = {}
        self._next_token = 0
        self._submit(case)

    # --- the ledger

    def _submit(self, case: Case) -> None:
        ids = {node.key: number for number, node in enumerate(case.nodes)}
        pairs = [(ids[edge.head], ids[edge.tail]) for edge in case.edges]
        waves = assign_waves(len(ids), pairs, [node.resources for node in case.nodes])
        self.specs = {number: node_spec(node) for number, node in enumerate(case.nodes)}
        self.nodes = {number: planned_node(number, spec, wave=waves[number]) for number, spec in self.specs.items()}
        self.edges = {
            number: EdgeRun(
                edge_id=number,
                head=ids[edge.head],
                tail=ids[edge.tail],
                parameter=edge.parameter,
                when=edge.when,
                required=edge.required,
                droppable=edge.droppable,
            )
            for number, edge in enumerate(case.edges)
        }
        self.run = Run(run_id="r", waves=max(waves, default=0), failure_policy=case.policy)
        self.submitted = (self.run, dict(self.nodes), dict(self.edges))
        done = [NodeSucceeded(node_id=ids[node.key], attempt=0, pre_done=True) for node in case.nodes if node.pre_done]
        self.nodes = self._folded(done).nodes
        self.log.events.extend(done)
        for event in done:
            self._store_truths(event.node_id)
        self.gates_due.append((0, 0, 0))

    def gate_view(self) -> RunView:
        """Return what the ledger loads for a gate, and no more."""
        near = {node.node_id for node in self.nodes.values() if node.wave in (self.run.wave, self.run.wave + 1)}
        inbound: dict[int, tuple[EdgeRun, ...]] = {}
        for edge in sorted(self.edges.values(), key=lambda edge: edge.edge_id):
            if self.nodes[edge.tail].wave == self.run.wave + 1:
                inbound[edge.tail] = (*inbound.get(edge.tail, ()), edge)
        into = [edge for edges in inbound.values() for edge in edges]
        heads = {edge.head for edge in into if self.nodes[edge.head].wave < self.run.wave}
        params = {
            edge.head: self.specs[edge.head].params
            for edge in into
            if edge.when and reads_status(edge.when) and self.nodes[edge.head].state is not NodeState.SUCCEEDED
        }
        awaiting = [
            node.node_id
            for node in self.nodes.values()
            if node.wave == self.run.wave and node.awaiting is Awaiting.EVOLUTION
        ]
        return RunView(
            run=self.run,
            nodes={node_id: node for node_id, node in self.nodes.items() if node_id in near | heads},
            inbound=inbound,
            params=params,
            requests={node_id: self.requests[node_id] for node_id in awaiting},
            structure=Structure(nodes=dict(self.nodes), edges=dict(self.edges)) if awaiting else None,
        )

    def node_view(self, node_id: int) -> RunView:
        """Return what the ledger loads for a claim or a settle."""
        return RunView(run=self.run, nodes={node_id: self.nodes[node_id]})

    def feed(self, fact: Fact) -> Decision:
        """Decide about a fact and apply it, then hand in the same fact again: nothing may come of it (promise 2, 5)."""
        decision = self.decide(fact)
        self._apply(decision, fact)
        if not _fenced_by_token(fact, decision):
            again = self.decide(fact)
            assert not again.events, f"{fact} a second time gave {again.events}"
            assert not again.commands
            assert again.run == self.run
        if decision.events and (isinstance(fact, Settled) or _goes_on(decision)):
            self._late.append(fact)
        return decision

    def decide(self, fact: Fact) -> Decision:
        view = self.gate_view() if isinstance(fact, (GateReached, SendLost)) else self.node_view(fact.node_id)
        return advance(view, fact)

    def _apply(self, decision: Decision, fact: Fact) -> None:
        self._check(decision, fact)
        self.log.events.extend(decision.events)
        self.log.commands.extend(decision.commands)
        self.run = decision.run
        for edge_id in decision.removed_edges:
            self.edges.pop(edge_id, None)
        truths = {edge_id: edge.truth for edge_id, edge in self.edges.items()}
        self.edges |= {
            edge.edge_id: replace(edge, truth=truths.get(edge.edge_id, edge.truth)) for edge in decision.edges
        }
        self.nodes |= {node.node_id: node for node in decision.nodes}
        self.specs |= {node_id: new.spec for node_id, new in decision.added}
        for event in decision.events:
            if isinstance(event, NodeEvolved):
                self.specs[event.node_id] = self.requests[event.node_id].rewritten
            if isinstance(event, NodeQueued) and event.not_before is not None:
                self.delayed[event.node_id] = event.not_before
            if isinstance(event, (NodeRedelivered, NodeAwaits, NodeSucceeded, NodeFailed, NodeCancelled)):
                self._tokens.pop(event.node_id, None)
            if isinstance(event, (NodeFailed, NodeCancelled)):
                self.delayed.pop(event.node_id, None)
        self._check_rows()

    def _check(self, decision: Decision, fact: Fact) -> None:
        folded = self._folded(decision.events)
        assert folded.run == decision.run
        assert {node.node_id: folded.nodes[node.node_id] for node in decision.nodes} == {
            node.node_id: node for node in decision.nodes
        }
        assert {k: v for k, v in folded.nodes.items() if v != self.nodes.get(k)}.keys() <= {
            node.node_id for node in decision.nodes
        }
        assert {k: v for k, v in folded.edges.items() if v != self.edges.get(k)} == {
            edge.edge_id: edge for edge in decision.edges
        }
        assert not self.edges.keys() - folded.edges.keys() - set(decision.removed_edges)
        for node_id in (node.node_id for node in self.nodes.values() if node.state in TERMINAL_NODE):
            assert folded.nodes[node_id] == self.nodes[node_id], "a node in a final state changed"
        if isinstance(fact, GateReached):
            self._check_gate(decision, fact)
        else:
            assert not any(isinstance(command, (SendWave, GoOn)) for command in decision.commands)

    def _check_gate(self, decision: Decision, fact: GateReached) -> None:
        if _goes_on(decision):
            gate = (fact.revision, fact.wave, fact.round)
            assert gate == (self.run.revision, self.run.wave, self.run.round)
            assert gate not in self.log.gates, f"gate {gate} fired twice"
            self.log.gates.append(gate)
            assert not any(is_open(node) for node in self.nodes.values() if node.wave == self.run.wave) or (
                self.run.failure_policy == "fail_fast"
            )
        opened = [event for event in decision.events if isinstance(event, WaveOpened)]
        if opened:
            after = self.nodes | {node.node_id: node for node in decision.nodes}
            earlier = [node for node in after.values() if node.wave < opened[0].wave]
            assert all(node.state in TERMINAL_NODE for node in earlier), "a wave opened before the last one ended (X8)"
        for event in decision.events:
            if isinstance(event, NodeEvolved):
                self._check_evolution(event)
            if isinstance(event, (NodeQueued, NodeSkipped)):
                for item in event.edges:
                    assert self.edges[item.edge_id].resolution is None, "an edge resolved twice (X3)"

    def _check_evolution(self, event: NodeEvolved) -> None:
        """Only unstarted parts change, and only later waves (X7, promise 6)."""
        added = {node.node_id for node in event.added_nodes}
        assert not added & self.nodes.keys()
        changed = {edge.tail for edge in event.added_edges}
        changed |= {self.edges[edge_id].tail for edge_id in event.removed_edges if edge_id in self.edges}
        changed |= {node_id for node_id, _wave in event.moved}
        for node_id in changed - added:
            if node_id in self.nodes:  # else an evolution before it in this gate added the node
                assert self.nodes[node_id].state is NodeState.PENDING
        assert all(node.wave > self.run.wave for node in event.added_nodes)
        assert all(wave > self.run.wave for _node_id, wave in event.moved)

    def _check_rows(self) -> None:
        """What the tables' CHECK constraints say."""
        assert self.run.wave <= self.run.waves
        for node in self.nodes.values():
            assert (node.state is NodeState.WAITING) == (node.awaiting is not None)
            assert (node.state in (NodeState.SKIPPED, NodeState.CANCELLED)) == (node.cause is not None)
            assert node.state is not NodeState.FAILED or node.error
            assert node.attempt >= node.tries
            assert not node.pre_done or node.state is NodeState.SUCCEEDED

    def _folded(self, events: Iterable[Event]) -> Rows:
        """Fold events into the rows as they are, and record the moves."""
        rows = Rows(self.run, dict(self.nodes), dict(self.edges))
        for event in events:
            node = rows.nodes.get(getattr(event, "node_id", -1))
            state, run_state = (node.state if node else None), rows.run.state
            rows.apply(event)
            trigger = trigger_of(event, state)
            if trigger:
                assert NODE_TRANSITIONS[state, trigger] is rows.nodes[event.node_id].state
                self.log.node_moves.add((state, trigger))
            if rows.run.state is not run_state:
                moves = {
                    move for move, after in RUN_TRANSITIONS.items() if move[0] is run_state and after is rows.run.state
                }
                assert moves
                self.log.run_moves |= moves
        return rows

    def _store_truths(self, node_id: int) -> None:
        """Evaluate the conditions of a node's edges, as the worker that settles it does (X3)."""
        for edge_id, edge in self.edges.items():
            if edge.head == node_id and edge.when is not None:
                self.edges[edge_id] = replace(edge, truth=self._truth(node_id, edge.when))

    def _truth(self, node_id: int, when: str) -> Truth:
        return evaluate_condition(
            when,
            result=self.scripts[self.nodes[node_id].key].value,
            status="succeeded",
            params=self.specs[node_id].params,
            run={"run_id": "r"},
        )

    def _late_truth(self, head: str, when: str | None) -> Truth | None:
        """Evaluate the condition of an edge that is asked for after its head has ended."""
        ended = [node.node_id for node in self.nodes.values() if node.key == head and node.state is NodeState.SUCCEEDED]
        return self._truth(ended[0], when) if ended and when is not None else None

    # --- broker and workers

    def finish(self) -> Driver:
        """Run until nothing is left to do; the run must have ended by then (promise 1)."""
        for _step in range(20_000):
            if not self._step():
                break
        assert self.run.state in TERMINAL_RUN, f"the run stands still: {self.run}, {list(self.nodes.values())}"
        assert all(node.state in TERMINAL_NODE for node in self.nodes.values()), "a node row is not final (O14)"
        for fact in self._late:
            assert not self.decide(fact).events
        self._check_log()
        return self

    def _check_log(self) -> None:
        run, nodes, edges = self.submitted
        rows = fold(run, nodes.values(), edges.values(), self.log.events)
        assert rows.run == self.run
        assert rows.nodes == self.nodes
        bare = [
            {edge_id: replace(edge, truth=None) for edge_id, edge in edges.items()}
            for edges in (rows.edges, self.edges)
        ]
        assert bare[0] == bare[1]

    def _step(self) -> bool:
        choices: list[Callable[[], None]] = []
        if self.inbox:
            choices += [self._deliver] * 3
        if self._running:
            choices += [self._end_one] * 3
        if self._unsent:
            choices.append(self._take_over)
        if not choices and self.delayed:
            choices.append(self._wait)
        if self.gates_due and not (self._lockstep and choices):
            choices += [self._call_gate] * 2
        if choices and self._late:
            choices.append(self._repeat_late)
        if choices and self._early_gates:
            choices.append(self._call_early)
        if not choices:
            return False
        self.random.choice(choices)()
        return True

    def _take(self, items: list) -> object:
        return items.pop(self.random.randrange(len(items)))

    def _call_gate(self) -> None:
        self.gate(self._take(self.gates_due))

    def _call_early(self) -> None:
        self.gate((self.run.revision, self.run.wave, self.run.round))

    def gate(self, which: tuple[int, int, int]) -> Decision:
        """Call a gate and carry out what it commands."""
        revision, wave, number = which
        fact = GateReached(revision=revision, wave=wave, round=number, now=self.now, jitter=self.random.random())
        decision = self.feed(fact)
        for command in decision.commands:
            match command:
                case SendWave(nodes=nodes, direct=direct, wave=wave, round=number):
                    chord = None if direct else Chord((self.run.revision, wave, number), len(nodes))
                    if self._crashes and self.random.random() < 0.3:
                        nodes = self.random.sample(nodes, self.random.randint(0, len(nodes)))
                        self._unsent.append((self.run.revision, wave, number))
                    for node_id in nodes:
                        self._send(node_id, chord)
                case GoOn(wave=wave, round=number):
                    self.gates_due.append((self.run.revision, wave, number))
        return decision

    def _take_over(self) -> None:
        """Send what a dead sender did not, or perhaps did, outside its chord (§3.7)."""
        revision, wave, number = self._unsent.pop()
        self.feed(SendLost(revision=revision, wave=wave, round=number))
        if (revision, wave, number) != (self.run.revision, self.run.wave, self.run.round):
            return  # a later round has a chord that still counts
        for node in list(self.nodes.values()):
            sendable = node.state is NodeState.QUEUED or node.awaiting is Awaiting.VERDICT
            if node.wave == self.run.wave and sendable and node.node_id not in self._tokens | self.delayed:
                self._send(node.node_id, None)

    def _send(self, node_id: int, chord: Chord | None) -> None:
        node = self.nodes[node_id]
        kind = AttemptKind.VERIFY if node.awaiting is Awaiting.VERDICT else AttemptKind.BODY
        self.inbox.append(Message(node_id, node.attempt, kind, chord))

    def _deliver(self) -> None:
        message = self.random.choice(self.inbox)
        message.copies -= 1
        if not message.copies:
            self.inbox.remove(message)
        step = self._script(message)
        if step.kind == "unclaimed" and message.kind is AttemptKind.BODY:
            fact = Settled(
                node_id=message.node_id,
                attempt=message.attempt,
                kind=message.kind,
                status="failed",
                error="queue time limit of 60 s exceeded",
                final=True,
                outside=True,
            )
            self._after(self.feed(fact), message.node_id)
            return
        if (token := self.claim(message)) is not None:
            self._running.append(Execution(message, token))

    def claim(self, message: Message) -> int | None:
        """Take an attempt; None for a delivery that lost, which no chord counts."""
        if message.node_id in self._tokens or message.node_id in self.delayed:
            return None
        fact = Claimed(node_id=message.node_id, attempt=message.attempt, kind=message.kind, worker="w")
        if not self.feed(fact).events:
            return None
        self._next_token += 1
        self._tokens[message.node_id] = self._next_token
        return self._next_token

    def _script(self, message: Message) -> Step:
        return self.scripts[self.nodes[message.node_id].key].step(message.attempt)

    def _end_one(self) -> None:
        execution = self._take(self._running)
        message = execution.message
        step = self._script(message)
        lost = step.lost if message.kind is AttemptKind.BODY else step.verdict_lost
        key = (message.node_id, message.attempt, message.kind)
        self._lost[key] = self._lost.get(key, 0) + 1
        if self._lost[key] <= lost:
            self.lose(execution)
        else:
            self._settle(execution, step)

    def lose(self, execution: Execution) -> None:
        """Report a lost delivery; only the holder of the claim can lose it."""
        message = execution.message
        assert self._tokens.get(message.node_id) == execution.token
        decision = self.feed(DeliveryLost(node_id=message.node_id, attempt=message.attempt, reason="signal 9"))
        self._tokens.pop(message.node_id, None)
        for command in decision.commands:
            assert command == SendNode(node_id=message.node_id)
            self._send(message.node_id, None)
        self._after(decision, message.node_id)

    def _settle(self, execution: Execution, step: Step) -> None:
        message = execution.message
        node = self.nodes[message.node_id]
        outside = step.outside and step.kind == "fail"
        status = {"done": "done", "fail": "failed", "evolve": "evolved"}[step.kind]
        error = step.error
        if message.kind is AttemptKind.VERIFY:
            status, error, outside = ("done" if step.verdict else "failed"), "VerifyFailed", False
        if status == "evolved":
            assert self._ask is not None
            self.requests[message.node_id] = self.request(node, self._ask(self, node))
        fact = Settled(
            node_id=message.node_id,
            attempt=message.attempt,
            kind=message.kind,
            status=status,
            error_type=error if status == "failed" else None,
            error=f"{error}: why" if status == "failed" else None,
            final=step.final and message.kind is AttemptKind.BODY,
            outside=outside,
        )
        self.settle(execution, fact)

    def request(self, node: NodeRun, wish: Wish) -> EvolutionRequest:
        """Compile a wish, as the worker does that knows the tasks' signatures."""
        self.scripts = {added.key: added for added in wish.add} | self.scripts
        return EvolutionRequest(
            rewritten=replace(self.specs[node.node_id], params={"x": wish.x}),
            nodes=tuple(NewNode(spec=node_spec(added)) for added in wish.add),
            edges=tuple(
                NewEdge(
                    head=edge.head,
                    tail=edge.tail,
                    parameter=edge.parameter,
                    when=edge.when,
                    required=edge.required,
                    droppable=edge.droppable,
                    truth=self._late_truth(edge.head, edge.when),
                )
                for edge in wish.edges
            ),
            removed=wish.remove,
            asked_by="owner",
            reason="it is needed",
            refusal=wish.refusal,
        )

    def settle(self, execution: Execution, fact: Settled) -> None:
        """End an attempt as its holder; a member of a chord is counted unless its process is gone."""
        message = execution.message
        assert self._tokens.get(message.node_id) == execution.token
        decision = self.feed(fact)
        assert decision.events
        if fact.status == "done":
            self._store_truths(message.node_id)
        if message.chord is not None and not fact.outside:
            message.chord.left -= 1
            assert message.chord.left >= 0, "a chord counted a member twice"
            if not message.chord.left:
                self.gates_due.append(message.chord.gate)
        self._after(decision, message.node_id)

    def _after(self, decision: Decision, node_id: int) -> None:
        """Send the gate where the ledger says that it is due (§3.4, X5)."""
        if not decision.events:
            return
        stands = not any(is_open(node) for node in self.nodes.values() if node.wave == self.run.wave)
        failed = self.run.failure_policy == "fail_fast" and self.nodes[node_id].state is NodeState.FAILED
        if failed or (self.run.direct_gate and stands):
            self.gates_due.append((self.run.revision, self.run.wave, self.run.round))

    def _repeat_late(self) -> None:
        fact = self.random.choice(self._late)
        decision = self.decide(fact)
        assert not decision.events, f"late {fact} gave {decision.events}"
        assert not decision.commands

    def _wait(self) -> None:
        """Let time pass until the next retry may be sent, as the sweeper does (X6)."""
        node_id = min(self.delayed, key=lambda node_id: self.delayed[node_id])
        assert self.delayed[node_id] > self.now - timedelta(microseconds=1)
        self.now = max(self.now, self.delayed.pop(node_id))
        self._send(node_id, None)

    # --- by hand

    def begin(self, key: str) -> Execution:
        """Claim the attempt of a node that was sent last, as a worker that got its message."""
        message = [message for message in self.inbox if self.nodes[message.node_id].key == key][-1]
        token = self.claim(message)
        assert token is not None
        self.inbox.remove(message)
        return Execution(message, token)

    def end(self, execution: Execution, status: str = "done", **said) -> None:
        """Settle a claim as its holder."""
        message = execution.message
        fact = Settled(node_id=message.node_id, attempt=message.attempt, kind=message.kind, status=status, **said)
        self.settle(execution, fact)

    def play(self, key: str, status: str = "done", **said) -> NodeRun:
        """Claim and settle an attempt; return the node's row."""
        self.end(self.begin(key), status, **said)
        return self.node(key)

    def next_gate(self) -> Decision:
        """Call the one gate that is due."""
        (which,) = self.gates_due
        self.gates_due.clear()
        return self.gate(which)

    # --- questions

    def evolved_case(self) -> Case:
        """Return the graph as it stands, evolutions included."""
        keys = {node.node_id: node.key for node in self.nodes.values()}
        return Case(
            nodes=tuple(replace(self.scripts[key], x=self.specs[node_id].params["x"]) for node_id, key in keys.items()),
            edges=tuple(
                EdgeCase(
                    head=keys[edge.head],
                    tail=keys[edge.tail],
                    parameter=edge.parameter,
                    when=edge.when,
                    required=edge.required,
                    droppable=edge.droppable,
                )
                for edge in sorted(self.edges.values(), key=lambda edge: edge.edge_id)
            ),
            policy=self.case.policy,
        )

    def node(self, key: str) -> NodeRun:
        return next(node for node in self.nodes.values() if node.key == key)

    def edge(self, head: str, tail: str) -> EdgeRun:
        ends = (self.node(head).node_id, self.node(tail).node_id)
        return next(edge for edge in self.edges.values() if (edge.head, edge.tail) == ends)

    def events_of(self, *kinds: type) -> list[Event]:
        return [event for event in self.log.events if isinstance(event, kinds)]


def _goes_on(decision: Decision) -> bool:
    """Say whether a gate fired: it opened a round or a wave, or ended the run (X8)."""
    return any(isinstance(event, (RunStarted, WaveOpened, RoundOpened, RunFinished)) for event in decision.events)


def _fenced_by_token(fact: Fact, decision: Decision) -> bool:
    """Say whether only the claim's token makes this fact count once: a verify task's node waits, claimed or not."""
    match fact:
        case Claimed(kind=AttemptKind.VERIFY):
            return True
        case DeliveryLost():
            return any(node.awaiting is Awaiting.VERDICT for node in decision.nodes)
        case _:
            return False


_TRIGGERS: dict[type, Trigger] = {
    NodeQueued: Trigger.QUEUE,
    NodeClaimed: Trigger.CLAIM,
    NodeAwaits: Trigger.WAIT,
    NodeRedelivered: Trigger.REDELIVER,
    NodeSucceeded: Trigger.SUCCEED,
    NodeFailed: Trigger.FAIL,
    NodeSkipped: Trigger.SKIP,
    NodeCancelled: Trigger.CANCEL,
}


def trigger_of(event: Event, state: NodeState | None) -> Trigger | None:
    """Return the column of the transition table that an event of one node belongs to."""
    trigger = _TRIGGERS.get(type(event))
    # A verify task is claimed and lost while its node waits on.
    return Trigger.WAIT if trigger in (Trigger.CLAIM, Trigger.REDELIVER) and state is NodeState.WAITING else trigger


def node_spec(node: NodeCase) -> NodeSpec:
    """Return the spec that a node of a case stands for."""
    policy = Policy(
        max_attempts=node.max_attempts,
        max_deliveries=node.max_deliveries,
        max_evolutions=node.max_evolutions,
        retry_on=node.retry_on,
        backoff=Backoff(initial_seconds=10, jitter=0.5) if node.backoff else None,
    )
    return NodeSpec(
        key=node.key,
        task="t",
        params={"x": node.x},
        policy=policy,
        join=node.join,
        resources=node.resources,
        verify="v" if node.verified else None,
    )


def opened(*nodes: NodeCase, edges: Iterable[EdgeCase] = (), policy: str = "proceed", ask: Ask | None = None) -> Driver:
    """Return a driver whose first wave was sent."""
    driver = Driver(Case(nodes=nodes, edges=tuple(edges), policy=policy), ask=ask)
    driver.next_gate()
    return driver


def finished(case: Case, **options) -> Driver:
    """Run a case to its end."""
    return Driver(case, **options).finish()
