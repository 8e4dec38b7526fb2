"""Safe expressions: what is allowed, what it means, and what is refused before it can do harm."""

import pickle
import sys
from collections import defaultdict

import pytest

from graphrun.errors import ExpressionError
from graphrun.model import compile_expression

SCOPE = {
    "result": {"items_count": 3, "rows": [{"name": "é"}, {"name": "b"}], "none": None, "items": "key", 1: "int key"},
    "status": "succeeded",
    "numbers": [3, 1, 2],
    "text": "hello",
    "nothing": None,
}


def value(source, **names):
    return compile_expression(source).evaluate(SCOPE | names)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("7 / 2", 3.5),
        ("7 // 2", 3),
        ("-7 % 3", 2),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("-(+3)", -3),
        ("not 0", True),
        ("1 < 2 <= 2 != 3 == 3 >= 1 > 0", True),
        ("1 < 2 > 3", False),
        ("2 in [1, 2]", True),
        ("2 not in (1, 2)", False),
        ("'b' in {'b': 1}", True),
        ("'ell' in text", True),
        ("nothing is None", True),
        ("text is not None", True),
        ("0 or '' or 'last'", "last"),
        ("1 and 0 and missing", 0),
        ("1 or missing", 1),
        ("'yes' if result.items_count > 2 else missing", "yes"),
        ("[1, (2, 3), {'a': {4}}]", [1, (2, 3), {"a": {4}}]),
        ("[]", []),
        ("True is None", False),
        ("'a' 'b' + 'c'", "abc"),
        ("[1] + [2]", [1, 2]),
        ("(1,) * 2", (1, 1)),
        ("3 * 'ab'", "ababab"),
        ("'a' * -1", ""),
        ("numbers[0] + numbers[-1]", 5),
        ("text[1:3]", "el"),
        ("numbers[::-1]", [2, 1, 3]),
        ("len(numbers)", 3),
        ("str(1.5) + str(None) + str(True)", "1.5NoneTrue"),
        ("int('12') + int(3.9)", 15),
        ("float('1.5')", 1.5),
        ("bool([])", False),
        ("abs(-3)", 3),
        ("min(numbers) + max(4, 9)", 10),
        ("round(2.567, 1)", 2.6),
        ("round(2.5)", 2),
        ("sorted(numbers)", [1, 2, 3]),
        ("  1  ", 1),
        ("(1\n + 2)", 3),
    ],
)
def test_the_value_is_pythons(source, expected):
    assert value(source) == expected
    assert type(value(source)) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("result.items_count", 3),
        ("result['rows'][1].name", "b"),
        ("result.items", "key"),
        ("result[1]", "int key"),
        ("result.absent", None),
        ("result.absent.deeper['still'][0].more", None),
        ("result['rows'][9]", None),
        ("result['rows'][-9].name", None),
        ("result.rows['name']", None),
        ("result.rows[99999999999999999999]", None),
        ("nothing[0]", None),
        ("nothing[1:2]", None),
        ("nothing.x", None),
        ("text.upper", None),
        ("numbers.append", None),
        ("result.keys", None),
        ("(5)[0]", None),
    ],
)
def test_a_path_reads_keys_and_positions_and_what_is_missing_is_none(source, expected):
    assert value(source) == expected


def test_reading_never_touches_an_object():
    class Tripwire:
        def __getattr__(self, name):
            raise AssertionError(name)

        def __getitem__(self, key):
            raise AssertionError(key)

    assert value("thing.secret", thing=Tripwire()) is None
    assert value("thing['secret']", thing=Tripwire()) is None


def test_reading_does_not_fill_a_defaultdict():
    counts = defaultdict(list)
    assert value("counts.a", counts=counts) is None
    assert not counts


def test_names_are_the_top_level_names_read_and_not_the_functions_called():
    assert compile_expression("len(result.rows) > limit and status == 'x'").names == {"result", "limit", "status"}
    assert compile_expression("len(len)").names == {"len"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "not empty"),
        ("   ", "not empty"),
        ("1 +", "column 4: invalid syntax"),
        ("a b", "column 3: invalid syntax"),
        ("  a b", "column 5: invalid syntax"),
        ("(1 +\n )", "line 2, column 2: invalid syntax"),
        ("x = 1", "column 3: invalid syntax"),
        ("1 if 2", "column"),
        ("\x00", "null bytes"),
        ("lambda: 1", "column 1: Lambda is not allowed"),
        ("1 + [x for x in y]", "column 5: ListComp is not allowed"),
        ("{x for x in y}", "SetComp is not allowed"),
        ("{x: 1 for x in y}", "DictComp is not allowed"),
        ("len(x for x in y)", "GeneratorExp is not allowed"),
        ("f'{x}'", "JoinedStr is not allowed"),
        ("(x := 1)", "NamedExpr is not allowed"),
        ("await x", "Await is not allowed"),
        ("(yield)", "Yield is not allowed"),
        ("[*x]", "Starred is not allowed"),
        ("max(*x)", "Starred is not allowed"),
        ("{**x}", "unpacking is not allowed"),
        ("len(x, y=1)", "keyword arguments are not allowed"),
        ("sorted(x, key=len)", "keyword arguments are not allowed"),
        ("eval('1')", "only len, str, .* can be called"),
        ("x.y()", "only len, str, .* can be called"),
        ("(len)(x)()", "only len, str, .* can be called"),
        ("1 << 3", "LShift is not allowed"),
        ("1 >> 3", "RShift is not allowed"),
        ("1 | 3", "BitOr is not allowed"),
        ("1 & 3", "BitAnd is not allowed"),
        ("1 ^ 3", "BitXor is not allowed"),
        ("~1", "Invert is not allowed"),
        ("x @ y", "MatMult is not allowed"),
        ("x.__class__", "'__class__' begins with an underscore"),
        ("x._private.y", "'_private' begins with an underscore"),
        ("b'x'", "literals of type bytes"),
        ("1j", "literals of type complex"),
        ("...", "literals of type ellipsis"),
        ("x is True", "'is' compares with None only"),
        ("1 is 1", "'is' compares with None only"),
        ("x[1:2, 3]", "a slice stands alone"),
    ],
)
def test_what_is_not_allowed_is_named_with_its_column(source, message):
    with pytest.raises(ExpressionError, match=message):
        compile_expression(source)


@pytest.mark.parametrize("source", [None, 5, b"1", ["1"]])
def test_only_text_is_an_expression(source):
    with pytest.raises(ExpressionError, match="is a string"):
        compile_expression(source)


def test_at_most_4096_characters():
    assert value("1" + " " * 4_095) == 1
    with pytest.raises(ExpressionError, match="4097 characters; at most 4096"):
        compile_expression("1" + " " * 4_096)


def test_at_most_20_levels():
    assert value("result" + ".a" * 19) is None
    for deep in ("result" + ".a" * 20, "not " * 20 + "1", "[" * 20 + "1" + "]" * 20, "1" + " + 1" * 20):
        with pytest.raises(ExpressionError, match="deeper than 20"):
            compile_expression(deep)


@pytest.mark.parametrize(
    "source", ["-" * 4_000 + "1", "(" * 2_000 + "1" + ")" * 2_000, "[" * 4_000, "not " * 1_000 + "1"]
)
def test_absurd_nesting_is_refused_and_not_a_crash(source):
    with pytest.raises(ExpressionError):
        compile_expression(source)


@pytest.mark.parametrize(
    "source",
    [
        "9 ** 9 ** 9",
        "2 ** 4096",
        "(2 ** 4000) * (2 ** 4000)",
        "'a' * 10 ** 9",
        "10 ** 9 * 'a'",
        "[0] * 10 ** 9",
        "(0,) * 10 ** 9",
        "('a' * 600000) + ('a' * 600000)",
        "round(5, -10 ** 9)",
        "int('9' * 4000)",
        "int('9' * 100000)",
        "9" * 4_000,
        "str(big)",
        "str(numbers)",
        "[[0] * 1000] * 1000",
        "10.0 ** 1000",
        "(-8) ** 0.5",
    ],
)
def test_what_would_be_too_large_is_refused_before_it_is_computed(source):
    with pytest.raises(ExpressionError, match="column"):
        value(source, big=1 << 5_000)


def test_bounds_are_4096_bits_and_a_million_items():
    assert value("2 ** 4095") == 1 << 4_095
    assert len(value("'a' * 1000000")) == 1_000_000
    with pytest.raises(ExpressionError, match="more than 1000000 items"):
        value("'a' * 1000001")


def test_large_values_that_were_there_before_may_be_read():
    large = list(range(1_000_001))
    assert value("large[1000000]", large=large) == 1_000_000
    assert value("result.large", result={"large": large}) is large
    with pytest.raises(ExpressionError, match="more than 1000000 items"):
        value("sorted(large)", large=large)


def test_results_stay_bounded_when_the_interpreters_digit_limit_is_off():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(ExpressionError, match="4096 bits"):
            value("int('9' * 4000)")
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("None > 3", "column 1: '>' not supported between instances of 'NoneType' and 'int'"),
        ("1 + (text < 3)", "column 6: '<' not supported"),
        ("text + 3", "'\\+' is not defined for str and int"),
        ("'%s' % 3", "'%' is not defined for str and int"),
        ("numbers - numbers", "'-' is not defined for list and list"),
        ("1 / 0", "column 1: division by zero"),
        ("1 in nothing", "'in' needs a list, dict, set or string, got NoneType"),
        ("len(nothing)", "'len' needs a list"),
        ("abs(text)", "'abs' needs a number"),
        ("min([])", "empty"),
        ("int('x')", "invalid literal"),
        ("sorted([1, 'a'])", "not supported"),
        ("len()", "argument"),
        ("len(1, 2)", "argument"),
        ("numbers[::0]", "step cannot be zero"),
        ("{[1]: 2}", "unhashable"),
        ("result[[1]]", "unhashable"),
    ],
)
def test_an_operation_that_fails_is_an_expression_error_with_its_column(source, message):
    with pytest.raises(ExpressionError, match=message):
        value(source)


def test_what_operators_of_a_value_raise_becomes_an_expression_error_with_its_cause():
    class Odd:
        def __bool__(self):
            raise RuntimeError("neither true nor false")

    with pytest.raises(ExpressionError, match="neither true nor false") as caught:
        value("1 if odd else 2", odd=Odd())
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_missing_name_is_named_with_those_that_are_available():
    with pytest.raises(
        ExpressionError, match=r"column 5: the name 'reslt' is not available \(there are: result, status\)"
    ):
        compile_expression("1 + reslt").evaluate({"status": 1, "result": 2})
    with pytest.raises(ExpressionError, match="there are: none"):
        compile_expression("x").evaluate({})


def test_columns_count_characters_not_bytes():
    with pytest.raises(ExpressionError, match="column 8: the name 'y'"):
        value("'éé' + y")


def test_an_expression_is_compiled_once_and_equal_by_source():
    first = compile_expression("result.x > 3")
    assert compile_expression("result.x > 3") is first
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert hash(again) == hash(first)


def test_evaluation_leaves_the_scope_alone():
    scope = {"numbers": [3, 1]}
    compile_expression("sorted(numbers) + numbers[:]").evaluate(scope)
    assert scope == {"numbers": [3, 1]}
