"""Facts about checking literal parameters and decoding arguments (X1, X4)."""

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from graphrun.codec import to_plain
from graphrun.errors import RegistryError
from graphrun.registry import Context, Fault, Task


@dataclass(frozen=True)
class Ref:
    key: str


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    x: int
    name: str = "n"


def is_reference(value):
    return isinstance(value, Ref)


def bind(function, **params):
    return Task(function, name="T").bind(params, is_reference)


def body(url: str, count: int = 1, *, when: dt.date | None = None, models: list[Model] = ()): ...  # noqa: B006, RUF100 - a tuple


def test_good_literals_are_converted_and_encoded():
    bound, faults = bind(body, url="a", count="3", when="2024-01-02", models=[{"x": "1"}, Model(x=2)])
    assert faults == []
    assert bound == {
        "url": "a",
        "count": 3,
        "when": {"$date": "2024-01-02"},
        "models": [{"x": 1, "name": "n"}, {"x": 2, "name": "n"}],
    }


def test_all_faults_are_reported_together():
    bound, faults = bind(body, cuont=3, count="x", when="soon", models=[{"x": 1}, {"x": "y"}, {}])
    assert [(fault.parameter, fault.message.split(" (")[0].split(",")[0]) for fault in faults] == [
        ("cuont", "unknown parameter; did you mean 'count'?"),
        ("count", "Input should be a valid integer"),
        ("when", "Input should be a valid date or datetime"),
        ("models", "Input should be a valid integer"),
        ("models", "Field required"),
        ("url", "missing: it has no default"),
    ]
    assert "(at $[1].x)" in faults[3].message
    assert "(at $[2].x)" in faults[4].message
    assert str(faults[-1]) == "url: missing: it has no default"
    assert bound["count"] is None


def test_an_unknown_name_without_a_near_one_lists_what_the_task_takes():
    def two(a, b): ...

    def none(): ...

    assert bind(two, a=1, b=2, zzz=3)[1] == [Fault("zzz", "unknown parameter; the task takes a, b")]
    assert bind(none, zzz=3)[1] == [Fault("zzz", "unknown parameter; the task takes none")]


def test_the_context_cannot_be_given():
    def wants(ctx: Context): ...

    assert bind(wants)[1] == []

    def wants_all(ctx: Context, **rest: int): ...

    for function in (wants, wants_all):
        assert bind(function, ctx=1)[1] == [Fault("ctx", "it is the Context, which the engine gives")]
        with pytest.raises(RegistryError, match="it is the Context"):
            Task(function, name="T").call_arguments({"ctx": 1})


def test_free_parameters_take_any_name_and_their_annotation_holds_for_each():
    def free(a: int, **rest: int): ...

    assert bind(free, a=1, b="2", c=3) == ({"a": 1, "b": 2, "c": 3}, [])
    assert [fault.parameter for fault in bind(free, a=1, b="x", rest="y")[1]] == ["b", "rest"]


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (Ref("a"), Ref("a")),
        ([Ref("a"), Ref("b")], [Ref("a"), Ref("b")]),
        ((1, Ref("a")), [1, Ref("a")]),
        ({"k": [Ref("a"), math.nan]}, {"k": [Ref("a"), {"$float": "nan"}]}),
        ({"$k": Ref("a"), "d": {"$e": 1}}, {"$literal": {"$k": Ref("a"), "d": {"$literal": {"$e": 1}}}}),
    ],
    ids=repr,
)
def test_references_stay_where_they_are_and_the_literals_around_them_are_encoded(value, bound):
    def takes(x): ...

    assert bind(takes, x=value) == ({"x": bound}, [])


@pytest.mark.parametrize(
    ("annotation", "value", "bound"),
    [
        (list[Model], [Ref("a"), Model(x=1)], [Ref("a"), {"x": 1, "name": "n"}]),
        (list[Colour] | None, [Colour.RED, Ref("a")], ["red", Ref("a")]),
        (dict[str, tuple[int, Colour]], {"k": ("1", Ref("a"))}, {"k": [1, Ref("a")]}),
        (tuple[Colour, int, Any], (Ref("a"), "2", 3.5), [Ref("a"), 2, 3.5]),
        (Annotated[list[int], Field(min_length=9)], [Ref("a"), "2"], [Ref("a"), 2]),
    ],
    ids=repr,
)
def test_literals_beside_references_are_checked_by_their_element_type(annotation, value, bound):
    def takes(x): ...

    takes.__annotations__["x"] = annotation
    assert bind(takes, x=value) == ({"x": bound}, [])


def test_a_bad_literal_beside_a_reference_is_a_fault_with_its_place():
    def takes(x: dict[str, list[int]], y): ...

    _, faults = bind(takes, x={"k": [Ref("a"), "z", "w"]}, y=[Ref("a"), {1}, {2: Ref("b")}])
    assert [fault.parameter for fault in faults] == ["x", "x", "y", "y"]
    assert "(at $.k[1])" in faults[0].message
    assert "(at $.k[2])" in faults[1].message
    assert "type set at path $[1]" in faults[2].message
    assert faults[3].message == "the key 2 is not text (at $[2])"


def test_what_cannot_be_stored_is_a_fault_and_no_exception():
    def takes(a, b: Model, c: SecretStr, d: list[Any]): ...

    class Sub(Model):
        extra: int = 0

    cyclic: list[Any] = []
    cyclic.append(cyclic)
    _, faults = bind(takes, a=(1, 2), b=Sub(x=1), c="hunter2", d=cyclic)
    assert [fault.parameter for fault in faults] == ["a", "b", "c", "d"]
    assert faults[0].message.startswith("cannot be stored: type tuple at path $")
    assert "hunter2" not in str(faults)


def test_a_cycle_that_holds_a_reference_is_a_fault():
    def takes(a): ...

    cyclic: list[Any] = [Ref("a")]
    cyclic.append(cyclic)
    assert "contains itself" in bind(takes, a=cyclic)[1][0].message


def test_a_validator_that_takes_only_what_people_write_still_works():
    def takes(parts: Annotated[list[str], BeforeValidator(lambda text: text.split(","))], many: Iterable[int]): ...

    bound, faults = bind(takes, parts="a,b", many=[1, 2])
    assert faults == []
    assert Task(takes, name="T").call_arguments(bound) == {"parts": ["a", "b"], "many": [1, 2]}


def test_a_validator_that_raises_anything_is_a_fault():
    def explode(_value):
        raise RuntimeError("boom")

    def takes(x: Annotated[int, AfterValidator(explode)]): ...

    assert bind(takes, x=1)[1] == [Fault("x", "RuntimeError: boom (at $)")]


def test_arguments_are_decoded_by_annotation_and_defaults_are_left_to_python():
    def takes(models: list[Model], pair: tuple[int, int], when=None, *, day: dt.date = dt.date.min): ...

    values = {"models": [to_plain(Model(x=1), Model)], "pair": [1, 2], "when": {"$date": "2024-01-02"}}
    assert Task(takes, name="T").call_arguments(values) == {
        "models": [Model(x=1)],
        "pair": (1, 2),
        "when": dt.date(2024, 1, 2),
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"x": ["a"]}, r"parameter 'x' of task T: type str at path \$\[0\]: Input should be a valid integer"),
        ({"x": None}, "parameter 'x' of task T: type NoneType"),
        ({"x": {"$unknown": 1}}, "parameter 'x' of task T: .*unknown tag"),
        ({}, "parameter 'x' of task T: no value"),
        ({"x": [], "z": 1}, "parameter 'z' of task T: unknown parameter"),
    ],
)
def test_an_upstream_output_that_does_not_fit_names_parameter_and_task(values, message):
    def takes(x: list[int]): ...

    with pytest.raises(RegistryError, match=message):
        Task(takes, name="T").call_arguments(values)
