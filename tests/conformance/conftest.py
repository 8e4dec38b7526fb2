"""Fixtures of the conformance suite: every test runs on SQLite and on PostgreSQL.

PostgreSQL is the server of GRAPHRUN_TEST_POSTGRES, or the one at 127.0.0.1:5432; each session makes a database of its
own there and drops it. Without a server those tests are skipped, or fail when GRAPHRUN_REQUIRE_SERVICES=1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from graphrun.execution.command import Decision
from graphrun.execution.event import GateReached, Settled
from graphrun.execution.planner import advance
from graphrun.execution.run import AttemptKind, EdgeRun, Run, RunView, Truth, planned_node
from graphrun.execution.state import RunState
from graphrun.model.spec import GraphSpec
from graphrun.plan.waves import assign_waves
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import upgrade
from graphrun.storage.records import AttemptRecord, Claim, ClaimResult, SettleResult, Submission, Submitted

TENANT = "acme"
_DEFAULT_POSTGRES = "postgresql+psycopg://postgres@127.0.0.1:5432/test"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "graphrun.db"
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    database.dispose()
    return path


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    server = make_url(os.environ.get("GRAPHRUN_TEST_POSTGRES", _DEFAULT_POSTGRES))
    name = f"graphrun_{uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3})
    try:
        with admin.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
    except OperationalError as error:
        reason = (
            f"NO POSTGRESQL at {server.render_as_string()}: half of the conformance suite did not run ({error.orig})"
        )
        if os.environ.get("GRAPHRUN_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    url = server.set(database=name).render_as_string(hide_password=False)
    database = Database(url)
    upgrade(database)
    database.dispose()
    yield url
    with admin.connect() as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    admin.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database with the current schema."""
    if request.param == "sqlite":
        path = tmp_path / "graphrun.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    address: str = request.getfixturevalue("postgres_url")
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE runs, payloads CASCADE"))
    engine.dispose()
    return address


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.dispose()


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


@pytest.fixture
def driver(ledger: Ledger) -> Driver:
    return Driver(ledger)


@dataclass
class Driver:
    """What submitter, gate and workers do, with real ledger and planner and without any transport."""

    ledger: Ledger
    tokens: dict[tuple[str, int], str] = field(default_factory=dict)

    def graph(self, *nodes: str | dict[str, Any], edges: Any = (), **settings: Any) -> GraphSpec:
        """Return a graph of nodes given by key or as documents."""
        documents = [{"task": "work", **(node if isinstance(node, dict) else {"key": node})} for node in nodes]
        return GraphSpec.from_document(
            {"name": "g", "nodes": documents, "edges": [_edge(edge) for edge in edges], "settings": settings}
        )

    def submission(self, spec: GraphSpec, **changes: Any) -> Submission:
        """Return a graph compiled for submit, without a registry."""
        pairs = [(spec.position[edge.head], spec.position[edge.tail]) for edge in spec.edges]
        waves = assign_waves(len(spec.nodes), pairs, [node.resources for node in spec.nodes])
        edges = [
            EdgeRun(
                edge_id=number,
                head=head,
                tail=tail,
                parameter=edge.parameter,
                when=edge.when,
                required=True if edge.required is None else edge.required,
            )
            for number, (edge, (head, tail)) in enumerate(zip(spec.edges, pairs, strict=True))
        ]
        given: dict[str, Any] = {
            "run_id": str(uuid4()),
            "tenant_id": TENANT,
            "spec": spec,
            "nodes": tuple(planned_node(n, node, wave=waves[n]) for n, node in enumerate(spec.nodes)),
            "edges": tuple(edges),
            "waves": max(waves, default=0),
            "content_hash": spec.content_hash,
            "token": uuid4().hex,
        }
        return Submission(**(given | changes))

    def submit(self, spec: GraphSpec, **changes: Any) -> Submitted:
        """Submit a graph."""
        return self.ledger.submit(self.submission(spec, **changes))

    def start(self, spec: GraphSpec, **changes: Any) -> str:
        """Submit a graph, open its first wave, and return the run's id."""
        run_id = self.submit(spec, **changes).run_id
        self.gate(run_id)
        return run_id

    def run(self, run_id: str) -> Run:
        """Return the run row."""
        return self.ledger.run(run_id, tenant_id=TENANT).run

    def gate(self, run_id: str, *, token: str | None = None) -> Decision:
        """Call the gate of the open round, sending what it says."""
        run = self.run(run_id)

        def decide(view: RunView, now: datetime) -> Decision:
            return advance(view, GateReached(revision=run.revision, wave=run.wave, round=run.round, now=now))

        return self.ledger.gate(run_id, decide, token=token or uuid4().hex)

    def claim(
        self,
        run_id: str,
        node_id: int,
        attempt: int = 1,
        kind: AttemptKind = AttemptKind.BODY,
        *,
        token: str | None = None,
        task_id: str | None = None,
        revision: int = 0,
    ) -> ClaimResult:
        """Claim an attempt; a won claim's token is kept for ``settle``."""
        token = token or uuid4().hex
        result = self.ledger.claim(
            run_id,
            node_id,
            attempt,
            kind,
            token=token,
            worker="worker-1",
            task_id=task_id or str(uuid4()),
            revision=revision,
            wave=1,
            round=0,
        )
        if isinstance(result, Claim):
            self.tokens[run_id, node_id] = token
        return result

    def settle(  # noqa: PLR0913 - the outcome of an attempt, as keywords
        self,
        run_id: str,
        node_id: int,
        attempt: int = 1,
        *,
        status: Any = "done",
        kind: AttemptKind = AttemptKind.BODY,
        token: str | None = None,
        truths: dict[int, Truth] | None = None,
        error: str | None = None,
        error_type: str | None = None,
        **record: Any,
    ) -> SettleResult:
        """Settle under the token of the last won claim."""
        fact = Settled(node_id=node_id, attempt=attempt, kind=kind, status=status, error=error, error_type=error_type)
        return self.ledger.settle(
            run_id,
            node_id,
            token=token or self.tokens[run_id, node_id],
            fact=fact,
            record=AttemptRecord(error=error, error_type=error_type, **record),
            truths=truths,
        )

    def do(self, run_id: str, node_id: int, attempt: int = 1, **outcome: Any) -> SettleResult:
        """Claim and settle."""
        claimed = self.claim(run_id, node_id, attempt)
        assert isinstance(claimed, Claim), claimed
        return self.settle(run_id, node_id, attempt, **({"output": "1"} | outcome))

    def finish(self, run_id: str) -> RunState:
        """Do everything that is queued, with success, until the run has ended."""
        while True:
            nodes = self.ledger.queued(run_id)
            for dispatch in self.ledger.dispatches(run_id, nodes):
                self.do(run_id, dispatch.node_id, dispatch.attempt)
            before = self.run(run_id)
            self.gate(run_id)
            if self.run(run_id) == before:
                return before.state


def _edge(edge: Any) -> dict[str, Any]:
    return edge if isinstance(edge, dict) else {"head": edge[0], "tail": edge[1]}
