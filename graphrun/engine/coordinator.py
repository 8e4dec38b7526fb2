"""The gate: lock the run, let the planner decide, write, commit, then send (§3.5).

It runs in whichever process was told that a round ended, is called any number of times, and decides once. It runs no
node and reads no output, but for a condition on an edge that an evolution added after its head had ended.
"""

from __future__ import annotations

import logging
import random
from datetime import datetime
from typing import Protocol
from uuid import uuid4

from graphrun.engine.message import GateMessage, NodeMessage
from graphrun.execution.command import Decision, GoOn, SendWave
from graphrun.execution.event import GateReached, SendLost
from graphrun.execution.planner import advance
from graphrun.execution.run import Run, RunView
from graphrun.execution.state import TERMINAL_RUN
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Dispatch

log = logging.getLogger("graphrun.gate")


class Sender(Protocol):
    """How attempts and gates travel: by Celery (``dispatcher``) or within this process (``inline``)."""

    def send_wave(self, run: Run, dispatches: tuple[Dispatch, ...], *, direct: bool) -> None:
        """Send the attempts of a round; unless ``direct``, as a chord whose body is the round's gate."""

    def send_node(self, run: Run, dispatch: Dispatch) -> None:
        """Send one attempt again, under a fresh id and outside any chord."""

    def send_gate(self, message: GateMessage) -> None:
        """Send a gate by itself."""


class Coordinator:
    """Carries out gates against one ledger and one sender."""

    def __init__(self, ledger: Ledger, sender: Sender) -> None:
        self._ledger = ledger
        self._sender = sender

    def gate(self, message: GateMessage) -> Run:
        """Call the gate of a round, and those of the empty waves after it.

        Returns:
            The run after it. Each wave is a transaction of its own, so a long skipped tail never holds one open.

        Raises:
            Exception: what the broker raised when the committed round could not be sent; the sweeper sends it later.
        """
        while True:
            token = uuid4().hex
            decision = self._decide(message, token)
            run = decision.run
            if decision.events and run.state in TERMINAL_RUN:
                log.info("run %s %s", run.run_id, run.state.value)
            for command in decision.commands:
                if isinstance(command, SendWave):
                    self._send(run, command, token)
            if not any(isinstance(command, GoOn) for command in decision.commands):
                return run
            message = GateMessage(run.run_id, run.revision, run.wave, run.round)

    def _decide(self, message: GateMessage, token: str) -> Decision:
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing

        def decide(view: RunView, now: datetime) -> Decision:
            fact = GateReached(
                revision=message.revision, wave=message.wave, round=message.round, now=now, jitter=jitter
            )
            return advance(view, fact)

        return self._ledger.gate(message.run_id, decide, token=token)

    def launch(self, run_id: str) -> Run:
        """Start a created run: the gate of wave 0."""
        return self.gate(GateMessage(run_id, 0, 0, 0))

    def resend(self, run: Run, token: str) -> int:
        """Send what a round committed and did not send; return how many nodes that were (§3.7).

        The nodes travel outside their chord, since some of it may have been sent: the settle that leaves no open node
        sends the gate.
        """
        fact = SendLost(revision=run.revision, wave=run.wave, round=run.round)
        now = self._ledger.gate(run.run_id, lambda view, _now: advance(view, fact), token=uuid4().hex).run
        if (now.state, now.revision, now.wave, now.round) != (run.state, run.revision, run.wave, run.round):
            return 0  # its gate came first, and sent what comes next
        nodes = self._ledger.queued(run.run_id)
        for dispatch in self._ledger.dispatches(run.run_id, nodes):
            self._sender.send_node(now, dispatch)
        self._ledger.mark_sent(run.run_id, token)
        return len(nodes)

    def hand_back(self, message: NodeMessage, *, after_seconds: float) -> bool:
        """Send an attempt again after a while, since its message is gone and nobody took it (§3.6).

        Returns:
            Whether there was such an attempt. It travels outside its chord, which will not count to its end.
        """
        if not self._ledger.hand_back(message.run_id, message.node_id, message.attempt, after_seconds=after_seconds):
            return False
        fact = SendLost(revision=message.revision, wave=message.wave, round=message.round)
        self._ledger.gate(message.run_id, lambda view, _now: advance(view, fact), token=uuid4().hex)
        return True

    def send_one(self, run: Run, node_id: int) -> None:
        """Send one attempt again, outside any chord."""
        for dispatch in self._ledger.dispatches(run.run_id, (node_id,)):
            self._sender.send_node(run, dispatch)

    def _send(self, run: Run, command: SendWave, token: str) -> None:
        dispatches = self._ledger.dispatches(run.run_id, command.nodes)
        if dispatches:
            self._sender.send_wave(run, dispatches, direct=command.direct)
        self._ledger.mark_sent(run.run_id, token)
