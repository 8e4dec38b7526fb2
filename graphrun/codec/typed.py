"""Answers for annotated values: Pydantic dumps and validates, then the round trip is proved (§3.8).

It must not trust Pydantic: what does not come back equal, with equal types, is refused at its path. A union whose
member cannot be told from the plain form is written with the member's name, ``{"$variant": "A", "value": ...}``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import (
    PydanticSchemaGenerationError,
    PydanticUserError,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
    WrapSerializer,
    WrapValidator,
)
from pydantic_core import to_jsonable_python

from graphrun.codec.annotations import is_union
from graphrun.codec.equality import require_equal
from graphrun.codec.paths import Json, Refusal, path_of
from graphrun.codec.plain import Variant, read, write
from graphrun.codec.tags import is_numpy_scalar, numpy_item

_ATOMS = (type(None), bool, int, float, str)


class Problem(NamedTuple):
    """One complaint of Pydantic: where in the value, and what."""

    path: str
    message: str


def write_annotated(value: object, annotation: Any) -> Json:
    """The plain form of `value`, proved to be read back equal under the same annotation.

    Raises:
        Refusal: it cannot be written, or would come back changed.
    """
    adapter = adapter_for(annotation)
    if adapter is None:
        return write(value)
    tagged = _tag_unions(annotation)
    writers: list[Callable[[], Json]] = [lambda: _dump(adapter, value, "python")]
    if tagged is not annotation:
        writers.append(lambda: _dump(_adapter(tagged, repr(tagged)), value, "python"))
    writers.append(lambda: _dump(adapter, value, "json"))
    first: Refusal | None = None
    for attempt in writers:
        try:
            plain = attempt()
            require_equal(value, read_annotated(plain, annotation))
        except Refusal as refusal:
            first = first or refusal
        else:
            return plain
    assert first is not None  # noqa: S101 - every attempt either returned or refused
    raise first


def read_annotated(plain: object, annotation: Any) -> object:
    """The value of a plain form, converted to `annotation` as Pydantic does in its lax mode.

    Raises:
        Refusal: it is not a plain form, or does not fit.
    """
    adapter = adapter_for(annotation)
    if adapter is None:
        return read(plain)
    variants: list[Variant] = []

    def keep(variant: Variant) -> Variant:
        variants.append(variant)
        return variant

    value = read(plain, on_variant=keep)
    if variants:
        tagged = _tag_unions(annotation)
        try:
            found = validate(value, _adapter(tagged, repr(tagged)))
        except ValidationError:
            pass  # another union, or none: the content of the variants must do
        else:
            if all(variant.used for variant in variants):
                return found
        value = read(plain)
    return _validate_or_refuse(value, adapter)


def validate(value: object, adapter: TypeAdapter[Any]) -> object:
    """The value as Pydantic converts it; fields may be given by name or by alias.

    Raises:
        ValidationError: it does not fit.
    """
    return adapter.validate_python(value, by_alias=True, by_name=True)


def problems_of(value: object, annotation: Any) -> tuple[object, list[Problem]]:
    """The converted value and no problems, or the value as it was and everything that Pydantic says against it."""
    adapter = adapter_for(annotation)
    if adapter is None:
        return value, []
    try:
        return validate(value, adapter), []
    except ValidationError as error:
        return value, _problems(error, value)
    except Exception as error:  # noqa: BLE001 - a user's own validator may raise anything
        return value, [Problem("$", f"{type(error).__name__}: {error}")]


def adapter_for(annotation: Any) -> TypeAdapter[Any] | None:
    """The cached adapter, or None for a type that Pydantic has no schema for: its values must describe themselves."""
    return _adapter_or_none(annotation, repr(annotation))


@lru_cache(maxsize=1024)
def _adapter_or_none(annotation: Any, text: str) -> TypeAdapter[Any] | None:
    try:
        return _adapter(annotation, text)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return None


@lru_cache(maxsize=1024)
def _adapter(annotation: Any, _text: str) -> TypeAdapter[Any]:
    """The text is part of the key because ``A | B == B | A``, and the order decides between equal fits."""
    if get_origin(annotation) in (Iterable, Collection):  # Pydantic would hand out an iterator that can be read once
        sequence: Any = Sequence
        return TypeAdapter(sequence[get_args(annotation)])
    return TypeAdapter(annotation)


def _dump(adapter: TypeAdapter[Any], value: object, mode: Literal["python", "json"]) -> Json:
    try:
        dumped = adapter.dump_python(value, mode=mode, by_alias=False, round_trip=True, warnings="none")
    except Exception as error:
        raise Refusal(value, f"{type(error).__name__}: {error}") from error
    return write(dumped, _BY_PYDANTIC)


def _validate_or_refuse(value: object, adapter: TypeAdapter[Any]) -> object:
    try:
        return validate(value, adapter)
    except ValidationError as error:
        raise _refusal_of(error, value) from error
    except Exception as error:
        raise Refusal(value, f"{type(error).__name__}: {error}") from error


class _ByPydantic:
    """What an annotation may bring beyond JSON, made simple; whether that was right, the proof says."""

    def value(self, value: object) -> object:
        match value:
            case Enum():
                return value.value
            case tuple() | deque():
                return list(value)
            case Mapping():
                return dict(value)
            case SecretStr() | SecretBytes():
                raise Refusal(value, "secrets are not stored")
        try:
            simple: object = to_jsonable_python(value)
        except Exception as error:
            raise Refusal(value, "it cannot be written as JSON") from error
        if type(simple) is type(value):
            raise Refusal(value, "it cannot be written as JSON")
        return simple

    def key(self, key: object) -> str:
        if is_numpy_scalar(key):
            key = numpy_item(key)
        try:
            return str(next(iter(to_jsonable_python({key: None}))))
        except Exception as error:
            raise Refusal(key, "it cannot be a dict key in JSON") from error


_BY_PYDANTIC = _ByPydantic()


def _tag_unions(annotation: Any) -> Any:
    """`annotation` with each union in its generics naming the member it writes; itself if it has none."""
    if is_union(annotation):
        union = _Union(annotation)
        return Annotated[annotation, WrapSerializer(union.write), WrapValidator(union.read)]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None or not isinstance(origin, type):
        return annotation
    tagged = tuple(_tag_unions(arg) for arg in args)
    if all(new is old for new, old in zip(tagged, args, strict=True)):
        return annotation
    return origin[tagged]  # type: ignore[index]  # an origin of a generic alias can be subscripted again


class _Union:
    """The members of one union by the name that stands in ``$variant``."""

    def __init__(self, annotation: Any) -> None:
        members = get_args(annotation)
        names = [_name(member) for member in members]
        self._members = {
            name if names.count(name) == 1 else f"{member.__module__}.{member.__qualname__}": member
            for name, member in zip(names, members, strict=True)
        }

    def __repr__(self) -> str:
        return f"_Union({self._members!r})"

    def write(self, value: Any, handler: Callable[[Any], Any]) -> Any:
        """A `Variant` of the first member that takes the value back unchanged, its own class before its parents."""
        if type(value) not in _ATOMS:
            for name, member in sorted(self._members.items(), key=lambda item: _class_of(item[1]) is not type(value)):
                if isinstance(value, _class_of(member)):
                    try:
                        return Variant(name, write_annotated(value, member))
                    except Refusal:
                        continue
        return handler(value)

    def read(self, value: Any, handler: Callable[[Any], Any]) -> Any:
        """The value of the member that a `Variant` names; Pydantic's own choice for anything else."""
        if type(value) is not Variant:
            return handler(value)
        if value.name not in self._members:
            raise ValueError(f"no member {value.name!r} in this union")
        value.used = True
        try:
            return read_annotated(value.plain, self._members[value.name])
        except Refusal as refusal:
            raise ValueError(str(refusal)) from refusal


def _name(member: Any) -> str:
    return member.__name__ if isinstance(member, type) and not get_args(member) else repr(member)


def _class_of(member: Any) -> type:
    origin = get_origin(member) or member
    return origin if isinstance(origin, type) else object


def _problems(error: ValidationError, value: object) -> list[Problem]:
    return [Problem(path_of(_keys(one["loc"], value)), one["msg"]) for one in error.errors(include_url=False)]


def _refusal_of(error: ValidationError, value: object) -> Refusal:
    first, *others = error.errors(include_url=False)
    keys = _keys(first["loc"], value)
    at: Any = value
    for key in keys:
        at = _step(at, key)
    refusal = Refusal(at, first["msg"] + (f" (and {len(others)} more)" if others else ""))
    for key in reversed(keys):
        refusal.within(key)
    return refusal


def _keys(loc: tuple[int | str, ...], value: object) -> list[int | str]:
    """The steps of Pydantic's `loc` that exist in the value, without its labels of union members."""
    keys: list[int | str] = []
    at = value
    for key in loc:
        below = _step(at, key)
        if below is not _ABSENT:
            keys.append(key)
            at = below
    if loc and (not keys or keys[-1] != loc[-1]) and isinstance(at, Mapping):
        keys.append(loc[-1])  # a missing field is named where it should stand
    return keys


_ABSENT = object()


def _step(at: Any, key: int | str) -> object:
    if isinstance(at, Mapping):
        return at.get(key, _ABSENT)
    if isinstance(at, list | tuple):
        return at[key] if isinstance(key, int) and key < len(at) else _ABSENT
    return getattr(at, str(key), _ABSENT)
