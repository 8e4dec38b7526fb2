"""What becomes of a failed attempt (X6). Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from graphrun.execution.run import NodeRun

LOST_TOO_OFTEN = "worker lost {count} times: likely out of memory or a crash in native code"


def may_retry(node: NodeRun, *, error_type: str | None, final: bool) -> bool:
    """Say whether a failed attempt is tried again: attempts are left and ``retry_on`` does not rule the error out.

    ``tries`` counts since the last evolution, so an evolved subgraph has a retry of its own (X7).
    """
    if final or node.tries >= node.policy.max_attempts:
        return False
    return not node.policy.retry_on or error_type in node.policy.retry_on


def not_before(node: NodeRun, *, now: datetime, jitter: float) -> datetime | None:
    """Return the earliest time of the retry, or None for at once; the sweeper sends what has to wait (X6)."""
    if node.policy.backoff is None:
        return None
    return now + timedelta(seconds=node.policy.backoff.seconds(node.tries, jitter))
