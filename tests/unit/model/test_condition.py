"""Conditions: one nominal protocol, two kinds that can be serialised (G4)."""

import asyncio
import copy
import pickle

import pytest

from graphrun.errors import EncodingError, ExpressionError, RegistryError
from graphrun.model import Condition, EdgeCondition, ExpressionCondition, NamedCondition


def big(result):
    return result > 3


async def small(result):
    return result <= 3


def applied(condition, *args, **kwargs):
    return asyncio.run(condition.apply(*args, **kwargs))


def test_a_condition_without_apply_cannot_be_made():
    for abstract in (Condition, EdgeCondition):
        with pytest.raises(TypeError, match="abstract"):
            abstract()


def test_an_expression_condition_is_read_at_once():
    with pytest.raises(ExpressionError, match="column"):
        ExpressionCondition("result >")


def test_an_expression_condition_takes_names_from_mappings_and_keywords_later_ones_winning():
    condition = ExpressionCondition("result > limit")
    assert applied(condition, {"result": 4}, limit=3) is True
    assert applied(condition, {"result": 4, "limit": 9}, limit=3) is True
    with pytest.raises(ExpressionError, match="'limit' is not available"):
        applied(condition, {"result": 4})


def test_an_expression_condition_gives_a_bool_whatever_the_value():
    assert applied(ExpressionCondition("result"), result=[1]) is True
    assert applied(ExpressionCondition("result.missing"), result={}) is False


def test_a_new_source_is_read_when_it_is_assigned():
    condition = ExpressionCondition("result > 3")
    condition.source = "result < 3"
    assert applied(condition, result=1) is True
    assert condition.expression.names == {"result"}


def test_a_named_condition_calls_the_function_of_that_name_async_or_not():
    functions = {"big": big, "small": small}
    assert applied(NamedCondition("big", functions), 4) is True
    assert applied(NamedCondition("small", functions), 4) is False


def test_a_named_condition_is_bound_later_and_until_then_says_so():
    condition = NamedCondition("big")
    with pytest.raises(RegistryError, match=r"'big' has no functions.*bind\(\)"):
        applied(condition, 4)
    condition.bind({"big": big})
    assert applied(condition, 4) is True


def test_an_unknown_name_is_named_with_those_known():
    with pytest.raises(RegistryError, match="'huge'; known are big"):
        applied(NamedCondition("huge", {"big": big}), 4)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_name_that_is_no_text_is_a_value_error(name):
    with pytest.raises(ValueError, match="name"):
        NamedCondition(name)


def test_the_two_serialisable_kinds_are_equal_by_value():
    assert ExpressionCondition("x") == ExpressionCondition("x") != ExpressionCondition("y")
    assert NamedCondition("x") == NamedCondition("x", {}) != NamedCondition("y")
    assert ExpressionCondition("x") != NamedCondition("x")


def test_any_other_kind_cannot_be_serialised():
    class Code(Condition):
        async def apply(self):
            return True

    with pytest.raises(EncodingError, match="type Code"):
        Code().to_dict()


@pytest.mark.parametrize("condition", [ExpressionCondition("result > 3"), NamedCondition("big", {"big": big})])
def test_conditions_are_pickled_and_copied(condition):
    for again in (pickle.loads(pickle.dumps(condition)), copy.deepcopy(condition)):
        assert again == condition
        assert applied(again, {"result": 4} if isinstance(again, ExpressionCondition) else 4) is True
