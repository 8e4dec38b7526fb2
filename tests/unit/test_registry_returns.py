"""Facts about what a body hands back and what it is given (X7, X13)."""

import dataclasses

import pytest

from graphrun.errors import GraphError
from graphrun.registry import Context, Done, Evolved, Failed, normalise_return


@pytest.mark.parametrize("value", [Done(1), Failed("no"), Evolved(scope="s")])
def test_a_return_stays_what_it_is(value):
    assert normalise_return(value) is value


@pytest.mark.parametrize("value", [None, 3, {"status": "failed"}, Done])
def test_any_other_value_is_done(value):
    assert normalise_return(value) == Done(value)


class Node:
    def __init__(self, key):
        self.key = key

    def to_document(self):
        return {"key": self.key, "task": "t"}


def test_an_evolution_is_normalised_to_documents_and_pairs():
    evolved = Evolved(
        params={"x": 1},
        add=[Node("n"), {"key": "m", "task": "t"}],
        edges=[("a", Node("n")), {"head": "n", "tail": Node("m"), "when": "result > 0"}],
        remove_edges=(pair for pair in [["a", "b"]]),
    )
    assert evolved.add == ({"key": "n", "task": "t"}, {"key": "m", "task": "t"})
    assert evolved.edges == ({"head": "a", "tail": "n"}, {"head": "n", "tail": "m", "when": "result > 0"})
    assert evolved.remove_edges == (("a", "b"),)
    assert Evolved() == Evolved(add=[], edges=[], remove_edges=[])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"add": [3]}, "int is no node"),
        ({"add": [{"task": "t"}]}, "is no node"),
        ({"edges": ["ab"]}, "str is no edge"),
        ({"edges": [("a", "b", "c")]}, "not 3 items"),
        ({"edges": [{"head": "a"}]}, "needs head and tail"),
        ({"edges": [(1, "b")]}, "not int"),
        ({"remove_edges": [5]}, "int is no edge"),
    ],
)
def test_an_evolution_of_another_shape_is_refused_where_it_is_made(shape, message):
    with pytest.raises(GraphError, match=message):
        Evolved(**shape)


def test_the_context_asks_and_tells_through_what_the_engine_injects():
    heard = []
    ctx = Context("r", "k", 1, "id", {"b": "failed"}, is_cancelled=lambda: bool(heard), on_heartbeat=heard.append)
    assert not ctx.cancelled
    ctx.heartbeat(0.5)
    ctx.heartbeat()
    assert ctx.cancelled
    assert heard == [0.5, None]
    with pytest.raises(ValueError, match="share from 0 to 1"):
        ctx.heartbeat(50)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctx.attempt = 2


def test_a_context_made_by_hand_is_never_cancelled_and_hears_nothing():
    ctx = Context("r", "k", 1)
    ctx.heartbeat(1.0)
    assert not ctx.cancelled
    assert ctx.missing_inputs == {}
