"""Element: identity, time of creation and metadata, which everything in a graph has. Collection: one with a lock.

This module answers for identity, equality, references by id and the common part of the JSON form. It must not know what
an element is used for.

Elements are slotted plain classes: a graph of 100,000 nodes and 300,000 edges has 400,000 of them, so what is seldom
used (metadata) is made when it is first asked for, the time of creation is kept as a float, and the id as an int, by
which storage is keyed: unlike a UUID it is hashed in C and not watched by the garbage collector.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from threading import RLock
from typing import Any, ClassVar, Self, cast
from uuid import UUID, uuid4

from graphrun.errors import FormatError
from graphrun.model import serialisation


class Element:
    """Something with an id. Elements are equal when their ids are, whatever else they hold; they are always true.

    Subclasses are registered as trusted payload types under their class name (with the module, where a class that they
    extend has that name), or under ``type_name``::

        class Step(Node, type_name="acme.Step"): ...

    A subclass with state of its own extends ``payload_fields``, ``to_dict`` and ``load_fields``.

    Args:
        id: kept; a new random UUID otherwise.
        created_at: an aware moment; now otherwise.
        metadata: a mapping that is copied, one level deep.
    """

    __slots__ = ("_created", "_id", "_metadata")

    payload_fields: ClassVar[frozenset[str]] = frozenset({"type", "id", "created_at", "metadata"})

    def __init_subclass__(cls, *, type_name: str | None = None, registered: bool = True, **kwargs: Any) -> None:
        """Register the subclass as the trusted class of its type name, unless it is only there to be subclassed."""
        super().__init_subclass__(**kwargs)
        if registered:
            inherited = any(base.__name__ == cls.__name__ for base in cls.__mro__[1:])
            own_name = f"{cls.__module__}.{cls.__qualname__}" if inherited else cls.__name__
            serialisation.register_type(cls, type_name or own_name)

    def __init__(
        self,
        *,
        id: UUID | str | None = None,  # noqa: A002 - the attribute's own name, as in every payload
        created_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._id = uuid4().int if id is None else raw_id_of(id)
        self._created = datetime.now(UTC).timestamp() if created_at is None else serialisation.epoch_seconds(created_at)
        self._metadata: dict[str, Any] | None = dict(metadata) if metadata else None

    @property
    def id(self) -> UUID:
        """The identity; it never changes."""
        return UUID(int=self._id)

    @property
    def created_at(self) -> datetime:
        """When the element was made, in UTC."""
        return datetime.fromtimestamp(self._created, UTC)

    @property
    def metadata(self) -> dict[str, Any]:
        """Free JSON values of the caller's; made when first asked for."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object that shares nothing with the element.

        Raises:
            EncodingError: a value in it is not plain JSON; names the type and the place.
        """
        return {
            "type": serialisation.type_name(type(self)),
            "id": str(self.id),
            "created_at": self.created_at.isoformat(),
            "metadata": serialisation.plain_json(self._metadata or {}, "$.metadata"),
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any], *, place: str = "$") -> Self:
        """Return the element that ``payload`` describes, of the registered class that it names; it is not changed.

        Args:
            payload: what ``to_dict`` gave.
            place: where the payload stands in a larger one, for messages.

        Raises:
            FormatError: an unknown type or field, a missing one, or one of the wrong kind, with its place.
        """
        payload = serialisation.check_mapping(payload, place)
        name = serialisation.read(payload, "type", str, place)
        target = serialisation.registered_type(name, f"{place}.type")
        if not issubclass(target, cls):
            raise FormatError(f"{place}.type: {name!r} is no {cls.__name__}")
        serialisation.check_fields(payload, target.payload_fields, place)
        element = target.__new__(target)
        element.load_fields(payload, place)
        return element

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new, empty element from a payload whose field names have been checked (for subclasses)."""
        self._id = serialisation.read_id(payload, "id", place).int
        self._created = serialisation.read_moment(payload, "created_at", place)
        self._metadata = serialisation.read_json_object(payload, "metadata", place)

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Any]]:
        attributes, slots = cast("tuple[dict[str, Any] | None, dict[str, Any]]", super().__getstate__())
        # Containers are copied, so that a shallow copy has parameters, properties and items of its own.
        return dict(attributes or {}), {name: _own(value) for name, value in slots.items()}

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
        attributes, slots = state
        for name, value in (*slots.items(), *attributes.items()):
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self._id == raw_id(other) if isinstance(other, Element) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


serialisation.register_type(Element, "Element")


class Collection(Element, registered=False):
    """An Element that is guarded by one reentrant lock, which is neither copied nor serialised (P12, G31)."""

    __slots__ = ("_lock",)

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._lock = RLock()

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new collection, with a lock of its own."""
        super().load_fields(payload, place)
        self._lock = RLock()

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Any]]:
        with self._lock:  # pickle and copy read the state later, when other threads may write
            attributes, slots = super().__getstate__()
        del slots["_lock"]
        return attributes, slots

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
        super().__setstate__(state)
        self._lock = RLock()


raw_id: Callable[[Element], int] = attrgetter("_id")
"""The id of an element as an int, for storage; everything public speaks of UUIDs."""

Ref = UUID | Element | str
"""How one element is named: by its id, by itself, or by its id as a string."""


def raw_id_of(ref: object) -> int:
    """Return the id that a reference names, as an int. Only a nominal Element counts, not whatever has an ``id`` (P8).

    Raises:
        ValueError: ``ref`` is no UUID, Element or UUID string.
    """
    if isinstance(ref, Element):
        return raw_id(ref)
    if isinstance(ref, UUID):
        return ref.int
    if isinstance(ref, str):
        try:
            return UUID(ref).int
        except ValueError:
            raise ValueError(f"{ref!r} is not a UUID string") from None
    raise ValueError(f"{ref!r} is no reference; a UUID, an Element or a UUID string is")


def raw_ids_of(refs: object) -> list[int]:
    """Return the ids, as ints, that ``refs`` names, flattened, in order, with repeats (R4).

    Elements give their ids (a Progression too: pass its ``order`` to mean what it holds), mappings their keys, nested
    lists, tuples and sets are flattened, None is ignored.

    Raises:
        ValueError: something in it is no reference.
    """
    ids: list[int] = []
    open_ends: list[Iterable[object]] = [iter((refs,))]
    while open_ends:
        for ref in open_ends[-1]:
            if isinstance(ref, (list, tuple, set, frozenset, deque, Mapping)):
                open_ends.append(iter(ref))
                break
            if ref is not None:
                ids.append(raw_id_of(ref))
        else:
            open_ends.pop()
    return ids


def ids_of(refs: object) -> list[UUID]:
    """Return the ids that ``refs`` names, by the rules of ``raw_ids_of``.

    Raises:
        ValueError: something in it is no reference.
    """
    return [UUID(int=number) for number in raw_ids_of(refs)]


def _own(value: Any) -> Any:
    copy = getattr(value, "copy", None)
    return value if copy is None else copy()
