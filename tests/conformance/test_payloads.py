from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from graphrun.errors import LedgerError, PayloadTooLargeError
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.payloads import FsspecPayloads, Payloads, SqlPayloads, payload_store
from graphrun.storage.tables import payloads

TENANT = "acme"


@pytest.fixture(params=["sql", "files"])
def store(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Payloads:
    url = None if request.param == "sql" else f"file://{tmp_path / 'payloads'}"
    return payload_store(url, database, limit_bytes=2_000_000)


def test_a_large_output_goes_by_reference_and_comes_back_whole(
    driver: Any, database: Database, store: Payloads
) -> None:
    driver.ledger = ledger = Ledger(database, store, inline_limit_bytes=1_000)
    text = json.dumps("ü" * 200_000)
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    driver.do(run_id, 0, output=text)
    driver.gate(run_id)
    (item,) = ledger.inputs(run_id, 1)
    assert item.output is not None
    assert (item.output.inline, item.output.size) == (None, len(text))
    assert ledger.load(item.output) == text
    assert ledger.output(run_id, "a", tenant_id=TENANT) == text


def test_an_output_stored_beforehand_is_settled_by_its_reference(
    driver: Any, database: Database, store: Payloads
) -> None:
    driver.ledger = ledger = Ledger(database, store, inline_limit_bytes=10)
    run_id = driver.start(driver.graph("a"))
    reference = ledger.store_output('"a long enough text"')
    assert reference.inline is None
    driver.do(run_id, 0, output=reference)
    assert ledger.output(run_id, "a", tenant_id=TENANT) == '"a long enough text"'


def test_an_output_up_to_the_limit_stays_in_its_row(database: Database) -> None:
    ledger = Ledger(database, inline_limit_bytes=10)
    assert ledger.store_output("1234567890").inline == "1234567890"
    assert ledger.store_output("12345678901").inline is None


def test_the_same_content_is_kept_once(store: Payloads, database: Database) -> None:
    assert store.put(b"same") == store.put(b"same")
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(payloads)).scalar_one() <= 1


def test_content_over_the_limit_is_refused_with_size_and_limit(store: Payloads) -> None:
    with pytest.raises(PayloadTooLargeError, match="2000001 bytes is over the limit of 2000000 bytes"):
        store.put(b"x" * 2_000_001)


@pytest.mark.parametrize("address", ["../../etc/passwd", "", "A" * 64, "a" * 63, "a" * 64 + "\n", "a" * 65])
def test_what_is_not_an_address_is_refused(store: Payloads, address: str) -> None:
    with pytest.raises(LedgerError, match="is not the address of a payload"):
        store.get(address)


def test_an_address_without_content_is_an_error(store: Payloads) -> None:
    with pytest.raises(LedgerError, match="is not in the store"):
        store.get("a" * 64)


def test_damaged_content_is_not_given_out(database: Database, tmp_path: Path) -> None:
    files = FsspecPayloads(f"file://{tmp_path}")
    digest = files.put(b"right")
    (tmp_path / digest[:2] / digest).write_bytes(b"wrong")
    blobs = SqlPayloads(database)
    blobs.put(b"right")
    with database.write() as connection:
        connection.execute(update(payloads).values(content=b"wrong"))
    for store in (files, blobs):
        with pytest.raises(LedgerError, match="is damaged"):
            store.get(digest)


def test_bytes_of_every_value_come_back(store: Payloads) -> None:
    content = bytes(range(256)) * 10
    assert store.get(store.put(content)) == content
