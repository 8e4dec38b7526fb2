"""The sweeper: repairs what was lost between commit and send, in every worker's main process (§3.7).

It starts runs that were submitted and not sent, fires gates that did not fire, re-sends rounds that were committed and
not sent, and sends retries whose backoff is over. It only re-enqueues: what it sends is claimed and decided once like
anything else, so two sweepers, or one that is wrong, do no harm. It never runs a node.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from celery import bootsteps
from celery.worker import state

from graphrun.engine.coordinator import Coordinator
from graphrun.engine.dispatcher import CeleryDispatcher
from graphrun.engine.message import GateMessage
from graphrun.errors import BrokerDownError, LedgerUnavailableError
from graphrun.settings import Settings
from graphrun.storage.ledger import Ledger

if TYPE_CHECKING:
    from graphrun.engine.app import Engine

log = logging.getLogger("graphrun.sweeper")

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass repaired, counted."""

    started: int = 0
    gates: int = 0
    resent: int = 0
    due: int = 0

    def __bool__(self) -> bool:
        return bool(self.started or self.gates or self.resent or self.due)


class Sweeper:
    """One pass at a time over the ledger."""

    def __init__(
        self, ledger: Ledger, coordinator: Coordinator, dispatcher: CeleryDispatcher, settings: Settings
    ) -> None:
        self._ledger = ledger
        self._coordinator = coordinator
        self._dispatcher = dispatcher
        self._grace = settings.sweep_grace_seconds

    def sweep(self, *, grace_seconds: float | None = None) -> Swept:
        """Make one pass.

        Args:
            grace_seconds: how long something must have stood still before it counts as lost; the settings' when None.

        Raises:
            BrokerDownError: nothing can be sent now; nothing was changed.
        """
        self._dispatcher.require_broker()
        grace = self._grace if grace_seconds is None else grace_seconds
        swept = Swept(
            started=self._start(grace), gates=self._fire(grace), resent=self._resend(grace), due=self._send_due()
        )
        if swept:
            log.warning("swept: %s", swept)
        return swept

    def _start(self, grace: float) -> int:
        runs = self._ledger.created(grace, _BATCH)
        return self._each((run.run_id, partial(self._coordinator.launch, run.run_id)) for run in runs)

    def _fire(self, grace: float) -> int:
        gates = self._ledger.stalled_gates(grace, _BATCH)
        return self._each((gate[0], partial(self._dispatcher.send_gate, GateMessage(*gate))) for gate in gates)

    def _resend(self, grace: float) -> int:
        unsent = self._ledger.unsent(grace, _BATCH)
        return self._each((item.run.run_id, partial(self._coordinator.resend, item.run, item.token)) for item in unsent)

    def _send_due(self) -> int:
        due = self._ledger.due_nodes(_BATCH)
        return self._each((run.run_id, partial(self._coordinator.send_one, run, node_id)) for run, node_id in due)

    def _each(self, repairs: Iterable[tuple[str, Callable[[], object]]]) -> int:
        """Carry out repairs and count those that were; one run that cannot be sent does not keep back the others."""
        done = 0
        for run_id, repair in repairs:
            try:
                repair()
            except (BrokerDownError, LedgerUnavailableError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever ails one run, the next one may be well
                log.warning("run %s could not be repaired: %s: %s", run_id, type(error).__name__, error)
            else:
                done += 1
        return done


class SweeperThread:
    """Runs a pass every interval until it is stopped; a pass that fails is logged and the next one is tried."""

    def __init__(self, make: Callable[[], Sweeper], interval_seconds: float) -> None:
        self._make = make
        self._interval = interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphrun-sweeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end and wait for the pass that is under way."""
        self._stopping.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            if state.should_stop or state.should_terminate:
                continue  # what this worker still runs is not lost, and another worker sweeps
            try:
                self._make().sweep()
            except BrokerDownError as error:
                log.info("nothing swept: %s", error)
            except Exception:
                # The sweeper is the last to give up: whatever a pass met, the next one starts afresh.
                log.exception("a sweep failed")


class SweeperStep(bootsteps.StartStopStep):
    """Starts the sweeper with a worker and stops it with it."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        engine: Engine = parent.app.graphrun
        self._sweeper = SweeperThread(engine.sweeper, engine.settings.sweep_interval_seconds)

    def start(self, _parent: Any) -> None:
        """Start the thread."""
        self._sweeper.start()

    def stop(self, _parent: Any) -> None:
        """Stop the thread."""
        self._sweeper.stop()

    terminate = stop
