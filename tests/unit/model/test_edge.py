"""Edge: G2 to G7 and G29."""

import asyncio
import copy
import json
import pickle

import pytest

from graphrun.errors import EncodingError, ExpressionError, FormatError, RelationError
from graphrun.model import Condition, Edge, EdgeCondition, ExpressionCondition, NamedCondition, Node


class Fixed(EdgeCondition):
    async def apply(self, *args, **kwargs):
        return self.source


class Failing(Condition):
    async def apply(self, *args, **kwargs):
        raise RuntimeError("from the condition")


class Lookalike:
    async def apply(self):
        return True


A, B = Node("a"), Node("b")


def test_ends_may_be_uuids_elements_or_uuid_strings_g2():
    for head, tail in ((A, B), (A.id, B.id), (str(A.id), str(B.id))):
        edge = Edge(head, tail)
        assert (edge.head, edge.tail) == (A.id, B.id)


def test_an_end_that_is_a_key_has_no_id_before_a_graph_resolved_it_g2():
    with pytest.raises(RelationError, match="'a' is a node key"):
        _ = Edge("a", "b").head


@pytest.mark.parametrize("end", [5, None, "", object()])
def test_an_end_that_is_no_reference_is_a_value_error_g2(end):
    with pytest.raises(ValueError, match="UUID"):
        Edge(end, B)


def test_the_ends_cannot_be_assigned_g14():
    with pytest.raises(AttributeError):
        Edge(A, B).head = B.id


def test_extra_keywords_become_properties_g3():
    edge = Edge(A, B, weight=3, id="mine", properties={"x": 1})
    assert edge.properties == {"weight": 3, "id": "mine", "properties": {"x": 1}}
    assert str(edge.id) != "mine"


def test_update_property_overwrites_one_g3():
    edge = Edge(A, B, weight=3, colour="red")
    edge.update_property("weight", 4)
    assert edge.properties == {"weight": 4, "colour": "red"}
    with pytest.raises(TypeError):
        edge.properties["weight"] = 5


def test_the_condition_lives_in_the_properties_g3():
    condition = Fixed(True)
    assert Edge(A, B, condition).properties["condition"] is condition


@pytest.mark.parametrize("junk", [Lookalike(), "result > 3", True, 0])
def test_what_is_no_condition_is_refused_everywhere_g4(junk):
    with pytest.raises(ValueError, match="graphrun Condition"):
        Edge(A, B, condition=junk)
    edge = Edge(A, B)
    with pytest.raises(ValueError, match="graphrun Condition"):
        edge.condition = junk
    with pytest.raises(ValueError, match="graphrun Condition"):
        edge.update_property("condition", junk)
    assert edge.condition is None


def test_a_condition_can_be_set_and_unset_g4():
    edge = Edge(A, B)
    edge.condition = Fixed(False)
    assert edge.condition.source is False
    edge.condition = None
    assert edge.condition is None
    assert edge.properties == {}


def test_an_edge_condition_has_a_source_and_takes_extra_fields_g4():
    condition = Fixed("x", weight=3)
    assert (condition.source, condition.weight) == ("x", 3)


def test_update_condition_source_changes_it_where_a_condition_is_set_g4():
    edge = Edge(A, B, Fixed(True))
    edge.update_condition_source(False)
    assert edge.condition.source is False
    bare = Edge(A, B)
    bare.update_condition_source("x")
    assert bare.condition is None
    with pytest.raises(TypeError, match="NamedCondition has no source"):
        Edge(A, B, NamedCondition("n")).update_condition_source("x")


def test_an_unreadable_new_source_leaves_the_old_one_g4():
    edge = Edge(A, B, ExpressionCondition("result > 3"))
    with pytest.raises(ExpressionError):
        edge.update_condition_source("result >")
    assert edge.condition.source == "result > 3"


@pytest.mark.parametrize(
    ("given", "kept"), [("x", ["x"]), (["x", "y"], ["x", "y"]), ([], []), (None, None), ("", [""])]
)
def test_one_label_rule_for_constructor_and_setter_g5(given, kept):
    edge = Edge(A, B)
    edge.label = given
    assert edge.label == Edge(A, B, label=given).label == kept
    assert ("label" in edge.properties) == (kept is not None)


@pytest.mark.parametrize("junk", [5, ["x", 5], ("x",), {"x"}, [None], False])
def test_any_other_label_is_a_value_error_g5(junk):
    with pytest.raises(ValueError, match="label"):
        Edge(A, B, label=junk)
    with pytest.raises(ValueError, match="label"):
        Edge(A, B).label = junk


def test_a_label_is_copied_in_and_out_g5():
    mine = ["x"]
    edge = Edge(A, B, label=mine)
    mine.append("y")
    edge.label.append("z")
    assert edge.label == ["x"]


def test_check_condition_is_true_without_one_g6():
    assert asyncio.run(Edge(A, B).check_condition()) is True


def test_check_condition_awaits_the_condition_with_its_arguments_g6():
    edge = Edge(A, B, ExpressionCondition("result > 3"))
    assert asyncio.run(edge.check_condition({"result": 4})) is True
    assert asyncio.run(edge.check_condition(result=3)) is False


def test_what_a_condition_raises_propagates_g6():
    with pytest.raises(RuntimeError, match="from the condition"):
        asyncio.run(Edge(A, B, Failing()).check_condition())


def test_each_edge_has_an_id_of_its_own_g7():
    assert Edge(A, B) != Edge(A, B)


def test_the_round_trip_keeps_id_moment_metadata_and_flat_properties_g29():
    edge = Edge(A, B, ExpressionCondition("result > 3"), ["x"], weight=[1, {"y": None}])
    edge.metadata["m"] = 1
    again = Edge.from_dict(json.loads(json.dumps(edge.to_dict())))
    assert (again.id, again.created_at, again.metadata) == (edge.id, edge.created_at, {"m": 1})
    assert (again.head, again.tail) == (A.id, B.id)
    assert again.properties == edge.properties
    assert list(again.properties) == list(edge.properties)


def test_a_property_that_has_the_name_of_a_parameter_survives_g29():
    edge = Edge(A, B, label=[])
    for name in ("head", "id", "properties", "metadata"):
        edge.update_property(name, "mine")
    assert Edge.from_dict(edge.to_dict()).properties == edge.properties


def test_a_named_condition_is_serialised_by_name_g4():
    again = Edge.from_dict(Edge(A, B, NamedCondition("big", {"big": bool})).to_dict())
    assert again.condition == NamedCondition("big")


def test_a_condition_that_is_code_cannot_be_serialised_g4():
    with pytest.raises(EncodingError, match=r"Fixed at path \$\.properties\.condition: only ExpressionCondition"):
        Edge(A, B, Fixed(True)).to_dict()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"weight": 3}, FormatError, r"\$: unknown field 'weight'"),
        ({"head": "a"}, FormatError, r"\$\.head: 'a' is not a UUID"),
        ({"properties": {"label": 5}}, FormatError, r"\$\.properties\.label: .*label"),
        ({"properties": {"condition": "x"}}, FormatError, r"\$\.properties\.condition: expected an object"),
        ({"properties": {"condition": {"type": "Fixed"}}}, FormatError, r"condition\.type: unknown type 'Fixed'"),
        (
            {"properties": {"condition": {"type": "NamedCondition", "name": "n", "x": 1}}},
            FormatError,
            r"\$\.properties\.condition: unknown field 'x'",
        ),
        (
            {"properties": {"condition": {"type": "ExpressionCondition", "source": "1 +"}}},
            ExpressionError,
            r"\$\.properties\.condition\.source: column 4",
        ),
    ],
)
def test_a_malformed_payload_is_refused_with_its_place_g29(change, error, message):
    with pytest.raises(error, match=message):
        Edge.from_dict(Edge(A, B).to_dict() | change)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_have_properties_of_their_own(copied):
    edge = Edge(A, B, ExpressionCondition("result > 3"), weight=1)
    again = copied(edge)
    again.update_property("weight", 2)
    assert edge.properties["weight"] == 1
    assert again.condition == edge.condition
    assert again.head == A.id
