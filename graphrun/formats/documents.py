"""From text to a plain document: JSON and YAML with their faults named by line and column.

Strict where a lenient reader would lose something without a word: a key given twice and a bare NaN are faults.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import yaml

from graphrun.errors import FormatError


def read_json(text: str, source: str) -> Any:
    """Read JSON text.

    Raises:
        FormatError: it is not JSON, a key is given twice, or a number is NaN or infinite.
    """
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise FormatError(f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise FormatError(f"{source}: nested too deep") from error
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from error


def read_yaml(text: str, source: str) -> Any:
    """Read one YAML document, YAML 1.1 as PyYAML has it, into values; whether they are plain is for their reader.

    Raises:
        FormatError: it is not YAML, or a key is given twice.
    """
    try:
        return yaml.load(text.removeprefix("\ufeff"), Loader=_Loader)  # noqa: S506 - a safe loader that refuses more
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = f"line {before.count(chr(10)) + 1}, column {error.position - before.rfind(chr(10))}"
        raise FormatError(f"{source}: {place}: not YAML: unprintable character {error.character:#x}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise FormatError(f"{source}: {place}not YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise FormatError(f"{source}: nested too deep") from error
    except (yaml.YAMLError, ValueError) as error:  # PyYAML lets a number that is none, such as 0x_, through as it came
        raise FormatError(f"{source}: not YAML: {' '.join(str(error).split())}") from error


def write_json(document: Any) -> str:
    """Write a document as JSON text that people can read; a lone surrogate is escaped, since UTF-8 has none."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def write_yaml(document: Any) -> str:
    """Write a document as YAML text, keys in their order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} is given twice in one object")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f'{name} is not JSON; write {{"$float": "nan"}}, "inf" or "-inf"')


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f'{text} is too large for a float; write {{"$float": "inf"}}, or a text')
    return value


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses repeated keys and leaves dates as text, since a document is plain JSON."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Read one mapping; its own keys are compared here, before ``<<`` merges those of another into it."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add((key.tag, key.value))
        return node


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
