"""Operations of safe expressions that cannot produce more than a bounded result.

This module answers for size: whatever could grow is measured before it is computed. It must not know expressions or
places: a fault is a plain TypeError or ValueError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

MAX_BITS = 4_096
MAX_ITEMS = 1_000_000
MAX_DIGITS = 1_000
"""How far ``round`` may go to either side of the point: rounding to -10**9 places would compute 10**(10**9)."""

_SEQUENCES = (str, list, tuple)
_CONTAINERS = (str, list, tuple, dict, set, frozenset)


def bounded(value: Any) -> Any:
    """Return the value if it is small enough.

    Raises:
        ValueError: an integer of more than 4,096 bits, a container of more than 1,000,000 items, or a complex number.
    """
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError(f"an integer of more than {MAX_BITS} bits")
    if isinstance(value, _CONTAINERS) and len(value) > MAX_ITEMS:
        raise ValueError(f"a {type(value).__name__} of more than {MAX_ITEMS} items")
    if isinstance(value, complex):
        raise ValueError("a complex number")  # noqa: TRY004 - it came from real operands; their types are right
    return value


def member(value: object, container: object) -> bool:
    """Tell whether a container holds a value; only containers whose search ends are asked."""
    return value in _container(container, "in")


def _add(left: Any, right: Any) -> Any:
    for kind in _SEQUENCES:
        if isinstance(left, kind) and isinstance(right, kind):
            _check_items(len(left) + len(right))
            return operator.add(left, right)
    return _numeric("+", operator.add)(left, right)


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, _SEQUENCES):
        left, right = right, left
    if isinstance(left, _SEQUENCES) and isinstance(right, int):
        _check_items(len(left) * right)
        if any(isinstance(item, _CONTAINERS) and not isinstance(item, str) for item in left):
            # Repeats of repeats stay cheap to hold, but comparing them is not.
            raise ValueError("only flat lists can be repeated")
        return left * right
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length() - 1)
    return _numeric("*", operator.mul)(left, right)


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits((left.bit_length() - 1) * right)
    return _numeric("**", operator.pow)(left, right)


def _numeric(sign: str, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operation(left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise TypeError(f"{sign!r} is not defined for {type(left).__name__} and {type(right).__name__}")
        return compute(left, right)

    return operation


def _check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise ValueError(f"a result of more than {MAX_ITEMS} items")


def _check_bits(count: int) -> None:
    if count > MAX_BITS:
        raise ValueError(f"an integer of more than {MAX_BITS} bits")


def _container(value: Any, name: str) -> Any:
    if not isinstance(value, _CONTAINERS):
        raise TypeError(f"{name!r} needs a list, dict, set or string, got {type(value).__name__}")
    return value


def _number(value: Any, name: str) -> Any:
    if not isinstance(value, int | float):
        raise TypeError(f"{name!r} needs a number, got {type(value).__name__}")
    return value


def _length(value: Any, /) -> int:
    return len(_container(value, "len"))


def _text(value: Any, /) -> str:
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"'str' needs a string, number, bool or None, got {type(value).__name__}")
    return str(bounded(value))


def _integer(value: Any, /) -> int:
    if isinstance(value, str) and len(value) > MAX_BITS:
        raise ValueError(f"an integer of more than {MAX_BITS} bits")
    return int(value if isinstance(value, str) else _number(value, "int"))


def _real(value: Any, /) -> float:
    return float(value if isinstance(value, str) else _number(value, "float"))


def _truth(value: Any, /) -> bool:
    return bool(value)


def _absolute(value: Any, /) -> Any:
    return abs(_number(value, "abs"))


def _rounded(value: Any, digits: Any = None, /) -> Any:
    if digits is not None and not (isinstance(digits, int) and abs(digits) <= MAX_DIGITS):
        raise ValueError(f"'round' takes a whole number of digits up to {MAX_DIGITS}")
    return round(_number(value, "round"), digits)


def _smallest(*values: Any) -> Any:
    return min(_container(values[0], "min") if len(values) == 1 else values)


def _largest(*values: Any) -> Any:
    return max(_container(values[0], "max") if len(values) == 1 else values)


def _ordered(value: Any, /) -> list[Any]:
    _check_items(len(_container(value, "sorted")))
    return sorted(value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "len": _length,
        "str": _text,
        "int": _integer,
        "float": _real,
        "bool": _truth,
        "abs": _absolute,
        "min": _smallest,
        "max": _largest,
        "round": _rounded,
        "sorted": _ordered,
    }
)
"""What an expression may call."""

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "Add": _add,
        "Sub": _numeric("-", operator.sub),
        "Mult": _multiply,
        "Div": _numeric("/", operator.truediv),
        "FloorDiv": _numeric("//", operator.floordiv),
        "Mod": _numeric("%", operator.mod),
        "Pow": _power,
    }
)
"""The arithmetic, by the name of the syntax."""
