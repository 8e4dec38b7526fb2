"""Answers for what an annotation says by itself: whether it says anything, its members, its elements.

It must not look at values.
"""

from __future__ import annotations

import inspect
import types
from typing import Annotated, Any, Union, get_args, get_origin


def is_free(annotation: object) -> bool:
    """Whether `annotation` restricts nothing, so that a value must describe itself."""
    return annotation is Any or annotation is object or annotation is inspect.Parameter.empty


def is_union(annotation: object) -> bool:
    """Whether it is ``A | B``, ``Union[A, B]`` or ``Optional[A]``."""
    return get_origin(annotation) in (Union, types.UnionType)


def allows_none(annotation: object) -> bool:
    """Whether the author wrote that None is welcome; `Any` and no annotation do not say so."""
    if get_origin(annotation) is Annotated:
        return allows_none(get_args(annotation)[0])
    if is_union(annotation):
        return any(allows_none(member) for member in get_args(annotation))
    return annotation is None or annotation is type(None)


def strip_returns(annotation: Any, classes: tuple[type, ...]) -> Any:
    """Take `classes` out of a union: ``int | Evolved`` becomes ``int``; nothing left becomes `Any`."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        stripped = strip_returns(inner, classes)
        return annotation if stripped is inner else Annotated[(stripped, *metadata)]
    if is_union(annotation):
        members = get_args(annotation)
        kept = [member for member in members if member not in classes]
        if len(kept) == len(members):
            return annotation
        return Union[tuple(kept)] if kept else Any  # noqa: UP007 - the members are known at run time only
    return Any if annotation in classes else annotation


def element_annotation(annotation: Any, container: type, key: int) -> Any:
    """The type that `annotation` gives to one element of a list, tuple or dict; `Any` where it does not say.

    Args:
        annotation: the type of the whole container.
        container: ``list``, ``tuple`` or ``dict``: which one the value is.
        key: the position in a list or tuple; without meaning for a dict.
    """
    if get_origin(annotation) is Annotated:
        return element_annotation(get_args(annotation)[0], container, key)
    if is_union(annotation):
        found = [element_annotation(member, container, key) for member in get_args(annotation)]
        told = [one for one in found if one is not Any]
        return told[0] if len(told) == 1 else Any
    args = get_args(annotation)
    if container is dict:
        return args[1] if len(args) == 2 else Any  # noqa: PLR2004 - key and value of a mapping
    if get_origin(annotation) is tuple and args and args[-1] is not Ellipsis:
        return args[key] if key < len(args) else Any
    return args[0] if args and len(args) <= 2 and _is_sequence(annotation) else Any  # noqa: PLR2004 - tuple[int, ...]


def _is_sequence(annotation: object) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and hasattr(origin, "__iter__") and not hasattr(origin, "keys")
