"""Checks literal parameters when a graph is built, and turns stored values into arguments when a node runs.

It answers for faults, all of them at once. It must not know what a reference is: the caller's predicate says.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphrun.codec import from_plain, problems_of, to_plain
from graphrun.codec.annotations import element_annotation
from graphrun.codec.paths import path_of
from graphrun.codec.plain import MAX_DEPTH
from graphrun.errors import EncodingError, RegistryError
from graphrun.registry.signature import Parameter, ParameterKind, Signature


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the parameters of one node."""

    parameter: str
    message: str

    def __str__(self) -> str:
        return f"{self.parameter}: {self.message}"


def bind(
    signature: Signature, params: Mapping[str, Any], is_reference: Callable[[object], bool]
) -> tuple[dict[str, Any], list[Fault]]:
    """Check and encode literal parameters; see `Task.bind`."""
    bound: dict[str, Any] = {}
    faults: list[Fault] = []
    named = _named(signature)
    for name, value in params.items():
        parameter = _parameter(signature, named, name)
        if parameter is None:
            faults.append(Fault(name, _unknown(signature, name)))
            continue
        bound[name], found = _bound(value, parameter.annotation, is_reference, ())
        faults += [Fault(name, message) for message in found]
    faults += [
        Fault(name, "missing: it has no default")
        for name, one in named.items()
        if not one.has_default and name not in params
    ]
    return bound, faults


def call_arguments(task: str, signature: Signature, values: Mapping[str, Any]) -> dict[str, object]:
    """Decode stored values for a call; see `Task.call_arguments`."""
    named = _named(signature)
    arguments: dict[str, object] = {}
    for name, plain in values.items():
        parameter = _parameter(signature, named, name)
        if parameter is None:
            raise RegistryError(f"parameter {name!r} of task {task}: {_unknown(signature, name)}")
        try:
            arguments[name] = from_plain(plain, parameter.annotation)
        except EncodingError as error:
            raise RegistryError(f"parameter {name!r} of task {task}: {error}") from error
    for name, one in named.items():
        if not one.has_default and name not in arguments:
            raise RegistryError(f"parameter {name!r} of task {task}: no value, and it has no default")
    return arguments


def _named(signature: Signature) -> dict[str, Parameter]:
    return {name: one for name, one in signature.parameters.items() if one.kind is ParameterKind.NAMED}


def _parameter(signature: Signature, named: Mapping[str, Parameter], name: str) -> Parameter | None:
    return None if name == signature.wants_context else named.get(name, signature.free)


def _unknown(signature: Signature, name: str) -> str:
    if name == signature.wants_context:
        return "it is the Context, which the engine gives"
    names = list(_named(signature))
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"unknown parameter; did you mean {close[0]!r}?"
    return "unknown parameter; the task takes " + (", ".join(names) if names else "none")


def _bound(
    value: Any, annotation: Any, is_reference: Callable[[object], bool], path: tuple[object, ...]
) -> tuple[Any, list[str]]:
    """The plain form of one value with its references left in place, and what is wrong with it."""
    if is_reference(value):
        return value, []
    if not _holds_reference(value, is_reference):
        return _literal(value, annotation, path)
    if len(path) > MAX_DEPTH:
        return None, [f"nested deeper than {MAX_DEPTH}, or it contains itself"]
    is_mapping = isinstance(value, Mapping)
    container = dict if is_mapping else type(value)
    bound: dict[Any, Any] = {}
    problems: list[str] = []
    for key, item in value.items() if is_mapping else enumerate(value):
        if is_reference(item):
            bound[key] = item
            continue
        wanted = element_annotation(annotation, container, 0 if is_mapping else key)
        bound[key], found = _bound(item, wanted, is_reference, (*path, key))
        problems += found
    if not is_mapping:
        return list(bound.values()), problems
    problems += [f"the key {key!r} is not text (at {path_of(path)})" for key in bound if type(key) is not str]
    escaped = any(type(key) is str and key.startswith("$") for key in bound)
    return ({"$literal": bound} if escaped else bound), problems


def _holds_reference(value: object, is_reference: Callable[[object], bool]) -> bool:
    """Iteratively, each container once: a cyclic literal must reach the codec, which refuses it."""
    seen: set[int] = set()
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if is_reference(one):
            return True
        if isinstance(one, Mapping | list | tuple) and id(one) not in seen:
            seen.add(id(one))
            waiting += one.values() if isinstance(one, Mapping) else one
    return False


def _literal(value: Any, annotation: Any, path: tuple[object, ...]) -> tuple[Any, list[str]]:
    converted, problems = problems_of(value, annotation)
    if problems:
        return None, [f"{one.message} (at {path_of(path)}{one.path[1:]})" for one in problems]
    try:
        return to_plain(converted, annotation), []
    except EncodingError as error:
        return _unconverted(value, error, path)


def _unconverted(value: Any, error: EncodingError, path: tuple[object, ...]) -> tuple[Any, list[str]]:
    """The literal as it was given, for a type that takes JSON in but gives none out, such as a one-way validator."""
    secret = error.type_name in {"SecretStr", "SecretBytes"}
    try:
        if not secret:
            return to_plain(value), []
    except EncodingError:
        pass
    return None, [f"cannot be stored: type {error.type_name} at path {path_of(path)}{error.path[1:]}: {error.hint}"]


def close_to(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest known ones, by whole name or by last part."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3)
    last = name.rpartition(".")[2]
    close += [one for one in names if one.rpartition(".")[2] == last and one not in close]
    return f"; did you mean {' or '.join(close[:3])}?" if close else ""
