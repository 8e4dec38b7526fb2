"""Facts about the comparison that proves a round trip; the other codec tests rest on it, so it is tested by itself."""

import datetime as dt
import math
import zoneinfo
from collections import OrderedDict, deque
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from graphrun.codec.equality import require_equal
from graphrun.codec.paths import Refusal, path_of

NOON = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@dataclass
class Point:
    x: float


@dataclass
class SubPoint(Point):
    pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: int


@pytest.mark.parametrize(
    ("original", "returned"),
    [
        (math.nan, -math.nan),
        ([math.nan, {"a": math.nan}], [math.nan, {"a": math.nan}]),
        ({math.nan, 1.5}, {float("nan"), 1.5}),
        (Point(math.nan), Point(math.nan)),
        (Decimal("NaN"), Decimal("NaN")),
        (3, 3.0),
        (np.float64(1.5), 1.5),
        (Open(x=1, y=2), Open(x=1, y=2)),
        (dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1), dt.datetime.fromisoformat("2024-10-27T02:30+01:00")),
    ],
    ids=repr,
)
def test_equal_values_pass(original, returned):
    require_equal(original, returned)


@pytest.mark.parametrize(
    ("original", "returned", "path"),
    [
        (0.0, -0.0, "$"),
        (1, True, "$"),
        (True, 1.0, "$"),
        (3.0, 3, "$"),
        (2**53 + 1, float(2**53), "$"),
        (np.float64(3.0), 3, "$"),
        ([1, [2, 3]], [1, [2, 4]], "$[1][1]"),
        ([1], [1, 2], "$"),
        ((1,), [1], "$"),
        (deque([1]), deque([2]), "$[0]"),
        ({"a": {"b c": 0.0}}, {"a": {"b c": -0.0}}, '$.a["b c"]'),
        ({"a": 1}, {"a": 1, "b": 2}, "$"),
        ({1: "a"}, {True: "a"}, "$[1]"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "$.a"),
        ({"a": 1}, OrderedDict(a=1), "$"),
        ({1}, {True}, "$"),
        ({1, 2}, {1, 3}, "$"),
        ({1}, {1, 2}, "$"),
        ({math.nan}, {1.0}, "$"),
        (Decimal("1.0"), Decimal("1.00"), "$"),
        (Point(1.0), Point(2.0), "$.x"),
        (Point(1.0), SubPoint(1.0), "$"),
        (Open(x=1, y=2), Open(x=1, y=3), "$.y"),
        (Open(x=1, y=2), Open(x=1), "$"),
        (NOON, NOON.astimezone(dt.timezone(dt.timedelta(hours=2))), "$"),
        (NOON, NOON.replace(tzinfo=None), "$"),
        (NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, minute=1), "$"),
        (dt.time(1, tzinfo=dt.UTC), dt.time(1), "$"),
        (b"a", b"b", "$"),
        (object(), object(), "$"),
    ],
    ids=repr,
)
def test_unequal_values_are_refused_at_the_first_difference(original, returned, path):
    with pytest.raises(Refusal) as refused:
        require_equal(original, returned)
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((), "$"),
        (("rows", 3, "name"), "$.rows[3].name"),
        (("a b", "", "1st", 'q"\\'), '$["a b"][""]["1st"]["q\\"\\\\"]'),
        (("a\n", "été"), '$["a\n"]["été"]'),
    ],
)
def test_a_path_writes_identifiers_with_a_dot_and_all_else_in_brackets(keys, path):
    assert path_of(keys) == path
