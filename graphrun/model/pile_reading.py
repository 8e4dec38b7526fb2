"""PileReading: what a Pile answers, whether or not it may be written.

This module answers for lookup by identity, position, class and predicate (P4, P5). It must not change anything.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from uuid import UUID

from graphrun.errors import ItemNotFoundError
from graphrun.model.admission import Admission, element_classes
from graphrun.model.element import Collection, Element, Ref, raw_ids_of
from graphrun.model.progression import Progression
from graphrun.model.store import Store

if TYPE_CHECKING:
    from graphrun.model.pile import Pile

T = TypeVar("T", bound=Element)
E = TypeVar("E", bound=Element)
D = TypeVar("D")

_MISSING: Any = object()


class PileReading(Collection, Generic[T], registered=False):
    """The reading half of a Pile; false when empty. References select by identity, int and slice by position (P4)."""

    __slots__ = ("_admission", "_store")

    _admission: Admission
    _store: Store[T]

    @abstractmethod
    def _like(self, items: Iterable[Any]) -> Pile[Any]:
        """Return a pile of these items under the same rule of admission."""

    @property
    def collections(self) -> Mapping[UUID, T]:
        """The items by id, in order, as they are now; read-only."""
        return MappingProxyType(dict(self.items()))

    @property
    def progression(self) -> Progression:
        """The order as it is now; changing it does not change the pile (see ``reorder``)."""
        return Progression(self.keys(), unique=True)

    @property
    def item_type(self) -> tuple[type[Element], ...] | None:
        """The admitted classes in the declared order; None when every Element is."""
        return self._admission.item_type

    @property
    def strict_type(self) -> bool:
        """Whether subclasses are refused; frozen (P3)."""
        return self._admission.strict

    @overload
    def __getitem__(self, key: int | Ref) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> list[T]: ...
    @overload
    def __getitem__(self, key: type[E]) -> Pile[E]: ...
    @overload
    def __getitem__(self, key: Callable[[T], object]) -> Pile[T]: ...
    @overload
    def __getitem__(self, key: Iterable[Ref]) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        """Return what the key selects (P4).

        An int or one reference gives the item, a slice always a list, several references a list unless they name one
        item; a class or a predicate gives a Pile.

        Raises:
            ItemNotFoundError: nothing is there, or the key is no reference.
        """
        if isinstance(key, type | UnionType):
            classes = element_classes(key)
            return self._like(item for item in self if isinstance(item, classes))
        if callable(key) and not isinstance(key, Element):
            return self._like(item for item in self if key(item))
        with self._lock:
            ids = self._select(key)
            items = [self._store.items[item_id] for item_id in ids]
        return items if isinstance(key, slice) or len(items) > 1 else items[0]

    @overload
    def get(self, key: int | Ref, /) -> T: ...
    @overload
    def get(self, key: int | Ref, default: D, /) -> T | D: ...
    @overload
    def get(self, key: Any, default: Any = ..., /) -> Any: ...
    def get(self, key: Any, default: Any = _MISSING, /) -> Any:
        """Return what the key selects, or the default if one is given and nothing is there (P5)."""
        try:
            return self[key]
        except ItemNotFoundError:
            if default is _MISSING:
                raise
            return default

    def keys(self) -> list[UUID]:
        """Return the ids in order."""
        with self._lock:
            return [item.id for item in self._store]

    def values(self) -> list[T]:
        """Return the items in order."""
        with self._lock:
            return list(self._store.items.values())

    def items(self) -> list[tuple[UUID, T]]:
        """Return the pairs of id and item in order."""
        with self._lock:
            return [(item.id, item) for item in self._store]

    def __iter__(self) -> Iterator[T]:
        return iter(self.values())

    def __len__(self) -> int:
        return len(self._store)

    def __bool__(self) -> bool:
        return len(self._store) > 0

    def __contains__(self, refs: object) -> bool:
        try:
            ids = raw_ids_of(refs)
        except ValueError:
            return False
        with self._lock:
            return all(item_id in self._store.items for item_id in ids)

    def __or__(self, other: object) -> Pile[T]:
        if not isinstance(other, PileReading):
            return NotImplemented
        return self._like([*self, *(item for item in other if item not in self)])

    def __and__(self, other: object) -> Pile[T]:
        if not isinstance(other, PileReading):
            return NotImplemented
        return self._like(item for item in self if item in other)

    def __xor__(self, other: object) -> Pile[T]:
        if not isinstance(other, PileReading):
            return NotImplemented
        left = [item for item in self if item not in other]
        return self._like([*left, *(item for item in other if item not in self)])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    def _select(self, key: object) -> list[int]:
        if isinstance(key, int):
            return [self._store.id_at(key)]
        if isinstance(key, slice):
            return self._store.ids_in(key)
        try:
            ids = raw_ids_of(key)
        except ValueError as error:
            raise ItemNotFoundError(str(error)) from None
        if not ids:
            raise ItemNotFoundError("an empty selection names no item")
        return self._resident(ids)

    def _resident(self, ids: list[int]) -> list[int]:
        for item_id in ids:
            if item_id not in self._store.items:
                raise ItemNotFoundError(f"no item with id {UUID(int=item_id)}")
        return list(dict.fromkeys(ids))
