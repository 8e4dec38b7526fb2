from __future__ import annotations

from typing import Any

import pytest

from graphrun.errors import LedgerError, RunNotFoundError
from graphrun.execution.state import RunState
from graphrun.storage.ledger import Ledger

TENANT = "acme"


def test_another_tenant_sees_nothing(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.do(run_id, 0)
    for ask in (
        ledger.run,
        ledger.nodes,
        ledger.edges,
        ledger.attempts,
        ledger.events,
        ledger.evolutions,
        ledger.spec,
        ledger.node_specs,
    ):
        with pytest.raises(RunNotFoundError):
            ask(run_id, tenant_id="other")
    with pytest.raises(RunNotFoundError):
        ledger.output(run_id, "a", tenant_id="other")
    assert ledger.runs(tenant_id="other") == ()


def test_a_run_is_found_by_a_unique_beginning_of_its_id(driver: Any, ledger: Ledger) -> None:
    ids = ["0123456789ab-0000-0000-0000-00000000000a", "0123456789ff-0000-0000-0000-00000000000b"]
    first, second = (text[:8] + "-" + text[8:12] + "-4000-8000-" + text[-12:] for text in ids)
    for run_id in (first, second):
        driver.submit(driver.graph("a"), run_id=run_id)
    assert ledger.run(first[:12], tenant_id=TENANT).run_id == first
    assert ledger.run(second.upper(), tenant_id=TENANT).run_id == second
    with pytest.raises(LedgerError, match=f"several runs begin with '0123456': {first}, {second}; give more"):
        ledger.run("0123456", tenant_id=TENANT)


@pytest.mark.parametrize("text", ["%%%%%%%", "______", "zzzzzz", "0123456789" * 5, "ffffff"])
def test_a_beginning_that_fits_no_run_is_not_found(driver: Any, ledger: Ledger, text: str) -> None:
    driver.submit(driver.graph("a"), run_id="01234567-89ab-4000-8000-000000000000")
    with pytest.raises(RunNotFoundError):
        ledger.run(text, tenant_id=TENANT)


def test_a_beginning_of_less_than_six_characters_is_refused(driver: Any, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="at least 6 characters"):
        ledger.run("01234", tenant_id=TENANT)


def test_runs_are_listed_latest_first_and_filtered(driver: Any, ledger: Ledger) -> None:
    created = [driver.submit(driver.graph(key)).run_id for key in ("a", "b", "c")]
    driver.gate(created[1])
    assert [row.run_id for row in ledger.runs(tenant_id=TENANT)] == created[::-1]
    assert [row.run_id for row in ledger.runs(tenant_id=TENANT, limit=1, offset=1)] == [created[1]]
    assert [row.run_id for row in ledger.runs(tenant_id=TENANT, state=RunState.RUNNING)] == [created[1]]
    assert ledger.runs(tenant_id=TENANT, graph="another") == ()


def test_an_output_that_is_not_there_is_an_error_that_says_why(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    with pytest.raises(LedgerError, match=r"'a' of run .* has no output: it is queued"):
        ledger.output(run_id, "a", tenant_id=TENANT)
    with pytest.raises(LedgerError, match="has no node 'b'"):
        ledger.output(run_id, "b", tenant_id=TENANT)


def test_attempts_are_read_of_one_node_or_of_all(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    driver.do(run_id, 0)
    driver.do(run_id, 1)
    assert [row.key for row in ledger.attempts(run_id, tenant_id=TENANT)] == ["a", "b"]
    assert [row.key for row in ledger.attempts(run_id, "b", tenant_id=TENANT)] == ["b"]
