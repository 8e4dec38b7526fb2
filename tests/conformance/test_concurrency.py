"""Claims, settles, lost deliveries and gates at once: the run ends, and its rows are the fold of its log."""

from __future__ import annotations

import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from graphrun.execution.event import DeliveryLost
from graphrun.execution.fold import fold
from graphrun.execution.state import TERMINAL_RUN
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Claim
from graphrun.storage.tables import OUTCOMES

TENANT = "acme"
WORKERS = 6
DEADLINE_SECONDS = 120


def _graph(driver: Any, policy: str) -> Any:
    keys = [[f"{wave}-{number}" for number in range(6)] for wave in range(4)]
    edges = [
        {"head": head, "tail": tail, "required": False}
        for before, after in itertools.pairwise(keys)
        for number, tail in enumerate(after)
        for head in before[number : number + 2]
    ]
    return driver.graph(*(key for wave in keys for key in wave), edges=edges, failure_policy=policy)


def _work(driver: Any, run_id: str, seed: int) -> None:
    """Do what comes, now well, now badly; call the gate whenever a chord or a settle would."""
    chance = random.Random(seed)
    ledger: Ledger = driver.ledger
    deadline = time.monotonic() + DEADLINE_SECONDS
    while driver.run(run_id).state not in TERMINAL_RUN:
        assert time.monotonic() < deadline, "the run does not end"
        nodes = list(ledger.queued(run_id))
        chance.shuffle(nodes)
        for dispatch in ledger.dispatches(run_id, nodes):
            token, task_id = uuid4().hex, uuid4().hex
            claimed = driver.claim(run_id, dispatch.node_id, dispatch.attempt, token=token, task_id=task_id)
            if not isinstance(claimed, Claim):
                continue
            if chance.random() < 0.2:
                fact = DeliveryLost(node_id=dispatch.node_id, attempt=dispatch.attempt, reason="SIGKILL")
                ledger.lose_delivery(run_id, dispatch.node_id, task_id=task_id, fact=fact)
            if chance.random() < 0.3:
                outcome: dict[str, Any] = {"status": "failed", "error": "no"}
            else:
                outcome = {"output": "1"}
            driver.settle(run_id, dispatch.node_id, dispatch.attempt, token=token, **outcome)
        driver.gate(run_id)


@pytest.mark.parametrize("policy", ["proceed", "fail_fast"])
def test_many_workers_and_gates_at_once_end_the_run_once(driver: Any, ledger: Ledger, policy: str) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)  # noqa: T201 - shown when the test fails
    submission = driver.submission(_graph(driver, policy))
    run_id = ledger.submit(submission).run_id
    created = driver.run(run_id)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda number: _work(driver, run_id, seed + number), range(WORKERS)))
    attempts = [row for row in ledger.attempts(run_id, tenant_id=TENANT) if row.status in OUTCOMES]
    assert len({(row.node_id, row.attempt) for row in attempts}) == len(attempts)
    log = ledger.events(run_id, tenant_id=TENANT)
    rows = fold(created, submission.nodes, submission.edges, [row.event for row in log])
    assert rows.run == driver.run(run_id)
    assert list(rows.nodes.values()) == [node.node for node in ledger.nodes(run_id, tenant_id=TENANT)]
    assert list(rows.edges.values()) == list(ledger.edges(run_id, tenant_id=TENANT))
    gates = [type(row.event).__name__ for row in log if row.node_id == -1]
    assert (gates.count("RunStarted"), gates.count("RunFinished")) == (1, 1)
