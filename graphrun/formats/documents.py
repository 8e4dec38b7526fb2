"""From text to a plain document: JSON and YAML with their faults named by line and column.

Strict where a lenient reader would lose something without a word: a key given twice and a bare NaN are faults.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import yaml

from graphrun.errors import FormatError


def read_json(text: str, source: str) -> Any:
    """Read JSON text.

    Raises:
        FormatError: it is not JSON, a key is given twice, or a number is NaN or infinite.
    """
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise FormatError(f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source}: {error or 'nested too deep'}") from error


def read_yaml(text: str, source: str) -> Any:
    """Read one YAML document into plain values.

    Raises:
        FormatError: it is not YAML, or a key is given twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader that also refuses repeated keys
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise FormatError(f"{source}: {place}not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise FormatError(f"{source}: not YAML: {error}") from error


def write_json(document: Any) -> str:
    """Write a document as JSON text that people can read."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_yaml(document: Any) -> str:
    """Write a document as YAML text, keys in their order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} is given twice in one object")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f'{name} is not JSON; write {{"$float": "nan"}}, "inf" or "-inf"')


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses repeated keys and leaves dates as text, since a document is plain JSON."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[Any] = set()
        for key_node, _value in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """A safe dumper that writes every value out, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote and escape what YAML would fold as a line break, or cannot print: it must come back as it was."""
    plain = all(char.isprintable() for char in text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)
