"""X4, X9: outputs put where references stand, in declared order; what is absent is left out and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from graphrun.codec import encode
from graphrun.engine.binding import InputError, Upstream, bind_inputs, part_of
from graphrun.execution.run import Resolution
from graphrun.registry import Task


def _task(function: Callable[..., Any]) -> Task[..., Any]:
    return Task(function, name="t")


def _given(value: Any) -> Upstream:
    return Upstream(Resolution.DELIVERED, None, lambda: value)


def _absent(resolution: Resolution = Resolution.MISSING, cause: str | None = "upstream_failed") -> Upstream:
    def load() -> Any:
        raise AssertionError("an output that was not delivered is not loaded")

    return Upstream(resolution, cause, load)


def takes(a: Any = 1, b: int | None = None, c: list[Any] | None = None) -> None: ...


def needs(x: int) -> None: ...


def free(**rest: Any) -> None: ...


def test_x9_references_are_replaced_by_parameter_in_declared_order() -> None:
    params = {"c": [{"$node": "n"}, 5, {"k": {"$node": "m", "path": "p"}}], "a": {"$node": "m"}, "b": 3}
    upstream = {("m", "a"): _given({"p": 7}), ("m", "c"): _given({"p": 7}), ("n", "c"): _given(None)}
    bound = bind_inputs(params, upstream, _task(takes))
    assert list(bound.values.items()) == [("c", [None, 5, {"k": 7}]), ("a", {"p": 7}), ("b", 3)]
    assert bound.missing == {}


def test_x3_null_delivered_is_a_value() -> None:
    assert bind_inputs({"a": {"$node": "n"}}, {("n", "a"): _given(None)}, _task(takes)).values == {"a": None}


@pytest.mark.parametrize("resolution", [Resolution.MISSING, Resolution.SUPPRESSED])
def test_x4_a_parameter_without_a_value_is_left_to_its_default_and_its_head_is_named(resolution: Resolution) -> None:
    bound = bind_inputs({"a": {"$node": "n"}}, {("n", "a"): _absent(resolution, "condition")}, _task(takes))
    assert (bound.values, bound.missing) == ({}, {"n": "condition"})


def test_x4_a_parameter_without_a_default_becomes_none_where_its_type_allows_it() -> None:
    def optional(b: int | None) -> None: ...

    assert bind_inputs({"b": {"$node": "n"}}, {("n", "b"): _absent()}, _task(optional)).values == {"b": None}


def test_x4_a_parameter_that_cannot_do_without_is_an_error_that_says_why() -> None:
    with pytest.raises(InputError, match=r"parameter 'x' has no value: n \(upstream_failed\)"):
        bind_inputs({"x": {"$node": "n"}}, {("n", "x"): _absent()}, _task(needs))


def test_x4_absent_elements_of_lists_and_dicts_are_left_out() -> None:
    params = {"c": [{"$node": "n"}, 1, [{"$node": "n"}], {"k": {"$node": "n"}, "l": 2}]}
    bound = bind_inputs(params, {("n", "c"): _absent()}, _task(takes))
    assert bound.values == {"c": [1, [], {"l": 2}]}


def test_x4_one_of_kwargs_without_a_value_is_simply_absent() -> None:
    upstream = {("n", "x"): _absent(), ("m", "y"): _given(2)}
    params = {"x": {"$node": "n"}, "y": {"$node": "m"}}
    assert bind_inputs(params, upstream, _task(free)).values == {"y": 2}


def test_x5_a_missing_edge_without_a_parameter_is_named_too() -> None:
    upstream = {("order", ""): _absent(Resolution.SUPPRESSED, None), ("fine", ""): _given(1)}
    bound = bind_inputs({"b": 3}, upstream, _task(takes))
    assert (bound.values, bound.missing) == ({"b": 3}, {"order": "suppressed"})


def test_literals_and_tags_pass_as_they_are() -> None:
    literal = {"$literal": {"$node": "n"}}
    params = {"a": literal, "c": [{"$float": "nan"}, {"plain": {"$uuid": "x"}}]}
    assert bind_inputs(params, {}, _task(takes)).values == params


def test_x7_an_edge_that_an_evolution_added_gives_its_whole_output() -> None:
    bound = bind_inputs({"b": 3}, {("new", "a"): _given([1]), ("other", ""): _given(2)}, _task(takes))
    assert bound.values == {"b": 3, "a": [1]}


def test_x7_a_parameter_that_an_evolution_set_reads_a_head_through_the_edge_it_has() -> None:
    bound = bind_inputs({"a": {"$node": "n", "path": "p"}}, {("n", "b"): _given({"p": 4})}, _task(takes))
    assert bound.values["a"] == 4


def test_a_reference_without_an_edge_counts_as_absent() -> None:
    bound = bind_inputs({"a": {"$node": "gone"}, "c": [{"$node": "gone"}, 1]}, {}, _task(takes))
    assert (bound.values, bound.missing) == ({"c": [1]}, {"gone": "no edge"})
    with pytest.raises(InputError, match=r"parameter 'x' has no value: gone \(no edge\)"):
        bind_inputs({"x": {"$node": "gone"}}, {}, _task(needs))


# --- paths into outputs


class Colour(Enum):
    RED = "red"


@dataclass
class Circle:
    radius: int
    tags: dict[str, int]


@dataclass
class Square:
    side: int


OUTPUT = {"items": [{"name": "x"}, {"name": "y"}], "a b": {'"q"\\': 1}, "$odd": [5], "名前": 2, "": 3}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("items[0].name", "x"),
        ("items[-1].name", "y"),
        ('["a b"]["\\"q\\"\\\\"]', 1),
        ('["$odd"][0]', 5),
        ("名前", 2),
        ('[""]', 3),
        ('["items"][1]', {"name": "y"}),
    ],
)
def test_o28_a_path_finds_its_part_whatever_the_keys(path: str, part: Any) -> None:
    assert part_of(json.loads(encode(OUTPUT)), path, "n") == part


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("items[2]", "the output of node 'n' has no 'items[2]'"),
        ("items[0].nam.x", "has no 'items[0].nam'"),
        ("items.name", "has no 'items.name'"),
        ("名前.x", "has no '名前.x'"),
        ("items[", "into node 'n': path 'items[' cannot be read at column 6"),
    ],
)
def test_a_path_that_is_not_in_the_output_names_where_it_ends(path: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        part_of(json.loads(encode(OUTPUT)), path, "n")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("value", "annotation", "path", "part"),
    [
        (Circle(3, {"$k": 4}), Circle | Square, "radius", 3),
        (Circle(3, {"$k": 4}), Circle | Square, 'tags["$k"]', 4),
        ([Square(2)], list[Circle | Square], "[0].side", 2),
        ({7: "seven"}, dict[int, str], "[7]", "seven"),
        ((1, (2, 3)), tuple[int, tuple[int, int]], "[1][0]", 2),
        ({"c": Colour.RED}, dict[str, Colour], "c", "red"),
    ],
    ids=str,
)
def test_a_path_goes_through_typed_outputs(value: Any, annotation: Any, path: str, part: Any) -> None:
    assert part_of(json.loads(encode(value, annotation)), path, "n") == part


def test_a_path_does_not_see_how_a_single_value_is_stored() -> None:
    with pytest.raises(InputError, match="has no"):
        part_of({"$bytes": "aGk="}, '["$bytes"]', "n")
