"""Store: items by id, in one order. It is the storage that a Pile, its read-only views and a Graph share.

This module answers for the order and for lookup by position. It must not decide what may be stored, and it takes no
lock: its owner does.

P1 holds by construction: a dict keeps both the items and their order, so no second structure can disagree with it.
Positions are read from a list of ids, extended after appends and thrown away when anything else changes the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from graphrun.errors import ItemNotFoundError
from graphrun.model.element import Element, raw_id

T = TypeVar("T", bound=Element)


class Store(Generic[T]):
    """Items by raw id in one order. Owners may add to ``items`` directly; anything else goes through the methods."""

    __slots__ = ("_order", "items")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.items: dict[int, T] = {raw_id(item): item for item in items}
        self._order: list[int] = []

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self.items.values()))

    def copy(self) -> Store[T]:
        """Return a store of the same items that changes on its own."""
        return Store(self.items.values())

    def order(self) -> list[int]:
        """Return the ids in order; the list is the store's own and is not to be changed."""
        if len(self._order) < len(self.items):
            self._order.extend(islice(self.items, len(self._order), None))
        return self._order

    def id_at(self, index: int) -> int:
        """Return the id at a position, in constant time at the end, even while items are appended.

        Raises:
            ItemNotFoundError: the position is out of range.
        """
        if index == -1 and self.items:
            return next(reversed(self.items))
        try:
            return self.order()[index]
        except IndexError:
            raise ItemNotFoundError(f"no item at position {index}: there are {len(self)}") from None

    def ids_in(self, positions: slice) -> list[int]:
        """Return the ids that a slice selects.

        Raises:
            ItemNotFoundError: it selects none.
        """
        ids = self.order()[positions]
        if not ids:
            raise ItemNotFoundError(f"no item in {positions}: there are {len(self)}")
        return ids

    def remove(self, item_id: int) -> T:
        """Remove and return a resident item."""
        self._order.clear()
        return self.items.pop(item_id)

    def clear(self) -> None:
        """Remove everything."""
        self._order.clear()
        self.items.clear()

    def rearrange(self, items: Iterable[T]) -> None:
        """Hold exactly these items, in this order."""
        arranged = {raw_id(item): item for item in items}
        self.clear()
        self.items.update(arranged)
