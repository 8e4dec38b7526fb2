"""Flow: several named orders over one Pile of items.

This module answers for the F rules: every view names resident items only, and a name stands for one view. It must not
copy items into the views, nor know what the views mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

from graphrun.errors import ItemExistsError, ItemNotFoundError
from graphrun.model import serialisation
from graphrun.model.element import Collection, Element, Ref
from graphrun.model.pile import Pile, PileView
from graphrun.model.pile_reading import PileReading
from graphrun.model.progression import Progression

T = TypeVar("T", bound=Element)


class Flow(Collection, Generic[T]):
    """Items in one Pile, and Progressions over them.

    The Pile is the flow's own: one that is passed in is copied, its items and Progressions are not.

    Args:
        items: a Pile, its serialised form, or anything that a Pile is made of.
        progressions: the views.
        name: free.

    Raises:
        ItemNotFoundError: a view names an item that is not there (F1).
        ItemExistsError: two views have one name, or one id (F3).
    """

    __slots__ = ("_items", "_names", "_progressions", "name")

    payload_fields = Collection.payload_fields | {"name", "items", "progressions"}

    def __init__(
        self,
        items: object = None,
        progressions: Progression | Iterable[Progression] | PileReading[Progression] | None = None,
        name: str | None = None,
        **envelope: Any,
    ) -> None:
        super().__init__(**envelope)
        self.name = name
        self._fill(_own_pile(items), _listed(progressions))

    @property
    def items(self) -> PileView[T]:
        """The items; read-only, since removing one must strip it from the views as well."""
        return self._items.view()

    @property
    def progressions(self) -> PileView[Progression]:
        """The views in the order in which they were added; read-only."""
        return self._progressions.view()

    def add_progression(self, progression: Progression) -> None:
        """Add a view, after it was checked (F2).

        Raises:
            ItemExistsError: its name or id is taken.
            ItemNotFoundError: it names an item that is not there.
        """
        with self._lock:
            self._check(progression)
            self._progressions.include(progression)
            if progression.name:
                self._names[progression.name] = progression.id

    def get_progression(self, key: Ref) -> Progression:
        """Return a view by name, id or instance; a name wins over a UUID parse (F4).

        Raises:
            ItemNotFoundError: there is none.
        """
        with self._lock:
            if isinstance(key, str) and key in self._names:
                return self._progressions[self._names[key]]
            try:
                return self._progressions[key]
            except ItemNotFoundError:
                known = ", ".join(sorted(self._names)) or "none"
                raise ItemNotFoundError(f"no progression {key!r} in {self!r}; known are {known}") from None

    def remove_progression(self, key: Ref) -> Progression:
        """Remove and return a view; its items stay.

        Raises:
            ItemNotFoundError: there is none.
        """
        with self._lock:
            progression = self._progressions.pop(self.get_progression(key).id)
            if progression.name:
                del self._names[progression.name]
            return progression

    def add_item(self, item: T, progressions: Ref | Iterable[Ref] | None = None) -> None:
        """Put an item into the Pile and append it to views: again in a repeating one, once in a unique one (F6).

        Raises:
            ItemNotFoundError: a view is not one of this flow; nothing changed (F5).
            TypeError: the Pile does not admit the item; nothing changed.
        """
        with self._lock:
            views = [self.get_progression(key) for key in _listed(progressions)]
            self._items.include(item)
            for view in views:
                if view.unique:
                    view.include(item)
                else:
                    view.append(item)

    def remove_item(self, ref: Ref) -> T:
        """Strip every occurrence of an item from every view, then remove and return it (F7).

        Raises:
            ItemNotFoundError: it is not there.
        """
        with self._lock:
            item = self._items.get(ref)
            for view in self._progressions:
                view.exclude(item)
            return self._items.pop(item)

    def clear(self) -> None:
        """Remove all items, views and names (F7)."""
        with self._lock:
            self._items.clear()
            self._progressions.clear()
            self._names.clear()

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object."""
        with self._lock:
            views = serialisation.serialised(self._progressions, "$.progressions")
            return super().to_dict() | {"name": self.name, "items": self._items.to_dict(), "progressions": views}

    def load_fields(self, payload: Mapping[str, Any], place: str) -> None:
        """Fill a new flow; the rules for its views hold for a payload as well (F1, F3)."""
        super().load_fields(payload, place)
        self.name = serialisation.read_optional_text(payload, "name", place)
        items = serialisation.check_mapping(payload.get("items"), f"{place}.items")
        views = serialisation.read(payload, "progressions", list, place, default=[])
        self._fill(
            Pile.from_dict(items, place=f"{place}.items"),
            [Progression.from_dict(view, place=f"{place}.progressions[{index}]") for index, view in enumerate(views)],
        )

    def __copy__(self) -> Self:
        """Return a flow of the same items, with copies of the views, which are what a flow changes."""
        with self._lock:
            twin = type(self).__new__(type(self))
            twin.__setstate__(self.__getstate__())
            twin._fill(copy(self._items), [copy(view) for view in self._progressions])  # noqa: SLF001 - its own class
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or self.id}>"

    # How

    def _fill(self, items: Pile[Any], progressions: Iterable[Progression]) -> None:
        self._items: Pile[T] = items
        self._progressions: Pile[Progression] = Pile(item_type=Progression)
        self._names: dict[str, UUID] = {}
        for progression in progressions:
            self.add_progression(progression)

    def _check(self, progression: Progression) -> None:
        if not isinstance(progression, Progression):
            raise TypeError(f"{progression!r} is no Progression")
        if progression in self._progressions:
            raise ItemExistsError(f"{progression!r} is in {self!r} already")
        if progression.name and progression.name in self._names:
            raise ItemExistsError(f"{self!r} has a progression named {progression.name!r} already")
        for item_id in progression:
            if item_id not in self._items:
                raise ItemNotFoundError(f"{progression!r} names {item_id}, which is not among the items of {self!r}")


def _own_pile(items: object) -> Pile[Any]:
    if serialisation.is_payload(items):
        payload = cast("Mapping[str, Any]", items)
        if serialisation.registered_type(payload["type"], "items.type") is Pile:
            items = Pile.from_dict(payload, place="items")
    if not isinstance(items, PileReading):
        return Pile(items)
    own = Pile[Any](items.values(), item_type=items.item_type, strict_type=items.strict_type, id=items.id)
    own.metadata.update(items.metadata)
    return own


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, PileReading):
        return value.values()
    return [value] if isinstance(value, str | UUID | Element) else list(value)
