"""Answers for the leaves: how one value that is no container is written, and how a tag is read back.

Every tag is a dict whose first key begins with ``$``. It must not recurse into containers.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from graphrun.codec.paths import Json, Refusal

_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MAX_INT_BITS = 13_000  # Python refuses to write or read integers of more than 4,300 decimal digits


def joins_surrogates(text: str) -> bool:
    """Whether JSON would read two lone surrogates of `text` back as one character."""
    return not text.isascii() and _SURROGATE_PAIR.search(text) is not None


def is_numpy_scalar(value: object) -> bool:
    """Whether `value` is a numpy scalar, found without importing numpy."""
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def numpy_item(value: Any) -> object:
    """The Python number or text of a numpy scalar.

    Raises:
        Refusal: it has no exact Python value, as a long double or a date in nanoseconds.
    """
    if value.dtype.kind not in "biufSU":
        raise Refusal(value, "convert it to a Python value")
    item: object = value.item()
    if type(item) not in LEAVES:
        raise Refusal(value, "it has no exact Python value")
    return item


def _text(value: str) -> Json:
    if joins_surrogates(value):
        return {"$str": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


def _int(value: int) -> Json:
    return value if value.bit_length() <= _MAX_INT_BITS else {"$int": hex(value)}


def _float(value: float) -> Json:
    return value if math.isfinite(value) else {"$float": str(value)}


def _datetime(value: dt.datetime) -> Json:
    zone = value.tzinfo
    written: dict[str, Json] = {}
    if isinstance(zone, zoneinfo.ZoneInfo) and zone.key:
        written |= {"$datetime": value.replace(tzinfo=None).isoformat(), "zone": zone.key}
    else:
        written["$datetime"] = value.isoformat()
    return written | {"fold": 1} if value.fold else written


def _time(value: dt.time) -> Json:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise Refusal(value, "its time zone has no fixed offset; return a datetime")
    written: dict[str, Json] = {"$time": value.isoformat()}
    return written | {"fold": 1} if value.fold else written


LEAVES: Mapping[type, Callable[[Any], Json]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: _int,
    float: _float,
    str: _text,
    dt.datetime: _datetime,
    dt.date: lambda value: {"$date": value.isoformat()},
    dt.time: _time,
    dt.timedelta: lambda value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    Decimal: lambda value: {"$decimal": str(value)},
    uuid.UUID: lambda value: {"$uuid": str(value)},
    bytes: lambda value: {"$bytes": base64.b64encode(value).decode()},
}
"""Exact type -> writer. A subclass is not its parent: it would come back as another type."""


def _read_float(body: Any) -> float:
    if body not in {"nan", "inf", "-inf"}:
        raise ValueError(body)
    return float(body)


def _read_datetime(body: str, zone: str | None = None, fold: int = 0) -> dt.datetime:
    value = dt.datetime.fromisoformat(body).replace(fold=fold)
    return value if zone is None else value.replace(tzinfo=zoneinfo.ZoneInfo(zone))


_READERS: Mapping[str, Callable[..., object]] = {
    "$float": _read_float,
    "$int": lambda body: int(body, 16),
    "$str": lambda body: base64.b64decode(body, validate=True).decode("utf-8", "surrogatepass"),
    "$datetime": _read_datetime,
    "$date": dt.date.fromisoformat,
    "$time": lambda body, fold=0: dt.time.fromisoformat(body).replace(fold=fold),
    "$timedelta": lambda body: dt.timedelta(*body),
    "$decimal": Decimal,
    "$uuid": uuid.UUID,
    "$bytes": lambda body: base64.b64decode(body, validate=True),
}


def read_tag(tag: str, plain: Mapping[str, Any]) -> object:
    """The leaf that ``plain``, a dict with the key `tag`, stands for.

    Raises:
        Refusal: no such tag, or its content is not what this codec writes.
    """
    reader = _READERS.get(tag)
    if reader is None:
        raise Refusal(plain, f"unknown tag {tag!r}: stored by a newer graphrun, or a reference that was not replaced")
    try:
        return reader(plain[tag], **{key: item for key, item in plain.items() if key != tag})
    except (ValueError, TypeError, ArithmeticError, AttributeError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise Refusal(plain, f"unreadable {tag}: {error}") from error
