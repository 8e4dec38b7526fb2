"""The key under which a node's effects on the outside world are one effect (promise 3)."""

from __future__ import annotations

import hashlib


def idempotency_key(run_id: str, key: str, evolution: int) -> str:
    """Return a node's idempotency key, 32 hexadecimal characters.

    It is the same for every delivery and retry of the node; an evolved node does other work and has another key.
    """
    return hashlib.sha256(f"{run_id}\n{evolution}\n{key}".encode()).hexdigest()[:32]
