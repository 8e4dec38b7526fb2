"""Facts about values without annotation, and about the text they are stored as (O21-O23, H12)."""

import datetime as dt
import json
import math
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphrun.codec import decode, encode, from_plain, to_plain
from graphrun.codec.equality import require_equal
from graphrun.errors import EncodingError

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


class SubText(str):
    __slots__ = ()


class SubDict(dict):
    pass


@dataclass
class Point:
    x: int


class Model(BaseModel):
    x: int


def returned(value):
    text = encode(value)
    assert text.isascii()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    found = decode(text)
    require_equal(value, found)
    return found


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63) - 1,
        10**3900,
        10**4299,
        10**4300,
        10**5000,
        -(10**5000),
        -0.0,
        5e-324,
        1.7976931348623157e308,
        "",
        "\x00 in the middle",
        "lone \ud800 surrogate",
        "a pair of surrogates \ud83d\ude00 that is no emoji",
        "\U0001f600",
        [],
        {},
        [[], {}, [None]],
        {"a b": {"": 1}},
        b"",
        b"\xff\x00",
        Decimal("1.00"),
        Decimal("-0"),
        Decimal("NaN"),
        Decimal("1E+1000"),
        uuid.UUID(int=7),
        dt.date(1, 1, 1),
        dt.time(23, 59, 59, 999999),
        dt.time(1, 2, tzinfo=dt.UTC),
        dt.time(1, 2, fold=1),
        dt.timedelta(days=-1, microseconds=1),
        dt.timedelta.max,
        dt.datetime.min,  # noqa: DTZ901 - naive values are users' values
        dt.datetime(2024, 2, 29, 12, 30, 1, 5),  # noqa: DTZ001 - the same
        dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=-3, seconds=7))),
        dt.datetime(2024, 7, 1, tzinfo=BERLIN),
        dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, int) or abs(value) < 10**20 else "big",
)
def test_a_value_comes_back_equal_and_of_the_same_type(value):
    returned(value)
    returned({"deep": [value, {"x": value}]})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_stored_without_bare_constants(value):
    found = returned({"loss": value})
    assert repr(found["loss"]) == repr(value)


def test_o23_a_dict_of_nan_and_minus_infinity_comes_back_as_floats():
    found = returned({"loss": math.nan, "best": -math.inf})
    assert math.isnan(found["loss"])
    assert found["best"] == -math.inf


def test_a_zone_is_kept_and_not_only_its_offset():
    found = returned(dt.datetime(2024, 7, 1, tzinfo=BERLIN))
    assert found + dt.timedelta(days=180) == dt.datetime(2024, 12, 28, tzinfo=BERLIN)
    assert found.tzinfo is BERLIN


@pytest.mark.parametrize(
    "value",
    [
        {"__type__": "datetime", "__value__": "x"},
        {"$datetime": "not a date"},
        {"$float": "nan"},
        {"$literal": {"$literal": 1}},
        {"$variant": "A", "value": 1},
        {"$node": "b", "path": "items[0]"},
        {"$": 1, "plain": math.nan},
        {"nested": [{"$bytes": {"$uuid": b"x"}}]},
    ],
)
def test_user_data_that_looks_like_a_tag_is_only_data(value):
    returned(value)


def test_the_literal_form_is_the_one_that_the_contract_names():
    assert to_plain({"$x": {"$y": 1.5}}) == {"$literal": {"$x": {"$literal": {"$y": 1.5}}}}
    assert to_plain([math.inf]) == [{"$float": "inf"}]


@pytest.mark.parametrize(
    ("value", "type_name", "path"),
    [
        ({1, 2}, "set", "$"),
        ((1, 2), "tuple", "$"),
        ({"rows": [1, 2, {"name": frozenset()}]}, "frozenset", "$.rows[2].name"),
        ({"a b": Path("x")}, "PosixPath", '$["a b"]'),
        ({'quote"': {"1st": Colour.RED}}, "Colour", '$["quote\\""]["1st"]'),
        ([Word.A], "Word", "$[0]"),
        (Number.ONE, "Number", "$"),
        (Point(1), "Point", "$"),
        (Model(x=1), "Model", "$"),
        ({1: "a"}, "int", "$[1]"),
        ({(1, 2): 3}, "tuple", "$[(1, 2)]"),
        ([SubText("x")], "SubText", "$[0]"),
        (SubDict(), "SubDict", "$"),
        (OrderedDict(a=1), "OrderedDict", "$"),
        (defaultdict(list), "defaultdict", "$"),
        (bytearray(b"x"), "bytearray", "$"),
        (1j, "complex", "$"),
        (np.zeros(2), "ndarray", "$"),
        (np.datetime64("2024-01-01T00:00:00.000000001"), "datetime64", "$"),
        ([np.longdouble(1)], "longdouble", "$[0]"),
        (print, "builtin_function_or_method", "$"),
        (object(), "object", "$"),
        (dt.time(1, tzinfo=BERLIN), "time", "$"),
        ({"\ud83d\ude00": 1}, "str", '$["\ud83d\ude00"]'),
    ],
    ids=lambda value: repr(value).encode("ascii", "backslashreplace").decode()[:30],
)
def test_what_would_change_is_refused_with_its_type_and_path(value, type_name, path):
    with pytest.raises(EncodingError) as refused:
        encode(value)
    assert (refused.value.type_name, refused.value.path) == (type_name, path)
    assert str(refused.value).startswith(f"type {type_name} at path {path}")


def test_the_refusal_of_a_tuple_says_to_annotate():
    with pytest.raises(EncodingError, match="annotate the return type"):
        encode((1, 2))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.uint8(255), 255),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.bool_(1), True),
        (np.str_("x"), "x"),
        (np.float64("nan"), math.nan),
    ],
)
def test_a_numpy_scalar_becomes_its_python_item(value, plain):
    found = decode(encode({"x": [value]}))
    require_equal({"x": [plain]}, found)


def test_a_value_that_contains_itself_is_refused_not_followed():
    cyclic: list[object] = [0]
    cyclic.append({"again": cyclic})
    with pytest.raises(EncodingError, match="contains itself") as refused:
        encode(cyclic)
    assert refused.value.path == "$[1].again"


def test_one_list_in_two_places_is_no_cycle():
    shared = [1]
    assert decode(encode([shared, shared])) == [[1], [1]]


def nested(levels, wrap):
    value: object = 1
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda one: [one], lambda one: {"$a": one}, lambda one: [{"b": one}]])
def test_a_hundred_and_more_levels_pass_and_ten_thousand_are_refused(wrap):
    returned(nested(100, wrap))
    with pytest.raises(EncodingError, match="deeper than 200"):
        encode(nested(10_000, wrap))


def test_text_that_is_nested_too_deep_is_refused_not_followed():
    for levels in (300, 100_000):
        with pytest.raises(EncodingError):
            decode("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nope",
        "NaN",
        '{"$unknown": 1}',
        '{"$node": "b"}',
        '{"$datetime": 5}',
        '{"$datetime": "2024-01-01T00:00:00", "zone": "Moon/Base"}',
        '{"$datetime": "x", "extra": 1}',
        '{"$float": "1"}',
        '{"$bytes": "%"}',
        '{"$decimal": "x"}',
        '{"$timedelta": [1e999]}',
        '{"$literal": 1}',
    ],
)
def test_text_that_this_codec_did_not_write_is_an_encoding_error(text):
    with pytest.raises(EncodingError):
        decode(text)


def test_a_fault_in_stored_text_names_its_path():
    with pytest.raises(EncodingError) as refused:
        decode('{"rows": [1, {"$uuid": "x"}]}')
    assert refused.value.path == "$.rows[1]"


def test_the_plain_form_is_a_copy():
    value = {"rows": [1]}
    plain = to_plain(value)
    value["rows"].append(2)
    assert plain == {"rows": [1]}
    assert from_plain(plain) == {"rows": [1]}


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Lu"]), max_size=4)
    | st.binary(max_size=8)
    | st.uuids()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.just(BERLIN))
)
KEYS = st.text(max_size=4) | st.sampled_from(["$literal", "$float", "$variant", "value", "__type__", "$"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_every_accepted_value_comes_back_equal_with_equal_types(value):
    returned(value)
