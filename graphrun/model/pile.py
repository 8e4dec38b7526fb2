"""Pile: Elements by id, in one default order.

This module answers for the P rules: lookup by identity or by position, and mutation that keeps items and order one
(P1). It must not read or write files: ``to_dict`` is the only export (P11).

References (UUID, Element, UUID string) select by identity, int and slice by position (P4, P7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Any, TypeVar, cast, overload
from uuid import UUID

from graphrun.errors import FormatError, ItemExistsError, ItemNotFoundError
from graphrun.model import serialisation
from graphrun.model.admission import Admission, ItemTypes, candidates
from graphrun.model.element import Element, Ref, raw_id, raw_ids_of
from graphrun.model.pile_reading import PileReading
from graphrun.model.progression import Progression
from graphrun.model.store import Store

T = TypeVar("T", bound=Element)
D = TypeVar("D")

_MISSING: Any = object()


class Pile(PileReading[T]):
    """An ordered collection of Elements with unique ids; false when empty.

    Args:
        collections: items, or one item. Any Element is one item, also a Pile; of several with one id the last is kept.
        item_type: the classes that are admitted: a class, a union, a registered type name, or several of them.
        order: the ids of exactly these items, once each; the order in which they were given otherwise (P2).
        strict_type: subclasses of ``item_type`` are refused. It cannot be changed (P3).

    Raises:
        ValueError: the order has a duplicate, another length or an unknown id.
        TypeError: an item is not admitted.
    """

    __slots__ = ()

    payload_fields = PileReading.payload_fields | {"collections", "item_type", "strict_type"}

    def __init__(
        self,
        collections: object = None,
        *,
        item_type: ItemTypes = None,
        order: object = None,
        strict_type: bool = False,
        **envelope: Any,
    ) -> None:
        super().__init__(**envelope)
        self._admission = Admission(item_type, strict=strict_type)
        self._store: Store[T] = Store(cast("T", self._admission.admit(item)) for item in candidates(collections))
        ids = _order_ids(order)
        if ids:
            self._arrange(ids)

    def view(self) -> PileView[T]:
        """Return a read-only view of this pile, with its id."""
        return PileView(self._store, self._lock, self._admission, id=self.id, metadata=self._metadata)

    def include(self, items: object, /) -> None:
        """Add items, or put them in the place of those with the same id, without moving these (P6).

        An id of a resident item names that item, so that including it changes nothing.

        Raises:
            TypeError: an item is not admitted; none was included.
            ItemNotFoundError: an id names no resident item.
        """
        with self._lock:
            self._store.items.update((raw_id(item), item) for item in self._admitted(items))

    def update(self, items: object, /) -> None:
        """Do what ``include`` does (P6)."""
        self.include(items)

    def append(self, items: object, /) -> None:
        """Do what ``include`` does: a resident item is replaced in its place and not moved to the end (P6)."""
        self.include(items)

    def insert(self, index: int, items: object, /) -> None:
        """Put new items before a position.

        Raises:
            ItemExistsError: an id is resident; none was inserted (P6).
        """
        with self._lock:
            self._replace(slice(index, index), self._admitted(items))

    def __setitem__(self, key: Any, value: object) -> None:
        """Assign new items: to positions, evicting what stood there, or at the end under their own ids (P6).

        Raises:
            ItemExistsError: an id is resident already.
            ItemNotFoundError: the position is out of range.
            ValueError: an int or a stepped slice is given another number of items, or the key is not the items' ids.
        """
        with self._lock:
            new = self._admitted(value)
            if isinstance(key, slice):
                self._replace(key, new)
            elif isinstance(key, int):
                if len(new) != 1:
                    raise ValueError(f"position {key} takes one item, got {len(new)}")
                self._store.id_at(key)
                position = key % len(self)
                self._replace(slice(position, position + 1), new)
            else:
                if set(raw_ids_of(key)) != {raw_id(item) for item in new}:
                    raise ValueError("the key of an assignment must be the id of its item")
                self._replace(slice(len(self), None), new)

    def exclude(self, refs: object, /) -> None:
        """Remove what is resident of these; what is missing is passed over (P6).

        Raises:
            TypeError: int and slice are refused, since positions are not identities.
            ValueError: something is no reference.
        """
        with self._lock:
            for item_id in _identities(refs):
                if item_id in self._store.items:
                    self._store.remove(item_id)

    def remove(self, refs: object, /) -> None:
        """Remove these.

        Raises:
            ItemNotFoundError: one is missing; none was removed (P6).
            TypeError: int and slice are refused, since positions are not identities.
        """
        with self._lock:
            for item_id in self._resident(_identities(refs)):
                self._store.remove(item_id)

    @overload
    def pop(self, key: int | Ref, /) -> T: ...
    @overload
    def pop(self, key: slice, /) -> Pile[T]: ...
    @overload
    def pop(self, key: list[Any] | tuple[Any, ...], /) -> list[T]: ...
    @overload
    def pop(self, key: Any, default: D, /) -> Any: ...
    def pop(self, key: Any, default: Any = _MISSING, /) -> Any:
        """Remove and return: an item for an int or one reference, a Pile for a slice, a list for several (P5, P6).

        Raises:
            ItemNotFoundError: nothing is there and no default is given; nothing was removed.
        """
        with self._lock:
            try:
                ids = self._select(key)
            except ItemNotFoundError:
                if default is _MISSING:
                    raise
                return default
            items = [self._store.remove(item_id) for item_id in ids]
        if isinstance(key, slice):
            return self._like(items)
        return items[0] if isinstance(key, int | UUID | Element | str) else items

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._store.clear()

    def reorder(self, order: object, /) -> None:
        """Give the items another order.

        Raises:
            ValueError: the order has a duplicate, another length or an unknown id; nothing changed.
        """
        with self._lock:
            self._arrange(_order_ids(order))

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object; the items stand in order."""
        classes = self.item_type
        return super().to_dict() | {
            "collections": serialisation.serialised(self, "$.collections"),
            "item_type": None if classes is None else [serialisation.type_name(cls) for cls in classes],
            "strict_type": self.strict_type,
        }

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new pile; the item types hold for the items of the payload as well (P10)."""
        super().load_fields(payload, place)
        names = serialisation.read(payload, "item_type", list, place) if payload.get("item_type") else []
        strict = serialisation.read(payload, "strict_type", bool, place, default=False)
        types = [serialisation.registered_type(name, f"{place}.item_type[{index}]") for index, name in enumerate(names)]
        self._admission = Admission(types, strict=strict)
        self._store = Store()
        for index, item in enumerate(serialisation.read(payload, "collections", list, place, default=[])):
            where = f"{place}.collections[{index}]"
            element = Element.from_dict(item, place=where)
            try:
                self._store.items[raw_id(element)] = cast("T", self._admission.admit(element))
            except TypeError as error:
                raise FormatError(f"{where}: {error}") from None

    # How

    def _admitted(self, value: object) -> list[T]:
        admitted: dict[int, T] = {}
        for candidate in candidates(value):
            named = isinstance(candidate, UUID | str)
            item = self._store.items[self._select(candidate)[0]] if named else self._admission.admit(candidate)
            admitted[raw_id(item)] = cast("T", item)
        return list(admitted.values())

    def _replace(self, positions: slice, new: list[T]) -> None:
        for item in new:
            if raw_id(item) in self._store.items:
                raise ItemExistsError(f"{item!r} is in the pile already; only new items can be placed")
        arranged = list(self._store.items.values())
        arranged[positions] = new
        self._store.rearrange(arranged)

    def _arrange(self, ids: list[int]) -> None:
        items = self._store.items
        unknown = [item_id for item_id in ids if item_id not in items]
        if unknown:
            raise ValueError(f"the order names {UUID(int=unknown[0])}, which is not in the pile")
        if len(set(ids)) < len(ids):
            raise ValueError("the order names an item twice")
        if len(ids) != len(items):
            raise ValueError(f"the order names {len(ids)} of {len(items)} items")
        self._store.rearrange([items[item_id] for item_id in ids])

    def _like(self, items: Iterable[Any]) -> Pile[Any]:
        return Pile(list(items), item_type=self.item_type, strict_type=self.strict_type)


class PileView(PileReading[T], registered=False):
    """A Pile that can only be read: it has no method that writes. It shows what its owner does, under the owner's lock.

    Args:
        store: the owner's.
        lock: the owner's, so that a reader never sees half a change.
        admission: the owner's rule, which filtered piles inherit.
    """

    __slots__ = ()

    def __init__(self, store: Store[T], lock: RLock, admission: Admission, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._store = store
        self._lock = lock
        self._admission = admission

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of a Pile of these items."""
        return self._like(self).to_dict() | {"id": str(self.id)}

    def _like(self, items: Iterable[Any]) -> Pile[Any]:
        return Pile(list(items), item_type=self.item_type, strict_type=self.strict_type)


def _order_ids(order: object) -> list[int]:
    if serialisation.is_payload(order):
        order = Progression.from_dict(cast("Mapping[str, Any]", order), place="order")
    return raw_ids_of(list(order)) if isinstance(order, Progression) else raw_ids_of(order)


def _identities(refs: object) -> list[int]:
    if isinstance(refs, int | slice):
        raise TypeError("items are removed by identity, not by position; use pop")
    return raw_ids_of(refs)
