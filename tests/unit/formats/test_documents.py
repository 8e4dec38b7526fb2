"""JSON and YAML text: read without losing anything, faults named by line and column, written for any reader."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrun.errors import FormatError
from graphrun.formats.documents import read_json, read_yaml, write_json, write_yaml

_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


def _refusal(read: Any, text: str) -> str:
    with pytest.raises(FormatError) as refused:
        read(text, "g")
    assert "\n" not in str(refused.value)
    return str(refused.value)


@settings(max_examples=100, deadline=None)
@given(_values)
def test_z9_any_value_survives_json_and_yaml_with_its_types(value: Any) -> None:
    for text, read in ((write_json(value), read_json), (write_yaml(value), read_yaml)):
        assert repr(read(text, "g")) == repr(value)
        assert read(text.encode().decode(), "g") == value


_WORDS = """on off yes no y n true null ~ 2020-01-01 2020-01-01T00:00:00Z 1e3 1_000 0x1F 0o17 012 12:30 .nan .inf = <<
- ? : !x &x *x % @ ` # | > [ { , '' 1.0 +1 NaN"""


@pytest.mark.parametrize(
    "text", [*_WORDS.split(), "", " a ", "a: b", "a #b", "\t", "\x00\x07", "\x85\u2028\ufeff", "a\nb\n"]
)
def test_o28_a_text_that_looks_like_something_else_stays_text(text: str) -> None:
    document = {text: [text, {"x": text}]}
    assert read_yaml(write_yaml(document), "g") == document
    assert read_json(write_json(document), "g") == document


def test_o23_a_lone_surrogate_is_written_as_text_that_any_reader_takes_and_comes_back() -> None:
    document = {"\udc80": "a\ud800b"}
    text = write_json(document)
    assert text.isascii()
    assert read_json(text, "g") == json.loads(text) == document
    assert read_yaml(write_yaml(document), "g") == document


def test_text_is_written_as_it_is_read_by_people() -> None:
    assert "名前 ☃" in write_json({"a": "名前 ☃"})
    assert "名前 ☃" in write_yaml({"a": "名前 ☃"})
    assert write_yaml({"b": 1, "a": [{"x": 1}]}) == "b: 1\na:\n- x: 1\n"


def test_yaml_dates_stay_text_and_floats_of_yaml_are_floats() -> None:
    assert read_yaml("a: 2020-01-01\nb: 1.5e+3\nc: 1e3\n", "g") == {"a": "2020-01-01", "b": 1500.0, "c": "1e3"}


def test_yaml_anchors_and_merges_are_read() -> None:
    text = "base: &b {max_attempts: 1, queue: io}\nmine:\n  <<: *b\n  queue: fast\nother: *b\n"
    assert read_yaml(text, "g") == {
        "base": {"max_attempts": 1, "queue": "io"},
        "mine": {"max_attempts": 1, "queue": "fast"},
        "other": {"max_attempts": 1, "queue": "io"},
    }
    chain = "a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, x: 3}\n"
    assert read_yaml(chain, "g") == {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}


def test_a_value_used_twice_is_written_twice_without_anchors() -> None:
    shared = {"x": 1}
    assert write_yaml({"a": shared, "b": shared}) == "a:\n  x: 1\nb:\n  x: 1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nodes": [}', "g: line 1, column 12: not JSON: "),
        ('{\n  "a": 1,\n  "b" 2}', "g: line 3, column 7: not JSON: "),
        ("", "g: line 1, column 1: not JSON: "),
        ('{"a": {"b": 1, "b": 2}}', "g: the key 'b' is given twice"),
        ('{"a": NaN}', 'NaN is not JSON; write {"$float": "nan"}'),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "1e999 is too large for a float"),
        ("[" * 100_000, "nested too deep"),
        ("1" * 5_000, "g: "),
    ],
)
def test_a_fault_of_json_is_named_in_one_line_with_its_place(text: str, said: str) -> None:
    assert said in _refusal(read_json, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes: [a\nb: c", "g: line 2, column 2: not YAML: "),
        ("a: b: c", "g: line 1, column 5: not YAML: "),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "g: line 4, column 3: not YAML: the key 'c' is given twice"),
        ("a: 1\n'a': 2\n", "line 2, column 1: not YAML: the key 'a' is given twice"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: not YAML: "),
        ("a: !!python/object:os.system x", "line 1, column 4: not YAML: could not determine a constructor"),
        ("a: *nowhere", "line 1, column 4: not YAML: "),
        ("a: 1\nb: \x00", "g: line 2, column 4: not YAML: unprintable character 0x0"),
        ("a: \ud800", "g: line 1, column 4: not YAML: unprintable character 0xd800"),
        ("[" * 1_000, "nested too deep"),
        ("a: 0x_", "g: not YAML: "),
    ],
)
def test_a_fault_of_yaml_is_named_in_one_line_with_its_place(text: str, said: str) -> None:
    assert said in _refusal(read_yaml, text)


def test_a_byte_order_mark_is_no_part_of_a_document() -> None:
    assert read_json('\ufeff{"a": 1}', "g") == read_yaml("\ufeffa: 1", "g") == {"a": 1}


def test_a_float_keeps_its_last_bit() -> None:
    values = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e22]
    for text, read in ((write_json(values), read_json), (write_yaml(values), read_yaml)):
        again = read(text, "g")
        assert again == values
        assert math.copysign(1, again[3]) == -1
