"""Answers for the place of a fault inside a value, ``$.rows[3].name``; it must not decide what a fault is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Refusal(Exception):  # noqa: N818 - carries a path outward and becomes an EncodingError at the edge of the package
    """A value, or a part of one, is refused; every container on the way out adds its own segment.

    The path is therefore built on failure only: a million good elements cost nothing.
    """

    def __init__(self, value: object, hint: str) -> None:
        super().__init__(hint)
        self.type_name = type(value).__name__
        self.hint = hint
        self._segments: list[str] = []

    def within(self, key: object) -> None:
        """Note that the fault lies under `key` of the container that calls."""
        self._segments.append(segment(key))

    @property
    def path(self) -> str:
        """The path from the whole value, ``$``."""
        return "$" + "".join(reversed(self._segments))


def segment(key: object) -> str:
    """One step of a path: ``.name`` for identifiers, ``["a b"]`` for other text, ``[3]`` for the rest."""
    if isinstance(key, str):
        return f".{key}" if _PLAIN_NAME.match(key) else '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return f"[{key!r}]"


def path_of(keys: Iterable[object]) -> str:
    """The path through `keys`, outermost first."""
    return "$" + "".join(segment(key) for key in keys)
