"""Admission: the one rule by which a Pile takes items (P8, P9).

This module answers for what may enter a Pile, and for the classes by which it may be filtered. It must not store
anything.

The rule: an item is a nominal Element, and of one of the allowed classes where there are any; ``strict`` means exactly
of one of them. A serialised element is rebuilt first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeAlias, Union, cast, get_args, get_origin

from graphrun.errors import FormatError
from graphrun.model import serialisation
from graphrun.model.element import Element

ItemTypes: TypeAlias = "type[Any] | UnionType | str | Iterable[type[Any] | UnionType | str] | None"


class Admission:
    """Which classes a Pile admits.

    Attributes:
        item_type: the allowed classes in the declared order; None admits every Element.
        strict: subclasses of them are refused.
    """

    __slots__ = ("item_type", "strict")

    def __init__(self, item_type: ItemTypes = None, *, strict: bool = False) -> None:
        classes = element_classes(item_type)
        self.item_type = classes or None
        self.strict = strict

    def admit(self, item: object) -> Element:
        """Return the item, rebuilt if it is serialised.

        Raises:
            TypeError: the item is no Element, or not of an allowed class.
            FormatError: a serialised item is malformed.
        """
        if serialisation.is_payload(item):
            item = Element.from_dict(serialisation.check_mapping(item, "$"))
        if not isinstance(item, Element):
            raise TypeError(f"{item!r} is no Element, so that a Pile cannot hold it")
        if not self._allows(item):
            only = "exactly " if self.strict else ""
            names = " or ".join(cls.__name__ for cls in self.item_type or ())
            raise TypeError(f"{item!r} is refused: this Pile holds {only}{names}")
        return item

    def _allows(self, item: Element) -> bool:
        if self.item_type is None:
            return True
        return type(item) in self.item_type if self.strict else isinstance(item, self.item_type)


def candidates(value: object) -> Iterator[object]:
    """Yield what a Pile is asked to take, one by one.

    An Element is one item, and so is an empty Pile or Progression (P2), a serialised element, or a lone reference. None
    is nothing; another mapping offers its values; any other iterable its members.
    """
    if value is None:
        return
    several = isinstance(value, Iterable) and not isinstance(value, str)
    if isinstance(value, Element) or serialisation.is_payload(value) or not several:
        yield value
    else:
        yield from value.values() if isinstance(value, Mapping) else cast("Iterable[object]", value)


def element_classes(declared: ItemTypes) -> tuple[type[Element], ...]:
    """Return the Element classes that a declaration names: classes, unions, registered type names, or several (P9).

    Raises:
        ValueError: a class is named twice, or a name is unknown.
        TypeError: something is no Element class.
    """
    classes = tuple(_classes(declared))
    if len(set(classes)) < len(classes):
        raise ValueError(f"item_type names a class twice: {', '.join(cls.__name__ for cls in classes)}")
    return classes


def _classes(declared: object) -> Iterator[type[Element]]:
    if declared is None:
        return
    if isinstance(declared, str):
        try:
            declared = serialisation.registered_type(declared, "item_type")
        except FormatError as error:
            raise ValueError(str(error)) from None
    if isinstance(declared, type):
        if not issubclass(declared, Element):
            raise TypeError(f"{declared.__name__} is no Element class")
        yield declared
    elif isinstance(declared, UnionType) or get_origin(declared) is Union:
        for member in get_args(declared):
            yield from _classes(member)
    elif isinstance(declared, Iterable):
        for member in declared:
            yield from _classes(member)
    else:
        raise TypeError(f"{declared!r} is no Element class, union of them or registered type name")
