"""Turns parameters and outputs into text that every database keeps, and back, equal and of equal type (§3.8).

It answers for one promise: what it accepts comes back as it was; else it raises `EncodingError` with type and path
(O22, O23).
It must not know tasks, runs, files or databases, and numpy only by the shape of its scalars.

Two documented changes: a numpy scalar becomes the Python number of its ``.item()``; an int where a float is annotated
becomes that float if it is equal. A time zone that is neither ``timezone`` nor ``ZoneInfo`` becomes its fixed offset.

Without an annotation the exact JSON types and datetime, date, time, timedelta, Decimal, UUID and bytes pass; tags
(``{"$datetime": ...}``) keep the latter and NaN apart from text. With an annotation Pydantic dumps and validates as
well, and the round trip is tried before anything is stored.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from graphrun.codec.annotations import is_free, strip_returns
from graphrun.codec.paths import Json, Refusal
from graphrun.codec.plain import read, write
from graphrun.codec.typed import Problem, problems_of, read_annotated, write_annotated
from graphrun.errors import EncodingError

__all__ = [
    "Json",
    "Problem",
    "decode",
    "encode",
    "from_plain",
    "problems_of",
    "strip_returns",
    "to_plain",
]


def encode(value: object, annotation: Any = Any) -> str:
    """Write `value` as compact JSON text of ASCII characters only, so that NUL and lone surrogates survive in SQL text.

    Args:
        value: what a node returned, or a literal parameter.
        annotation: its declared type; `Any` if there is none.

    Raises:
        EncodingError: it cannot be stored, or would not come back equal with equal types.
    """
    return json.dumps(to_plain(value, annotation), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(text: str, annotation: Any = Any) -> object:
    """Read what `encode` wrote; the reader's annotation decides the types, as Pydantic converts them.

    Raises:
        EncodingError: the text is not of this codec, or the value does not fit `annotation`.
    """
    try:
        plain = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise EncodingError("str", "$", f"not a stored value: {error}") from error
    return from_plain(plain, annotation)


def to_plain(value: object, annotation: Any = Any) -> Json:
    """Do as `encode` does, without the text step: the result holds JSON types only.

    Raises:
        EncodingError: it cannot be stored, or would not come back equal with equal types.
    """
    try:
        return write(value) if is_free(annotation) else write_annotated(value, annotation)
    except Refusal as refusal:
        raise EncodingError(refusal.type_name, refusal.path, refusal.hint) from refusal.__cause__
    except RecursionError as error:
        raise EncodingError(type(value).__name__, "$", "nested too deep") from error


def from_plain(plain: object, annotation: Any = Any) -> object:
    """Do as `decode` does, without the text step.

    Raises:
        EncodingError: `plain` is not of this codec, or the value does not fit `annotation`.
    """
    try:
        return read(plain) if is_free(annotation) else read_annotated(plain, annotation)
    except Refusal as refusal:
        raise EncodingError(refusal.type_name, refusal.path, refusal.hint) from refusal.__cause__
    except RecursionError as error:
        raise EncodingError(type(plain).__name__, "$", "nested too deep") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"bare {name}")
