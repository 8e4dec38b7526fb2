"""What a function's signature says to a graph: parameters, return type, whether it wants the context.

It answers for reading signatures and refusing those that a node cannot use. It must not look at values.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

from graphrun.codec.annotations import allows_none, is_union, strip_returns
from graphrun.errors import RegistryError
from graphrun.registry.context import Context
from graphrun.registry.returns import Done, Evolved, Failed


class ParameterKind(StrEnum):
    """How a parameter takes its values; all are given by name."""

    NAMED = "named"
    """One value under its own name."""
    FREE = "free"
    """``**kwargs``: any other name; the annotation holds for each value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a task.

    Attributes:
        name: as in the signature.
        annotation: the resolved type; `Any` where there is none.
        has_default: whether it may be left out.
        default: the default itself, None if there is none.
        allows_none: whether the annotation names None (X4); no annotation, and `Any`, do not.
        kind: named, or the rest.
    """

    name: str
    annotation: Any
    has_default: bool
    default: Any
    allows_none: bool
    kind: ParameterKind


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters that a graph can give, the stripped return type, and the name of the `Context` parameter."""

    parameters: Mapping[str, Parameter]
    return_annotation: Any
    wants_context: str | None

    @property
    def free(self) -> Parameter | None:
        """The ``**kwargs`` parameter, if there is one."""
        return next((one for one in self.parameters.values() if one.kind is ParameterKind.FREE), None)


def read_signature(name: str, function: Callable[..., Any], local_names: Mapping[str, Any]) -> Signature:
    """Read the signature of `function`.

    Args:
        name: the task's name, for messages.
        function: the body.
        local_names: what names in string annotations may also mean, such as classes local to the caller.

    Raises:
        RegistryError: it cannot be read, an annotation cannot be resolved, or a graph cannot call it.
    """
    body = _unwrapped(function)
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise RegistryError(f"task {name}: a generator cannot be stored; return a list")
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise RegistryError(f"task {name}: its signature cannot be read ({error}); wrap it in a function") from error
    hints = {
        one.name: _resolved(name, f"parameter {one.name!r}", one.annotation, body, local_names)
        for one in found.parameters.values()
    }
    context = _context_parameter(name, hints)
    returned = _resolved(name, "the return type", found.return_annotation, body, local_names)
    return Signature(
        parameters=MappingProxyType(
            {one.name: _parameter(name, one, hints) for one in found.parameters.values() if one.name != context}
        ),
        return_annotation=strip_returns(returned, (Done, Failed, Evolved)),
        wants_context=context,
    )


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(_unwrapped(function))


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def _parameter(task: str, one: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    if one.kind is inspect.Parameter.VAR_POSITIONAL:
        raise RegistryError(f"task {task}: *{one.name} cannot be given by name; take a list instead")
    if one.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise RegistryError(f"task {task}: {one.name!r} is positional-only, and nodes give parameters by name")
    annotation = hints[one.name]
    has_default = one.default is not inspect.Parameter.empty
    return Parameter(
        name=one.name,
        annotation=annotation,
        has_default=has_default,
        default=one.default if has_default else None,
        allows_none=allows_none(annotation),
        kind=ParameterKind.FREE if one.kind is inspect.Parameter.VAR_KEYWORD else ParameterKind.NAMED,
    )


def _context_parameter(task: str, hints: Mapping[str, Any]) -> str | None:
    names = [name for name, annotation in hints.items() if _is_context(annotation)]
    if len(names) > 1:
        raise RegistryError(f"task {task}: {' and '.join(names)} both ask for the Context; one is enough")
    return names[0] if names else None


def _is_context(annotation: Any) -> bool:
    if is_union(annotation) or get_origin(annotation) is Annotated:
        return any(_is_context(member) for member in get_args(annotation))
    return annotation is Context


def _resolved(task: str, what: str, annotation: Any, body: Any, local_names: Mapping[str, Any]) -> Any:
    """The annotation with the names in it replaced by what they mean where `body` was written."""
    if annotation is inspect.Parameter.empty:
        return Any
    body = inspect.unwrap(body)
    module = sys.modules.get(getattr(body, "__module__", "") or "")
    names = getattr(body, "__globals__", None) or (vars(module) if module else {})

    def carrier() -> None: ...

    carrier.__annotations__ = {"it": annotation}
    try:
        return typing.get_type_hints(carrier, dict(names), dict(local_names), include_extras=True)["it"]
    except Exception as error:
        raise RegistryError(
            f"task {task}: the annotation {annotation!r} of {what} cannot be resolved ({error}); "
            "import its names at run time, not under TYPE_CHECKING"
        ) from error
