"""Answers for containers: lists and dicts of leaves to JSON types and back, within a depth, without cycles.

It must not know annotations: what a type other than the exact JSON types becomes is asked of the `Coerce` that the
annotated writer brings; without one such a type is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from graphrun.codec.paths import Json, Refusal
from graphrun.codec.tags import LEAVES, is_numpy_scalar, joins_surrogates, numpy_item, read_tag

MAX_DEPTH = 200
"""Levels of nesting that are stored; far below the recursion limit, far above what people mean."""

_ANNOTATE = "annotate the return type (or the parameter) with it, or convert it to JSON types"
_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"


class Coerce(Protocol):
    """What an annotation allows beyond the exact JSON types."""

    def value(self, value: object) -> object:
        """A simpler value for one of a type that JSON does not have; the round trip is proved later."""

    def key(self, key: object) -> str:
        """The text for a dict key that is not text."""


class Variant:
    """A value written by one named member of a union (not a dataclass: Pydantic would dump it as one)."""

    __slots__ = ("name", "plain", "used")

    def __init__(self, name: str, plain: Json) -> None:
        self.name = name
        self.plain = plain
        self.used = False


def write(value: object, coerce: Coerce | None = None) -> Json:
    """The plain form of `value`.

    Raises:
        Refusal: a type that cannot be stored, a cycle, or too deep a nesting.
    """
    return _Writer(coerce).write(value, 0)


def read(plain: object, on_variant: Callable[[Variant], object] | None = None) -> object:
    """The value of a plain form; a union's variant is read as its content unless `on_variant` takes it.

    Raises:
        Refusal: it is not a plain form.
    """
    return _Reader(on_variant).read(plain, 0)


class _Writer:
    def __init__(self, coerce: Coerce | None) -> None:
        self._coerce = coerce
        self._open: set[int] = set()

    def write(self, value: object, depth: int) -> Json:
        leaf = LEAVES.get(type(value))
        if leaf is not None:
            return leaf(value)
        if depth > MAX_DEPTH:
            raise Refusal(value, _TOO_DEEP)
        if type(value) is list or type(value) is dict:
            return self._container(value, depth)
        if type(value) is Variant:
            return {"$variant": value.name, "value": value.plain}
        if is_numpy_scalar(value):
            return self.write(numpy_item(value), depth)
        if self._coerce is None:
            raise Refusal(value, _ANNOTATE)
        if isinstance(value, set | frozenset):
            return sorted(self._items(value, depth), key=json.dumps)  # the same text in every process
        return self.write(self._coerce.value(value), depth + 1)

    def _container(self, value: list[Any] | dict[Any, Any], depth: int) -> Json:
        if id(value) in self._open:
            raise Refusal(value, "it contains itself")
        self._open.add(id(value))
        written = self._items(value, depth) if isinstance(value, list) else self._dict(value, depth)
        self._open.discard(id(value))
        return written

    def _items(self, value: Iterable[object], depth: int) -> list[Json]:
        written: list[Json] = []
        try:
            for item in value:
                written.append(self.write(item, depth + 1))  # noqa: PERF401 - its length is the index of the fault
        except Refusal as refusal:
            refusal.within(len(written))
            raise
        return written

    def _dict(self, value: Mapping[object, object], depth: int) -> Json:
        written: dict[str, Json] = {}
        escape = False
        key: object = None
        try:
            for key, item in value.items():
                name = self._key(key)
                if name in written:
                    raise Refusal(key, f"two keys become {name!r}")  # noqa: TRY301 - the handler adds the path to it
                written[name] = self.write(item, depth + 1)
                escape = escape or name.startswith("$")
        except Refusal as refusal:
            refusal.within(key)
            raise
        return {"$literal": written} if escape else written

    def _key(self, key: object) -> str:
        if type(key) is str:
            name = key
        elif self._coerce is None:
            raise Refusal(key, f"a dict key that is not text: {_ANNOTATE}")
        else:
            name = self._coerce.key(key)
        if joins_surrogates(name):
            raise Refusal(key, "JSON cannot tell the surrogates of this dict key from one character")
        return name


class _Reader:
    def __init__(self, on_variant: Callable[[Variant], object] | None) -> None:
        self._on_variant = on_variant

    def read(self, plain: object, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise Refusal(plain, _TOO_DEEP)
        if type(plain) is dict:
            return self._dict(plain, depth)
        if type(plain) is list:
            return self._list(plain, depth)
        if plain is None or type(plain) in {bool, int, float, str}:
            return plain
        raise Refusal(plain, "not a stored value")

    def _list(self, plain: list[object], depth: int) -> list[object]:
        found: list[object] = []
        try:
            for item in plain:
                found.append(self.read(item, depth + 1))  # noqa: PERF401 - its length is the index of the fault
        except Refusal as refusal:
            refusal.within(len(found))
            raise
        return found

    def _dict(self, plain: dict[Any, Any], depth: int) -> object:
        tag = next((key for key in plain if type(key) is not str or key.startswith("$")), None)
        if tag is None:
            return self._entries(plain, depth)
        if tag == "$literal" and len(plain) == 1 and type(plain[tag]) is dict:
            return self._entries(plain[tag], depth)
        if tag == "$variant" and plain.keys() == {"$variant", "value"}:
            return self._variant(Variant(plain["$variant"], plain["value"]), depth)
        if type(tag) is not str:
            raise Refusal(plain, "not a stored value: a key is not text")
        return read_tag(tag, plain)

    def _entries(self, plain: dict[str, object], depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        key = ""
        try:
            for key, item in plain.items():
                found[key] = self.read(item, depth + 1)
        except Refusal as refusal:
            refusal.within(key)
            raise
        return found

    def _variant(self, variant: Variant, depth: int) -> object:
        if self._on_variant is not None:
            return self._on_variant(variant)
        return self.read(variant.plain, depth + 1)
