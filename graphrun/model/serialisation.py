"""The JSON form of elements: trusted type names, strict field checks, and copies of plain JSON values.

This module answers for what a payload may look like before any object is made of it. It must not import a class by a
dotted path, change a payload, or know a concrete element.

Places are written as in ``$.internal_nodes[3].key``: ``$`` is the payload that the caller passed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from graphrun.errors import EncodingError, FormatError

MAX_DEPTH = 100
"""How deeply JSON values may be nested: deeper ones would exhaust the stack of ``json.dumps`` as well."""

_TYPES: dict[str, type[Any]] = {}
_NAMES: dict[type[Any], str] = {}
_MISSING: Any = object()

V = TypeVar("V")


def register_type(cls: type[Any], name: str) -> None:
    """Make ``cls`` the class that payloads mean by ``name``.

    A class that replaces its own earlier definition (a reloaded module, a notebook cell run again) takes the name over.

    Raises:
        TypeError: another class has the name.
    """
    taken = _TYPES.get(name)
    if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"the type name {name!r} belongs to {taken.__module__}.{taken.__qualname__}; "
            f"give {cls.__qualname__} its own: class {cls.__name__}(..., type_name=...)"
        )
    _TYPES[name] = cls
    _NAMES[cls] = name


def type_name(cls: type[Any]) -> str:
    """Return the name under which ``cls`` stands in payloads."""
    return _NAMES[cls]


def registered_type(name: object, place: str) -> type[Any]:
    """Return the trusted class of that name.

    Raises:
        FormatError: no class has the name; nothing is imported to find one.
    """
    if not isinstance(name, str) or name not in _TYPES:
        raise FormatError(f"{place}: unknown type {name!r}; known are {', '.join(sorted(_TYPES))}")
    return _TYPES[name]


def is_payload(value: object) -> bool:
    """Tell whether ``value`` looks like a serialised element: a mapping with a string under ``"type"``."""
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def check_mapping(value: object, place: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping.

    Raises:
        FormatError: it is anything else.
    """
    if not isinstance(value, Mapping):
        raise FormatError(f"{place}: expected an object, got {type(value).__name__}")
    return value


def check_fields(payload: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    """Refuse fields that the type does not have.

    Raises:
        FormatError: names every unknown field and the known ones.
    """
    unknown = [key for key in payload if key not in known]
    if unknown:
        names = ", ".join(repr(key) for key in unknown)
        raise FormatError(f"{place}: unknown field {names}; known are {', '.join(sorted(known))}")


def read(payload: Mapping[str, Any], name: str, kind: type[V], place: str, default: V = _MISSING) -> V:
    """Return a field of the given kind; without a ``default`` the field is required.

    Raises:
        FormatError: the field is missing or of another kind.
    """
    value = payload.get(name, default)
    if value is _MISSING:
        raise FormatError(f"{place}.{name}: missing")
    if not isinstance(value, kind):
        raise FormatError(f"{place}.{name}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def read_optional_text(payload: Mapping[str, Any], name: str, place: str) -> str | None:
    """Return a string field, or None where it is absent or null."""
    return None if payload.get(name) is None else read(payload, name, str, place)


def read_id(payload: Mapping[str, Any], name: str, place: str) -> UUID:
    """Return a required field as a UUID.

    Raises:
        FormatError: the field is missing or is not a UUID string.
    """
    text = read(payload, name, str, place)
    try:
        return UUID(text)
    except ValueError:
        raise FormatError(f"{place}.{name}: {text!r} is not a UUID") from None


def read_moment(payload: Mapping[str, Any], name: str, place: str) -> float:
    """Return a required ISO 8601 field as seconds since the epoch.

    Raises:
        FormatError: the field is missing, is not ISO 8601, or names no time zone.
    """
    text = read(payload, name, str, place)
    try:
        return epoch_seconds(datetime.fromisoformat(text))
    except ValueError as error:
        raise FormatError(f"{place}.{name}: {text!r}: {error}") from None


def read_json_object(payload: Mapping[str, Any], name: str, place: str) -> dict[str, Any] | None:
    """Return a copy of an object field, or None where it is absent or empty."""
    value = payload.get(name)
    if value is None:
        return None
    return plain_json(dict(check_mapping(value, f"{place}.{name}")), f"{place}.{name}") or None


def epoch_seconds(moment: datetime) -> float:
    """Return an aware moment as seconds since the epoch; a float keeps microseconds exactly for centuries.

    Raises:
        ValueError: the moment names no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time zone is needed, as in datetime.now(UTC)")
    return moment.astimezone(UTC).timestamp()


def serialised(elements: Iterable[Any], place: str) -> list[dict[str, Any]]:
    """Return the JSON objects of elements that stand in a list at ``place``.

    Raises:
        EncodingError: a value in one of them is not plain JSON; the path begins at ``place``.
    """
    objects = []
    for index, element in enumerate(elements):
        try:
            objects.append(element.to_dict())
        except EncodingError as error:
            path = f"{place}[{index}]{error.path.removeprefix('$')}"
            raise EncodingError(error.type_name, path, error.hint) from error
    return objects


def plain_json(value: Any, place: str = "$") -> Any:
    """Return a deep copy of a plain JSON value, so that neither side can change the other's.

    A value that JSON text would give back as something else (a tuple, a set, an int key, NaN) is refused rather than
    silently changed.

    Raises:
        EncodingError: names the type and the place.
    """
    return _copied(value, place, 0)


def _copied(value: Any, place: str, depth: int) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            # Subclasses such as StrEnum members become what JSON would give back, which is equal to them.
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise EncodingError("float", place, f"{value} has no JSON form")
            return float(value)
        case list() | dict() if depth >= MAX_DEPTH:
            raise EncodingError(type(value).__name__, place, f"nested deeper than {MAX_DEPTH}")
        case list():
            return [_copied(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
        case dict():
            return {_key(key, place): _copied(item, f"{place}.{key}", depth + 1) for key, item in value.items()}
    raise EncodingError(type(value).__name__, place, "only plain JSON values are serialised here")


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise EncodingError(type(key).__name__, place, f"the key {key!r} is not a string")
    return str.__str__(key)
