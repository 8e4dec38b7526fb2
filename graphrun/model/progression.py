"""Progression: an ordered sequence of ids, with a name.

This module answers for the R rules: order, multiplicity and membership of ids. It must not hold items, nor ask whether
an id belongs to one.

Multiplicity is declared (R3): by default ids may repeat (visits, attempts); with ``unique=True`` (a wave, a Pile's
order) ``include`` passes over a repeat and everything else refuses it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any, Self, overload
from uuid import UUID

from graphrun.errors import FormatError, ItemExistsError, ItemNotFoundError
from graphrun.model import serialisation
from graphrun.model.element import Collection, ids_of


class Progression(Collection):
    """Ordered ids. Equal when order and name are, whatever the id; hence not hashable. False when empty.

    Wherever ids are taken, anything that ``ids_of`` understands may be given (R4).

    Args:
        order: the ids.
        name: by which a Flow finds it; it cannot be changed.
        unique: no id may occur twice; not part of equality.

    Raises:
        ValueError: ``order`` has something that is no reference, or a repeat where ``unique``.
    """

    __slots__ = ("_counts", "_name", "_order", "_unique")

    _order: deque[UUID]
    _counts: Counter[UUID]

    payload_fields = Collection.payload_fields | {"order", "name", "unique"}

    def __init__(self, order: object = None, name: str | None = None, *, unique: bool = False, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._name = name
        self._unique = unique
        self._set_order(ids_of(order))

    @property
    def name(self) -> str | None:
        """The name, if it has one."""
        return self._name

    @property
    def unique(self) -> bool:
        """Whether repeats are refused (R3)."""
        return self._unique

    @property
    def order(self) -> list[UUID]:
        """The ids in order, as a list of the caller's own."""
        with self._lock:
            return list(self._order)

    # Reading

    def __iter__(self) -> Iterator[UUID]:
        return iter(self.order)

    def __reversed__(self) -> Iterator[UUID]:
        return reversed(self.order)

    def __len__(self) -> int:
        return len(self._order)

    def __bool__(self) -> bool:
        return len(self._order) > 0

    def __contains__(self, refs: object) -> bool:
        """Tell whether each id occurs; true for empty input, false for invalid input (R2)."""
        try:
            return all(item_id in self._counts for item_id in ids_of(refs))
        except ValueError:
            return False

    @overload
    def __getitem__(self, key: int) -> UUID: ...
    @overload
    def __getitem__(self, key: slice) -> Progression: ...
    def __getitem__(self, key: int | slice) -> UUID | Progression:
        """Return the id at a position, or a Progression of a slice (R2).

        Raises:
            ItemNotFoundError: the position is out of range, or the slice is empty.
        """
        with self._lock:
            if isinstance(key, slice):
                ids = list(self._order)[key]
                if not ids:
                    raise ItemNotFoundError(f"no id in {key}: there are {len(self)}")
                return Progression(ids, unique=self._unique)
            return self._order[self._position(key)]

    def count(self, ref: object) -> int:
        """Return how often an id occurs."""
        (item_id,) = ids_of(ref)
        return self._counts.get(item_id, 0)

    def index(self, ref: object) -> int:
        """Return the first position of an id.

        Raises:
            ItemNotFoundError: it does not occur.
        """
        (item_id,) = ids_of(ref)
        with self._lock:
            if item_id not in self._counts:
                raise ItemNotFoundError(f"no id {item_id} in {self!r}")
            return self._order.index(item_id)

    # Adding

    def include(self, refs: object, /) -> bool:
        """Append the ids that are absent (R2).

        Returns:
            Whether any was added; true for empty input, false for invalid input.
        """
        try:
            ids = ids_of(refs)
        except ValueError:
            return False
        with self._lock:
            new = [item_id for item_id in dict.fromkeys(ids) if item_id not in self._counts]
            self._add(len(self._order), new)
        return bool(new) or not ids

    def append(self, refs: object, /) -> None:
        """Add at the end, with repeats.

        Raises:
            ItemExistsError: a repeat where ``unique``; nothing was added (R3).
        """
        ids = ids_of(refs)
        with self._lock:
            self._add(len(self._order), ids)

    def extend(self, refs: object, /) -> None:
        """Do what ``append`` does."""
        self.append(refs)

    def insert(self, index: int, refs: object, /) -> None:
        """Add before a position, with repeats.

        Raises:
            ItemExistsError: a repeat where ``unique``; nothing was added (R3).
        """
        ids = ids_of(refs)
        with self._lock:
            self._add(index, ids)

    def __iadd__(self, refs: object) -> Self:
        self.append(refs)
        return self

    def __add__(self, refs: object) -> Progression:
        total = Progression(self.order, self._name, unique=self._unique)
        total.append(refs)
        return total

    def __setitem__(self, key: int | slice, refs: object) -> None:
        """Assign one id to a position, or any number to a slice.

        An int past the end inserts there, one before the start inserts at the start (R4).

        Raises:
            IndexError: an int is given no id.
            ValueError: an int is given several ids.
            ItemExistsError: a repeat where ``unique``; nothing changed (R3).
        """
        ids = ids_of(refs)
        with self._lock:
            order = list(self._order)
            if isinstance(key, slice):
                order[key] = ids
            elif not ids:
                raise IndexError(f"position {key} takes one id, got none")
            elif len(ids) > 1:
                raise ValueError(f"position {key} takes one id, got {len(ids)}")
            elif -len(order) <= key < len(order):
                order[key] = ids[0]
            else:
                order.insert(key, ids[0])
            if self._unique and len(set(order)) < len(order):
                raise ItemExistsError(f"{self!r} is unique, and the assignment would repeat an id")
            self._set_order(order)

    # Removing

    def exclude(self, refs: object, /) -> bool:
        """Remove every occurrence of these ids (R2).

        Returns:
            Whether anything was removed; true for empty input, false for invalid input.
        """
        try:
            ids = ids_of(refs)
        except ValueError:
            return False
        with self._lock:
            return not ids or self._strip(set(ids)) > 0

    def remove(self, refs: object, /) -> None:
        """Remove every occurrence of these ids; empty input does nothing (R4).

        Raises:
            ItemNotFoundError: one does not occur; none was removed (R2).
        """
        ids = ids_of(refs)
        with self._lock:
            for item_id in ids:
                if item_id not in self._counts:
                    raise ItemNotFoundError(f"no id {item_id} in {self!r}")
            self._strip(set(ids))

    def __isub__(self, refs: object) -> Self:
        self._strip(set(ids_of(refs)))
        return self

    def __sub__(self, refs: object) -> Progression:
        left_out = set(ids_of(refs))
        return Progression([i for i in self.order if i not in left_out], self._name, unique=self._unique)

    def pop(self, index: int = -1, /) -> UUID:
        """Remove and return one occurrence.

        Raises:
            ItemNotFoundError: the position is out of range.
        """
        with self._lock:
            position = self._position(index)
            item_id = self._order[position]
            del self._order[position]
            self._counts[item_id] -= 1
            if not self._counts[item_id]:
                del self._counts[item_id]
            return item_id

    def popleft(self) -> UUID:
        """Remove and return the first occurrence in the order.

        Raises:
            ItemNotFoundError: there is none.
        """
        return self.pop(0)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._set_order([])

    # Arranging; membership and multiplicity stay (R2)

    def move(self, source: int, target: int, /) -> None:
        """Take the id at one position out and put it in before another, counted after it was taken out."""
        with self._lock:
            position = self._position(source)
            item_id = self._order[position]
            del self._order[position]
            self._order.insert(target, item_id)

    def swap(self, first: int, second: int, /) -> None:
        """Exchange the ids at two positions."""
        with self._lock:
            one, other = self._position(first), self._position(second)
            self._order[one], self._order[other] = self._order[other], self._order[one]

    def reverse(self) -> None:
        """Turn the order round."""
        with self._lock:
            self._order.reverse()

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object."""
        order = [str(item_id) for item_id in self]
        return super().to_dict() | {"order": order, "name": self._name, "unique": self._unique}

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new progression."""
        super().load_fields(payload, place)
        self._name = serialisation.read_optional_text(payload, "name", place)
        self._unique = serialisation.read(payload, "unique", bool, place, default=False)
        try:
            self._set_order(ids_of(serialisation.read(payload, "order", list, place, default=[])))
        except ValueError as error:
            raise FormatError(f"{place}.order: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Progression):
            return NotImplemented
        return self._name == other.name and self.order == other.order

    __hash__ = None  # type: ignore[assignment] # equal progressions may differ in id, and the order changes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name or self.id} of {len(self)}>"

    # How

    def _position(self, index: int) -> int:
        size = len(self._order)
        if not -size <= index < size:
            raise ItemNotFoundError(f"no id at position {index}: there are {size}")
        return index % size

    def _add(self, index: int, ids: list[UUID]) -> None:
        if self._unique and (len(set(ids)) < len(ids) or any(item_id in self._counts for item_id in ids)):
            raise ItemExistsError(f"{self!r} is unique, and an id is there already")
        if index >= len(self._order):
            self._order.extend(ids)
        else:
            order = list(self._order)
            order[index:index] = ids
            self._order = deque(order)
        self._counts.update(ids)

    def _strip(self, ids: set[UUID]) -> int:
        # One pass over the order for any number of ids, none when nothing of them occurs.
        with self._lock:
            before = len(self._order)
            if not ids.isdisjoint(self._counts):
                self._order = deque(item_id for item_id in self._order if item_id not in ids)
                for item_id in ids:
                    self._counts.pop(item_id, None)
            return before - len(self._order)

    def _set_order(self, ids: list[UUID]) -> None:
        counts = Counter(ids)
        if self._unique and len(counts) < len(ids):
            raise ValueError("a unique progression names an id twice")
        self._order = deque(ids)
        self._counts = counts
