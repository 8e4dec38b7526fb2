"""Every exception that graphrun raises on purpose; it knows nothing of the rest of the package.

::

    GraphrunError
    ├── GraphError                 a graph or collection was used against its rules
    │   ├── RelationError          an edge end or a node is missing, or already there
    │   ├── ItemNotFoundError      (also KeyError, IndexError free) no such item
    │   ├── ItemExistsError        the id or name is already taken
    │   └── CycleError             (also ValueError) the graph has a cycle, named in order
    ├── ValidationFailedError      a graph was refused; carries the whole report
    ├── ExpressionError            a condition cannot be read, or failed when it ran
    ├── EncodingError              a value cannot be stored: type and path
    ├── RegistryError              a task is unknown, or two functions claim one name
    ├── FormatError                a file is not a graph of the named format
    ├── SettingsError              a setting is wrong or missing
    ├── LedgerError                the SQL record refused something
    │   ├── RunNotFoundError       no such run for this tenant
    │   ├── IdempotencyConflictError  the same key was used for another graph
    │   ├── LedgerUnavailableError the database does not answer; ask again
    │   ├── SchemaVersionError     the database is older or newer than the code
    │   └── PayloadTooLargeError   a value is over the limit that the settings name
    ├── TransitionError            a state change that the table of legal transitions lacks
    ├── EngineError                broker, worker or embedded server
    │   ├── BrokerDownError        the broker cannot be reached; what was submitted is kept
    │   └── LocalServerError       no Redis server could be started
    └── WaitTimeoutError           (also TimeoutError) a run did not end in the time given
"""

from __future__ import annotations


class GraphrunError(Exception):
    """Base of all errors of graphrun. The message names the thing and the remedy."""


class GraphError(GraphrunError):
    """A graph or collection was used against its rules."""


class RelationError(GraphError):
    """A node or edge is missing, already resident, or of the wrong type (G8 to G15)."""


class ItemNotFoundError(GraphError):
    """No such item in a collection (P5, R2)."""


class ItemExistsError(GraphError):
    """The id or name is already taken (P6, F2)."""


class CycleError(GraphError, ValueError):
    """The graph has a cycle (G24, X1).

    Attributes:
        cycle: node keys in order, the first repeated at the end.
    """

    def __init__(self, cycle: list[str]) -> None:
        self.cycle = cycle
        super().__init__("cycle: " + " -> ".join(cycle))


class ValidationFailedError(GraphrunError):
    """A graph was refused; every fault is in ``issues``, none was written or sent (X1).

    Attributes:
        issues: the report, one ``model.validation.Issue`` a fault.
    """

    def __init__(self, name: str, issues: tuple[object, ...]) -> None:
        self.issues = issues
        lines = [str(issue) for issue in issues]
        super().__init__(f"graph {name!r} is refused, {len(lines)} fault(s): " + "; ".join(lines))


class ExpressionError(GraphrunError):
    """A safe expression cannot be read, or failed when it was evaluated."""


class EncodingError(GraphrunError):
    """A value cannot be stored (O22).

    Attributes:
        path: where in the value, ``$`` being the value itself, as in ``$.rows[3]``.
        type_name: the offending type.
    """

    def __init__(self, type_name: str, path: str, hint: str = "") -> None:
        self.type_name = type_name
        self.path = path
        self.hint = hint
        super().__init__(f"type {type_name} at path {path}" + (f": {hint}" if hint else ""))


class RegistryError(GraphrunError):
    """A task is unknown, two functions claim one name, or a signature cannot be used."""


class FormatError(GraphrunError):
    """A file is not a graph of the named format."""


class SettingsError(GraphrunError):
    """A setting is wrong or missing."""


class LedgerError(GraphrunError):
    """The SQL record refused something."""


class RunNotFoundError(LedgerError):
    """No such run for this tenant; whether another tenant has it is not disclosed."""


class IdempotencyConflictError(LedgerError):
    """The idempotency key was used before, for another graph (X17)."""


class LedgerUnavailableError(LedgerError):
    """The database does not answer, after several tries; nothing was written, and the same may be asked again."""


class SchemaVersionError(LedgerError):
    """The database is older or newer than the code."""


class PayloadTooLargeError(LedgerError):
    """A value is over the limit that the settings name; nothing was truncated."""


class TransitionError(GraphrunError):
    """A state change that the table of legal transitions does not have."""


class EngineError(GraphrunError):
    """Broker, worker or embedded server."""


class BrokerDownError(EngineError):
    """The broker cannot be reached; what was submitted is kept and sent later."""


class LocalServerError(EngineError):
    """No Redis server could be found or started."""


class WaitTimeoutError(GraphrunError, TimeoutError):
    """A run did not end in the time given; it goes on."""
