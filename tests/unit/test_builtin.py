"""Facts about the ready-made tasks."""

import time

import pytest

from graphrun import builtin
from graphrun.codec import decode, encode
from graphrun.registry import Context, Evolved, default_registry

NAMES = ("echo", "add", "sleep", "burn", "fail", "fail_once", "evolve_once", "measured")


@pytest.mark.parametrize("name", NAMES)
def test_importing_the_module_registers_each_task_under_its_public_name(name):
    registered = default_registry().get(f"graphrun.builtin.{name}")
    assert registered is getattr(builtin, name)
    assert registered.__doc__


@pytest.mark.parametrize(
    ("arguments", "returned"),
    [({"value": 3}, 3), ({"value": 3, "x": 1}, {"value": 3, "x": 1}), ({"x": 1}, {"x": 1}), ({}, {})],
)
def test_echo_returns_a_lone_value_or_all_arguments(arguments, returned):
    assert builtin.echo(**arguments) == returned


def test_echo_arguments_do_not_allow_none_so_a_failed_upstream_skips_it():
    assert not builtin.echo.parameters["arguments"].allows_none


@pytest.mark.parametrize(("a", "b"), [(1, 2), (1.5, 2)])
def test_add_keeps_ints_ints_through_storage(a, b):
    total = builtin.add(a, b)
    found = decode(encode(total, builtin.add.return_annotation), builtin.add.return_annotation)
    assert (type(found), found) == (type(a + b), a + b)


def test_sleep_takes_its_time_and_returns_the_value_or_the_seconds():
    started = time.monotonic()
    assert builtin.sleep(0.02) == 0.02
    assert time.monotonic() - started >= 0.02
    assert builtin.sleep(0, value="x", after=[1, 2]) == "x"


def test_burn_uses_the_processor_for_its_seconds():
    started = time.process_time()
    assert builtin.burn(0.02) == 0.02
    assert time.process_time() - started >= 0.02
    assert builtin.burn(0, value="x") == "x"


@pytest.mark.parametrize("name", ["sleep", "burn", "measured"])
@pytest.mark.parametrize("seconds", [-1, "soon", float("nan"), float("inf")])
def test_a_duration_that_is_none_is_refused_when_the_graph_is_built(name, seconds):
    _, faults = getattr(builtin, name).bind({"seconds": seconds}, lambda _: False)
    assert [fault.parameter for fault in faults] == ["seconds"]


def test_fail_fails_with_its_message():
    with pytest.raises(RuntimeError, match="out of cheese"):
        builtin.fail("out of cheese")


def test_fail_once_fails_on_attempt_one_and_succeeds_on_attempt_two():
    with pytest.raises(RuntimeError, match="failed once"):
        builtin.fail_once(Context("r", "k", 1), value=3)
    assert builtin.fail_once(Context("r", "k", 2), value=3) == 3
    assert builtin.fail_once.wants_context == "ctx"


def test_evolve_once_evolves_and_then_returns_its_value():
    first = builtin.evolve_once(value=3, scope="wider")
    assert isinstance(first, Evolved)
    assert (first.scope, bool(first.reason)) == ("wider", True)
    assert builtin.evolve_once(**({"value": 3, "scope": "wider"} | dict(first.params))) == 3


@pytest.mark.parametrize("mode", ["sleep", "burn"])
def test_measured_returns_its_depth(mode):
    root = builtin.measured(0.001, mode=mode)
    middle = builtin.measured(0, mode=mode, inputs=[root])
    assert (root, middle, builtin.measured(0, mode=mode, inputs=[root, middle, None, {"x": 9}])) == (1, 2, 3)
