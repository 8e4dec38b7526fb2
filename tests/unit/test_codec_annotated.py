"""Facts about values with annotation: what comes back as it was, what is refused and where (O22, §3.8)."""

import datetime as dt
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    SecretStr,
    computed_field,
)
from typing_extensions import TypedDict

from graphrun.codec import decode, encode, from_plain, strip_returns, to_plain
from graphrun.codec.equality import require_equal
from graphrun.errors import EncodingError


class Colour(Enum):
    RED = "red"
    NIGHT = dt.date(2024, 1, 1)


class Level(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Point3(Point):
    z: int = 0


@dataclass
class Opaque:
    x: int
    hidden: int = field(default=0, init=False)


class Row(NamedTuple):
    a: int
    b: tuple[int, int]


class Shape(TypedDict):
    sides: int


class A(BaseModel):
    x: int


class B(BaseModel):
    x: int


class SubA(A):
    y: int = 2


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    lives: int = 1


class Holder(BaseModel):
    one: A
    other: A | B | None = None
    colours: set[Colour] = set()
    by_id: dict[int, Path] = {}
    anything: Any = None


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int = Field(alias="theX")

    @computed_field
    @property
    def double(self) -> int:
        return self.x * 2


class Private(BaseModel):
    x: int
    _seen: int = PrivateAttr(default=0)


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees

    def __eq__(self, other):
        return isinstance(other, Celsius) and other.degrees == self.degrees

    __hash__ = None


JsonOnly = Annotated[
    Celsius,
    PlainValidator(lambda one: one if isinstance(one, Celsius) else Celsius(one)),
    PlainSerializer(lambda one: one.degrees, when_used="json"),
]


def returned(value, annotation):
    text = encode(value, annotation)
    assert text.isascii()
    found = decode(text, annotation)
    require_equal(value, found)
    return found


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ((1, 2), tuple[int, ...]),
        ((1, "x", (2.5,)), tuple[int, str, tuple[float]]),
        ({1, 2}, set[int]),
        (frozenset({(1, 2)}), frozenset[tuple[int, int]]),
        ({math.nan, -0.0}, set[float]),
        ({1: "a", 2: "b"}, dict[int, str]),
        ({dt.date(2024, 1, 1): [Decimal("1.0")]}, dict[dt.date, list[Decimal]]),
        ({Colour.RED: 1}, dict[Colour, int]),
        ({True: 1}, dict[bool, int]),
        ({"$a": {"$b": 1}}, dict[str, dict[str, int]]),
        (deque([1, 2]), deque[int]),
        (defaultdict(int, a=1), defaultdict[str, int]),
        (OrderedDict(b=1, a=2), OrderedDict[str, int]),
        ([1, 2], Sequence[int]),
        ({"a": 1}, Mapping[str, int]),
        (Path("/a/b"), Path),
        (Colour.RED, Colour),
        (Colour.NIGHT, Colour),
        (Level.LOW, Level),
        (IPv4Address("10.0.0.1"), IPv4Address),
        (1 + 2j, complex),
        (Fraction(1, 3), Fraction),
        (Point(1, math.nan, frozenset({"a", "b"})), Point),
        (Row(1, (2, 3)), Row),
        ({"sides": 3}, Shape),
        (A(x=1), A),
        ([A(x=1), None], list[A | None]),
        (Holder(one=A(x=1), colours={Colour.RED}, by_id={7: Path("x")}, anything=[math.inf, b"x"]), Holder),
        (Aliased(theX=3), Aliased),
        (Private(x=1), Private),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime),
        (dt.timedelta(seconds=1.5), dt.timedelta),
        (b"\xff", bytes),
        (math.nan, float),
        ([-0.0, math.inf], list[float]),
        ("lone \ud800 and \x00", str),
        ("3", int | str),
        (3, int | str),
        (True, bool | int),
        (None, None),
        (None, int | None),
        (Dog(), Annotated[Cat | Dog, Field(discriminator="kind")]),
        (Dog(), Cat | Dog),
        (10**30, int),
        (Celsius(3), JsonOnly),
    ],
    ids=repr,
)
def test_an_annotated_value_comes_back_equal_and_of_the_same_type(value, annotation):
    returned(value, annotation)
    returned([value], list[annotation])


@pytest.mark.parametrize(
    ("value", "annotation", "type_name", "path"),
    [
        ("3", int, "str", "$"),
        (True, int, "bool", "$"),
        (1, bool, "int", "$"),
        (3.0, int, "float", "$"),
        (2**53 + 1, float, "int", "$"),
        (5, None, "int", "$"),
        ([1, "2"], list[int], "str", "$[1]"),
        ([1, 2], tuple[int, int], "list", "$"),
        ((1, 2), list[int], "tuple", "$"),
        ({"a": (1, 2)}, dict[str, Any], "tuple", "$.a"),
        ({1: "a"}, dict[str, str], "int", "$[1]"),
        ({1: "a"}, dict, "int", "$[1]"),
        ({1: "a", "1": "b"}, dict[int | str, str], "str", '$["1"]'),
        (SubA(x=1), A, "SubA", "$"),
        ([A(x=1), SubA(x=1)], list[A], "SubA", "$[1]"),
        (Holder(one=SubA(x=1)), Holder, "SubA", "$.one"),
        (Holder(one=A(x=1), anything=A(x=1)), Holder, "A", "$.anything"),
        (Holder(one=A(x=1), other=B(x=1)), Holder, "B", "$.other"),
        (Point3(1), Point, "Point3", "$"),
        (Point("x"), Point, "str", "$.x"),
        (SecretStr("s"), SecretStr, "SecretStr", "$"),
        ({"a": [Celsius(1)]}, dict[str, list[Celsius]], "Celsius", "$.a[0]"),
        (np.zeros(2), np.ndarray, "ndarray", "$"),
        (np.float64(3.0), int, "float", "$"),
        ("x", A, "str", "$"),
        ({"x": 1}, A, "dict", "$"),
    ],
    ids=repr,
)
def test_a_value_that_would_come_back_changed_is_refused_at_its_path(value, annotation, type_name, path):
    with pytest.raises(EncodingError) as refused:
        encode(value, annotation)
    assert (refused.value.type_name, refused.value.path) == (type_name, path)


def test_a_private_attribute_or_hidden_field_that_would_be_lost_is_refused():
    model = Private(x=1)
    model._seen = 5
    with pytest.raises(EncodingError, match="_seen"):
        encode(model, Private)
    opaque = Opaque(1)
    opaque.hidden = 5
    with pytest.raises(EncodingError):
        encode(opaque, Opaque)


def test_a_validator_that_changes_its_own_result_is_refused():
    with pytest.raises(EncodingError, match="changed"):
        encode("a", Annotated[str, AfterValidator(lambda text: text + "/")])


def test_an_int_where_a_float_is_annotated_arrives_as_that_float():
    assert repr(decode(encode([1, 2.5], list[float]), list[float])) == "[1.0, 2.5]"


@pytest.mark.parametrize(
    ("value", "annotation", "found"),
    [
        (np.int64(3), int, 3),
        (np.float32(0.5), float, 0.5),
        ([np.int8(1)], list[int], [1]),
        ({np.int64(1): 2}, dict[int, int], {1: 2}),
    ],
)
def test_a_numpy_scalar_under_an_annotation_arrives_as_its_item(value, annotation, found):
    require_equal(found, decode(encode(value, annotation), annotation))


def test_a_union_of_two_models_of_one_shape_is_told_apart_by_member():
    assert to_plain(B(x=1), A | B) == {"$variant": "B", "value": {"x": 1}}
    assert to_plain(A(x=1), A | B) == {"x": 1}
    assert to_plain(B(x=1), B | A) == {"x": 1}  # an equal annotation, in another order
    assert isinstance(returned(B(x=1), A | B), B)
    assert isinstance(returned(A(x=1), B | A), A)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ([A(x=1), B(x=2)], list[A | B]),
        ({"k": (B(x=1), 3)}, dict[str, tuple[A | B, int]]),
        ([[B(x=1)]], list[list[A] | list[B]]),
        (Path("x"), str | Path),
        ((1, 2), list[int] | tuple[int, ...]),
        ({1}, list[int] | set[int] | None),
        (Level.LOW, int | Level),
        ([SubA(x=1), A(x=1)], list[A | SubA]),
        ([B(x=1)], list[A | B] | None),
    ],
    ids=repr,
)
def test_unions_inside_generics_are_told_apart_too(value, annotation):
    returned(value, annotation)


def test_consumers_of_a_variant_get_it_by_their_own_annotation():
    text = encode([B(x=1)], list[A | B])
    assert decode(text) == [{"x": 1}]
    assert decode(text, list[Any]) == [{"x": 1}]
    assert decode(text, list[A]) == [A(x=1)]
    assert decode(text, list[B] | None) == [B(x=1)]
    assert decode(text, Sequence[B | A]) == [B(x=1)]
    assert decode(text, dict[str, int] | list[Any]) == [{"x": 1}]


def test_two_members_of_one_name_are_told_apart_by_module_and_qualified_name():
    def other():
        class A(BaseModel):
            x: int

        return A

    union = A | other()
    second = union.__args__[1](x=1)
    assert to_plain(second, union)["$variant"].endswith("other.<locals>.A")
    returned(second, union)


def test_an_iterable_arrives_as_a_list_and_not_as_an_iterator_to_be_read_once():
    assert returned([1, 2], Iterable[int]) == [1, 2]


def test_a_set_is_written_in_the_same_order_everywhere():
    words = [chr(code) for code in range(ord("A"), ord("z"))]
    assert to_plain(set(words), set[str]) == words


def test_a_consumer_converts_as_pydantic_does():
    assert decode(encode("3"), int) == 3
    assert decode(encode([1, 1]), set[int]) == {1}
    assert decode(encode({"x": "7"}), A) == A(x=7)
    assert decode(encode({"theX": 7}), Aliased) == Aliased(theX=7)


def test_an_unannotated_consumer_gets_tagged_leaves_of_their_type():
    value = Holder(one=A(x=1), anything=dt.date(2024, 1, 1))
    assert decode(encode(value, Holder))["anything"] == dt.date(2024, 1, 1)


def test_what_does_not_fit_the_consumer_is_an_encoding_error_with_the_path():
    with pytest.raises(EncodingError, match="valid integer") as refused:
        from_plain({"rows": [1, "x"]}, dict[str, list[int]])
    assert (refused.value.type_name, refused.value.path) == ("str", "$.rows[1]")
    with pytest.raises(EncodingError, match="required") as refused:
        from_plain({}, A)
    assert refused.value.path == "$.x"


def test_cyclic_and_deep_values_are_refused_under_an_annotation_too():
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    holder = Holder(one=A(x=1))
    holder.anything = holder
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    for value, annotation in ((cyclic, list), (cyclic, list[Any]), (holder, Holder), (deep, list[Any])):
        with pytest.raises(EncodingError):
            encode(value, annotation)


def test_a_serializer_that_raises_is_an_encoding_error_with_its_cause():
    def broken(_value):
        raise RuntimeError("boom")

    with pytest.raises(EncodingError, match="boom"):
        encode(1, Annotated[int, PlainSerializer(broken)])


class Done:
    pass


@pytest.mark.parametrize(
    ("annotation", "stripped"),
    [
        (int | Done, int),
        (int | None | Done, int | None),
        (Done, Any),
        (int, int),
        (Any, Any),
        (Annotated[int | Done, "note"], Annotated[int, "note"]),
        (list[Done], list[Done]),
    ],
    ids=repr,
)
def test_return_classes_are_taken_out_of_an_annotation(annotation, stripped):
    assert strip_returns(annotation, (Done,)) == stripped


@given(
    st.builds(
        Point,
        x=st.integers(),
        y=st.floats(),
        tags=st.frozensets(st.text(max_size=3), max_size=3),
    )
)
@settings(max_examples=100, deadline=None)
def test_every_dataclass_value_comes_back_equal(point):
    returned(point, Point)
    returned({1: [point], -1: []}, dict[int, list[Point]])
