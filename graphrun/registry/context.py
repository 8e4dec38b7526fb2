"""What a node body may ask about its own attempt; injected when the signature asks for a `Context`.

It answers for names and types. It must not do input or output itself: the engine injects what reaches SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _never_cancelled() -> bool:
    return False


def _unheard(_progress: float | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Context:
    """The attempt that runs this body.

    Attributes:
        run_id: the run.
        key: the node's key in its graph.
        attempt: from 1.
        idempotency_key: the same for every delivery and retry of this node (promise 3): give it to the outside world.
        missing_inputs: key of each upstream node whose output is not there -> why (X4, X5).
        is_cancelled: asks whether the run is being cancelled; read it as ``ctx.cancelled``.
        on_heartbeat: takes the progress; call it as ``ctx.heartbeat(0.5)``.
    """

    run_id: str
    key: str
    attempt: int
    idempotency_key: str = ""
    missing_inputs: Mapping[str, str] = field(default_factory=dict)
    is_cancelled: Callable[[], bool] = field(default=_never_cancelled, repr=False, compare=False)
    on_heartbeat: Callable[[float | None], None] = field(default=_unheard, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the run is being cancelled, so that the body should end soon (X13)."""
        return self.is_cancelled()

    def heartbeat(self, progress: float | None = None) -> None:
        """Say that the body is alive.

        Args:
            progress: the share done, from 0 to 1, if known.

        Raises:
            ValueError: `progress` is outside 0 to 1.
        """
        if progress is not None and not 0 <= progress <= 1:
            raise ValueError(f"progress is a share from 0 to 1, not {progress}")
        self.on_heartbeat(progress)
