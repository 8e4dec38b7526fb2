"""Submitting: check, plan, write everything in one transaction, commit, and only then send (§3.1)."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from graphrun.engine.compiling import compile_graph
from graphrun.engine.pre_done import find_pre_done, mark_pre_done
from graphrun.model.spec import GraphSpec
from graphrun.registry import TaskRegistry
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Submission, Submitted

log = logging.getLogger("graphrun.submit")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What a submitter may say besides the graph.

    Attributes:
        tenant_id: whose run it is.
        outputs: node key -> output, of nodes that need not run (X10).
        idempotency_key: a second submit under it gives the same run (X17).
        connection: a SQLAlchemy connection whose transaction the run joins; the sweeper sends it after the commit.
    """

    tenant_id: str
    outputs: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    connection: Any = None


def submit(spec: GraphSpec, registry: TaskRegistry, ledger: Ledger, options: SubmitOptions) -> Submitted:
    """Write a run; nothing is sent here.

    Raises:
        ValidationFailedError: the graph may not run; nothing was written (X1).
        IdempotencyConflictError: the key was used for another graph (X17).
    """
    compiled = compile_graph(spec, registry)
    run_id = str(uuid4())
    outputs = find_pre_done(spec.nodes, options.outputs or {}, registry)
    nodes, edges = mark_pre_done(run_id, compiled.nodes, compiled.edges, spec.nodes, outputs)
    submission = Submission(
        run_id=run_id,
        tenant_id=options.tenant_id,
        spec=spec,
        nodes=nodes,
        edges=edges,
        outputs=outputs,
        waves=compiled.depth,
        idempotency_key=options.idempotency_key,
        content_hash=_content_hash(spec, options.outputs),
        submitted_by=f"{_user()}@{socket.gethostname()}",
        token=uuid4().hex,
    )
    return ledger.submit(submission, connection=options.connection)


def _content_hash(spec: GraphSpec, given: Mapping[str, Any] | None) -> str:
    """Hash the graph, and which outputs were given with it: the same key with others is another request (X17)."""
    if not given:
        return spec.content_hash
    text = json.dumps([spec.content_hash, {key: repr(value) for key, value in sorted(given.items())}])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"  # a container without a user entry
