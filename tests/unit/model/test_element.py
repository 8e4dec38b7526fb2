"""Elements: identity, the common JSON form, trusted types, copies."""

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from uuid import UUID, uuid4

import pytest

from graphrun.errors import EncodingError, FormatError
from graphrun.model import Element, Node, Pile
from graphrun.model.element import ids_of


class Step(Node, type_name="test.Step"):
    __slots__ = ()


class Colour(StrEnum):
    RED = "red"


def test_a_new_element_has_a_random_version_4_id_and_an_aware_utc_moment():
    before = datetime.now(UTC)
    element = Element()
    assert element.id.version == 4
    assert before <= element.created_at <= datetime.now(UTC)
    assert element.created_at.tzinfo is UTC


def test_a_given_id_may_be_a_uuid_or_its_string():
    wanted = uuid4()
    assert Element(id=wanted).id == Element(id=str(wanted)).id == wanted


def test_a_moment_of_another_zone_is_kept_as_utc_and_a_naive_one_is_refused():
    moment = datetime(2024, 5, 1, 12, 0, 0, 123457, tzinfo=timezone(timedelta(hours=2)))
    assert Element(created_at=moment).created_at == moment
    with pytest.raises(ValueError, match="time zone"):
        Element(created_at=datetime(2024, 5, 1))  # noqa: DTZ001 - the naive moment is the point


def test_elements_are_equal_by_id_whatever_else_they_hold_and_always_true():
    one = Node("a")
    twin = Element(id=one.id)
    assert one == twin
    assert hash(one) == hash(twin) == hash(one.id)
    assert one != Node("a")
    assert one
    assert one != one.id


def test_the_id_cannot_be_assigned():
    with pytest.raises(AttributeError):
        Element().id = uuid4()


def test_given_metadata_is_copied():
    mine = {"a": 1}
    element = Element(metadata=mine)
    element.metadata["b"] = 2
    assert mine == {"a": 1}


def test_json_text_brings_back_id_moment_and_metadata():
    element = Element(metadata={"deep": [{"x": 1.5, "y": None, "z": True}]})
    again = Element.from_dict(json.loads(json.dumps(element.to_dict())))
    assert (again.id, again.created_at, again.metadata) == (element.id, element.created_at, element.metadata)


def test_every_microsecond_survives_the_round_trip():
    for microsecond in (0, 1, 123_457, 499_999, 999_999):
        moment = datetime(2031, 12, 31, 23, 59, 59, microsecond, tzinfo=UTC)
        assert Element.from_dict(Element(created_at=moment).to_dict()).created_at == moment


def test_to_dict_shares_nothing_with_the_element():
    element = Element(metadata={"list": [1]})
    element.to_dict()["metadata"]["list"].append(2)
    assert element.metadata == {"list": [1]}


def test_from_dict_does_not_change_or_share_its_payload():
    payload = Node("a", params={"list": [1]}).to_dict()
    before = copy.deepcopy(payload)
    node = Node.from_dict(payload)
    node.params["list"].append(2)
    assert payload == before


def test_a_payload_names_its_class_which_need_not_be_the_one_asked():
    assert type(Element.from_dict(Step("a").to_dict())) is Step
    assert type(Node.from_dict(Step("a").to_dict())) is Step


def test_a_class_with_the_name_of_its_parent_is_registered_with_its_module():
    class Step(globals()["Step"]):
        __slots__ = ()

    assert Step("a").to_dict()["type"].startswith(__name__)
    assert type(Element.from_dict(Step("a").to_dict())) is Step


def test_two_classes_cannot_claim_one_type_name():
    with pytest.raises(TypeError, match=r"'Node' belongs to graphrun\.model\.node\.Node.*type_name="):

        class Other(Element, type_name="Node"):
            pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "os.system"}, r"\$\.type: unknown type 'os\.system'"),
        ({"type": "Edge"}, r"\$\.type: 'Edge' is no Node"),
        ({"colour": 1}, r"\$: unknown field 'colour'"),
        ({"id": "nonsense"}, r"\$\.id: 'nonsense' is not a UUID"),
        ({"id": 5}, r"\$\.id: expected str, got int"),
        ({"created_at": "2024-01-01T00:00:00"}, r"\$\.created_at: .*time zone"),
        ({"created_at": "soon"}, r"\$\.created_at: 'soon'"),
        ({"metadata": [1]}, r"\$\.metadata: expected an object, got list"),
        ({"key": ""}, r"\$\.key: is empty"),
    ],
)
def test_a_malformed_payload_is_refused_with_name_and_place(change, message):
    with pytest.raises(FormatError, match=message):
        Node.from_dict(Node("a").to_dict() | change)


@pytest.mark.parametrize("field", ["type", "id", "created_at", "key"])
def test_a_missing_field_is_named(field):
    payload = Node("a").to_dict()
    del payload[field]
    with pytest.raises(FormatError, match=rf"\$\.{field}: missing"):
        Node.from_dict(payload)


def test_a_payload_that_is_no_object_is_refused():
    with pytest.raises(FormatError, match=r"\$: expected an object, got list"):
        Element.from_dict([])


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"when": datetime.now(UTC)}, r"\$\.metadata\.when"),
        ({"rows": [1, (2, 3)]}, r"\$\.metadata\.rows\[1\]"),
        ({"a": {1: 2}}, r"\$\.metadata\.a: .*key 1"),
        ({"a": float("nan")}, r"\$\.metadata\.a: nan"),
        ({"a": {1}}, r"type set"),
    ],
)
def test_what_json_would_change_is_refused_with_type_and_place(value, path):
    with pytest.raises(EncodingError, match=path):
        Element(metadata=value).to_dict()


def test_too_deep_values_are_refused_instead_of_exhausting_the_stack():
    deep: list = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(EncodingError, match="deeper than 100"):
        Element(metadata={"deep": deep}).to_dict()


def test_a_str_enum_becomes_plain_text():
    stored = Element(metadata={"colour": Colour.RED}).to_dict()["metadata"]["colour"]
    assert stored == "red"
    assert type(stored) is str


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_keep_identity_and_have_containers_of_their_own(copied):
    node = Node("a", task="t", params={"x": 1}, options={"o": 2}, metadata={"m": 3})
    again = copied(node)
    assert (again.id, again.created_at, again.key, again.task) == (node.id, node.created_at, "a", "t")
    again.params["x"] = 9
    assert (node.params, again.options, again.metadata) == ({"x": 1}, {"o": 2}, {"m": 3})


def test_a_subclass_with_attributes_of_its_own_is_pickled_with_them():
    shelf = Shelf()
    shelf.colour = "red"
    again = pickle.loads(pickle.dumps(shelf))
    assert again.colour == "red"
    assert again == shelf
    again.include(Element())
    assert len(shelf) == 0


class Shelf(Pile):
    pass


def test_references_are_flattened_in_order_with_repeats_r4():
    a, b = Element(), Element()
    assert ids_of([a, None, (str(b.id), [a.id]), {b.id: 1}]) == [a.id, b.id, a.id, b.id]
    assert ids_of(None) == []


@pytest.mark.parametrize("junk", ["nonsense", 5, [UUID(int=1), 2.5], object()])
def test_what_is_no_reference_is_a_value_error_r4(junk):
    with pytest.raises(ValueError, match="is no"):
        ids_of(junk)


def test_only_a_nominal_element_is_a_reference_p8():
    class Lookalike:
        id = uuid4()

    with pytest.raises(ValueError, match="is no reference"):
        ids_of(Lookalike())
