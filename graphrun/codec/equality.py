"""Answers for one question: is the value that came back the value that went in, with equal types, all the way down?

It must not write or read; it compares what the writer and the reader made.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from graphrun.codec.paths import Refusal
from graphrun.codec.tags import is_numpy_scalar, numpy_item


def require_equal(original: object, returned: Any) -> None:
    """Pass if `returned` equals `original` deeply, NaN equal to NaN, -0.0 apart from 0.0, True apart from 1.

    Raises:
        Refusal: at the first difference.
    """
    if is_numpy_scalar(original):
        original = numpy_item(original)
    if type(original) is int and type(returned) is float and original == returned:
        return  # the documented change: an int where a float is annotated
    if type(original) is not type(returned):
        raise Refusal(original, f"would come back as {type(returned).__name__}")
    match original:
        case float() | Decimal() | dt.datetime() | dt.time():
            _require(original, same=_same_scalar(original, returned))
        case list() | tuple() | deque():
            _require_items(original, returned)
        case set() | frozenset():
            _require_set(original, returned)
        case Mapping():
            _require_mapping(original, returned)
        case _:
            _require_object(original, returned)


def _require(original: object, *, same: bool) -> None:
    if not same:
        raise Refusal(original, "would come back changed")


def _same_scalar(original: Any, returned: Any) -> bool:
    if isinstance(original, float):
        both_nan = math.isnan(original) and math.isnan(returned)
        return both_nan or (original == returned and math.copysign(1, original) == math.copysign(1, returned))
    if isinstance(original, Decimal):
        return bool(original.as_tuple() == returned.as_tuple())
    clocks_equal = original.replace(tzinfo=None) == returned.replace(tzinfo=None)
    return bool(clocks_equal and original.utcoffset() == returned.utcoffset())


def _require_items(original: Iterable[object], returned: Any) -> None:
    left, right = list(original), list(returned)
    _require(original, same=len(left) == len(right))
    equal = 0
    try:
        for pair in zip(left, right, strict=True):
            require_equal(*pair)
            equal += 1
    except Refusal as refusal:
        refusal.within(equal)
        raise


def _require_set(original: AbstractSet[object], returned: Any) -> None:
    found = {item: item for item in returned}
    strangers = [item for item in returned if item not in original]
    for item in original:
        candidates = [found[item]] if item in found else strangers
        _require(item, same=any(_is_equal(item, candidate) for candidate in candidates))
    _require(original, same=len(original) == len(returned))


def _is_equal(original: object, returned: object) -> bool:
    try:
        require_equal(original, returned)
    except Refusal:
        return False
    return True


def _require_mapping(original: Mapping[Any, object], returned: Any) -> None:
    _require(original, same=len(original) == len(returned))
    key: object = None
    try:
        for (key, item), (other_key, other) in zip(original.items(), returned.items(), strict=True):
            require_equal(key, other_key)
            require_equal(item, other)
    except Refusal as refusal:
        refusal.within(key)
        raise


def _require_object(original: Any, returned: Any) -> None:
    if isinstance(original, BaseModel):
        state = dict(original.__dict__) | (original.__pydantic_extra__ or {}) | (original.__pydantic_private__ or {})
        other = dict(returned.__dict__) | (returned.__pydantic_extra__ or {}) | (returned.__pydantic_private__ or {})
        _require_mapping(state, other)
    elif dataclasses.is_dataclass(original):
        names = [field.name for field in dataclasses.fields(original)]
        _require_mapping(
            {name: getattr(original, name, None) for name in names},
            {name: getattr(returned, name, None) for name in names},
        )
    else:
        _require(original, same=original is returned or bool(original == returned))
