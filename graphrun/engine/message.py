"""The message of a node: ids only, never the graph, never a result (§3.2)."""

from __future__ import annotations

from typing import NamedTuple

from graphrun.execution.run import AttemptKind

GATE_TASK = "graphrun.gate"
TWIN_PREFIX = "graphrun:"
COMMAND_TASK = "graphrun.verify"
_KINDS = {AttemptKind.BODY: "b", AttemptKind.VERIFY: "v"}
_NAMES = {letter: kind for kind, letter in _KINDS.items()}


class NodeMessage(NamedTuple):
    """Which attempt of which node to run; under 100 bytes as JSON."""

    run_id: str
    node_id: int
    attempt: int
    kind: AttemptKind
    revision: int
    wave: int
    round: int

    def to_args(self) -> tuple[str, int, int, str, int, int, int]:
        """Return the positional arguments of the Celery task."""
        return (self.run_id, self.node_id, self.attempt, _KINDS[self.kind], self.revision, self.wave, self.round)

    @classmethod
    def from_args(cls, args: tuple[object, ...]) -> NodeMessage:
        """Read the positional arguments of a Celery task.

        Raises:
            ValueError: the arguments are not those of a node.
        """
        match args:
            case (str(run_id), int(node_id), int(attempt), str(kind), int(revision), int(wave), int(number)) if (
                kind in _NAMES
            ):
                return cls(run_id, node_id, attempt, _NAMES[kind], revision, wave, number)
            case _:
                raise ValueError(f"not a node message: {args!r}")


class GateMessage(NamedTuple):
    """Which round's gate to call; late and doubled calls do nothing."""

    run_id: str
    revision: int
    wave: int
    round: int
