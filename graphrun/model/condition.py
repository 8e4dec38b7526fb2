"""Conditions: what decides whether an edge is taken.

This module answers for the one protocol that construction, setter and execution share (G4): a nominal Condition with an
async ``apply``. It must not look for functions on its own: a name is resolved through a mapping that the caller passes.

Only an ExpressionCondition and a NamedCondition can be serialised, and hence take part in a distributed run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from graphrun.errors import EncodingError, ExpressionError, FormatError, RegistryError
from graphrun.model import serialisation
from graphrun.model.expression import Expression, compile_expression

ConditionFunction: TypeAlias = Callable[..., bool | Awaitable[bool]]


class Condition(ABC):
    """Base of all conditions; only its subclasses are conditions, not whatever has an ``apply``."""

    @abstractmethod
    async def apply(self, *args: Any, **kwargs: Any) -> bool:
        """Return whether the edge is taken."""

    def to_dict(self) -> dict[str, Any]:
        """Return a plain JSON object.

        Raises:
            EncodingError: this kind of condition is code, which JSON cannot carry.
        """
        raise EncodingError(
            type(self).__name__,
            "$.properties.condition",
            "only ExpressionCondition and NamedCondition can be serialised",
        )


class EdgeCondition(Condition):
    """A condition with a ``source``, which is the subclass's to interpret; extra keywords become attributes."""

    def __init__(self, source: Any = None, **extra: Any) -> None:
        self.source = source
        for name, value in extra.items():
            setattr(self, name, value)


class ExpressionCondition(EdgeCondition):
    """A condition that is a safe expression, as in ``"result[0] > 3"``; true when the value is.

    Args:
        source: the expression; it is read at once, and again when it is assigned.

    Raises:
        ExpressionError: it cannot be read.
    """

    def __init__(self, source: str) -> None:
        super().__init__(source)

    @property
    def source(self) -> str:
        """The expression's text."""
        return self._expression.source

    @source.setter
    def source(self, source: str) -> None:
        self._expression = compile_expression(source)

    @property
    def expression(self) -> Expression:
        """The expression that was read from the source."""
        return self._expression

    async def apply(self, *args: Any, **kwargs: Any) -> bool:
        """Evaluate with the names of all mappings and keywords given; later ones win.

        Raises:
            ExpressionError: the evaluation failed.
        """
        scope: dict[str, object] = {}
        for mapping in (*args, kwargs):
            scope.update(mapping)
        return bool(self._expression.evaluate(scope))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"type": "ExpressionCondition", "source": self.source}

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, ExpressionCondition) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # the source may be assigned

    def __repr__(self) -> str:
        return f"ExpressionCondition({self.source!r})"


class NamedCondition(Condition):
    """A condition that is a registered function, by name. The name is serialised, the function is not.

    Args:
        name: the function's.
        functions: where the name is looked up when the condition is applied; ``bind`` gives it later.
    """

    def __init__(self, name: str, functions: Mapping[str, ConditionFunction] | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a condition's name is a string that is not empty, got {name!r}")
        self._name = name
        self._functions = functions

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    def bind(self, functions: Mapping[str, ConditionFunction]) -> None:
        """Look the name up in these functions from now on."""
        self._functions = functions

    async def apply(self, *args: Any, **kwargs: Any) -> bool:
        """Call the function, and await it if it is async.

        Raises:
            RegistryError: the name is not among the functions, or none were given.
        """
        if self._functions is None:
            raise RegistryError(f"condition {self._name!r} has no functions to be looked up in; bind() them")
        if self._name not in self._functions:
            known = ", ".join(sorted(self._functions)) or "none"
            raise RegistryError(f"no condition is registered as {self._name!r}; known are {known}")
        outcome = self._functions[self._name](*args, **kwargs)
        return bool(await outcome if isawaitable(outcome) else outcome)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"type": "NamedCondition", "name": self._name}

    def __eq__(self, other: object) -> bool:
        return self._name == other.name if isinstance(other, NamedCondition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"NamedCondition({self._name!r})"


def condition_from_dict(payload: object, place: str) -> Condition:
    """Return the condition that a JSON object describes.

    Raises:
        FormatError: an unknown type or field, or a missing one.
        ExpressionError: the expression cannot be read.
    """
    mapping = serialisation.check_mapping(payload, place)
    match serialisation.read(mapping, "type", str, place):
        case "ExpressionCondition":
            serialisation.check_fields(mapping, frozenset({"type", "source"}), place)
            source = serialisation.read(mapping, "source", str, place)
            try:
                return ExpressionCondition(source)
            except ExpressionError as error:
                raise ExpressionError(f"{place}.source: {error}") from error
        case "NamedCondition":
            serialisation.check_fields(mapping, frozenset({"type", "name"}), place)
            return NamedCondition(serialisation.read(mapping, "name", str, place))
        case name:
            raise FormatError(f"{place}.type: unknown type {name!r}; known are ExpressionCondition, NamedCondition")
