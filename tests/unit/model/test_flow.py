"""Flow: the F rules."""

import copy
import json
import pickle
from uuid import uuid4

import pytest

from graphrun.errors import FormatError, ItemExistsError, ItemNotFoundError
from graphrun.model import Element, Flow, Node, Pile, Progression


def items(count=3):
    return [Node(f"n{i}") for i in range(count)]


def content(flow):
    return flow.items.values(), [(view.name, list(view)) for view in flow.progressions]


def test_an_empty_flow_is_valid_f1():
    assert content(Flow()) == ([], [])


def test_a_view_that_names_an_absent_item_is_refused_at_construction_f1():
    with pytest.raises(ItemNotFoundError, match="not among the items"):
        Flow(items(), [Progression([uuid4()])])


def test_a_view_that_names_an_absent_item_is_refused_in_a_payload_f1():
    a, b, _ = items()
    payload = Flow([a, b], [Progression([a, b], name="x")]).to_dict()
    del payload["items"]["collections"][1]
    with pytest.raises(ItemNotFoundError, match="not among the items"):
        Flow.from_dict(payload)


def test_duplicate_names_and_ids_are_refused_at_construction_f3():
    with pytest.raises(ItemExistsError, match="named 'x'"):
        Flow([], [Progression(name="x"), Progression(name="x")])
    twice = Progression()
    with pytest.raises(ItemExistsError):
        Flow([], [twice, twice])


def test_add_progression_checks_before_it_changes_anything_f2():
    a, *_ = items()
    flow = Flow([a], [Progression([a], name="x")])
    before = content(flow)
    for refused, error in (
        (Progression(name="x"), ItemExistsError),
        (Progression([uuid4()], name="y"), ItemNotFoundError),
        (flow.get_progression("x"), ItemExistsError),
        ("x", TypeError),
    ):
        with pytest.raises(error):
            flow.add_progression(refused)
    assert content(flow) == before
    flow.add_progression(Progression([a], name="y"))


def test_a_progression_is_found_by_name_id_or_instance_f4():
    view = Progression(name="x")
    flow = Flow([], [view])
    for key in ("x", view.id, str(view.id), view):
        assert flow.get_progression(key) is view
    with pytest.raises(ItemNotFoundError, match=r"'y' in .*; known are x"):
        flow.get_progression("y")
    with pytest.raises(ItemNotFoundError):
        flow.get_progression(Progression())


def test_a_name_wins_over_a_uuid_parse_f4():
    first = Progression()
    second = Progression(name=str(first.id))
    flow = Flow([], [first, second])
    assert flow.get_progression(str(first.id)) is second
    assert flow.get_progression(first.id) is first


def test_a_removed_progression_frees_its_name_and_leaves_the_items_f4():
    a, *_ = items()
    view = Progression([a], name="x")
    flow = Flow([a], [view])
    assert flow.remove_progression("x") is view
    assert content(flow) == ([a], [])
    flow.add_progression(Progression(name="x"))
    with pytest.raises(ItemNotFoundError):
        flow.remove_progression(view)


def test_add_item_appends_to_the_views_named():
    a, b, _ = items()
    flow = Flow([a], [Progression(name="x"), Progression(name="y")])
    flow.add_item(b, "x")
    flow.add_item(a, ["x", flow.get_progression("y").id])
    assert content(flow) == ([a, b], [("x", [b.id, a.id]), ("y", [a.id])])


def test_add_item_with_a_progression_of_no_flow_touches_neither_f5():
    a, *_ = items()
    flow = Flow([], [Progression(name="x")])
    stranger = Progression()
    with pytest.raises(ItemNotFoundError):
        flow.add_item(a, ["x", stranger])
    assert content(flow) == ([], [("x", [])])
    assert not stranger


def test_add_item_with_an_unknown_name_does_not_insert_the_item_f5():
    a, *_ = items()
    flow = Flow()
    with pytest.raises(ItemNotFoundError):
        flow.add_item(a, "unknown")
    assert a not in flow.items


def test_add_item_that_the_pile_refuses_leaves_the_views_alone():
    flow = Flow(Pile(item_type=Node), [Progression(name="x")])
    with pytest.raises(TypeError):
        flow.add_item(Element(), "x")
    assert content(flow) == ([], [("x", [])])


def test_a_repeated_item_repeats_in_a_view_unless_it_is_unique_f6():
    a, *_ = items()
    flow = Flow([], [Progression(name="visits"), Progression(name="wave", unique=True)])
    for _ in range(2):
        flow.add_item(a, ["visits", "wave"])
    assert content(flow) == ([a], [("visits", [a.id, a.id]), ("wave", [a.id])])


def test_remove_item_strips_every_occurrence_from_every_view_f7():
    a, b, _ = items()
    flow = Flow([a, b], [Progression([a, b, a], name="x"), Progression([a], name="y")])
    assert flow.remove_item(str(a.id)) is a
    assert content(flow) == ([b], [("x", [b.id]), ("y", [])])
    with pytest.raises(ItemNotFoundError):
        flow.remove_item(a)


def test_clear_clears_items_views_and_names_f7():
    a, *_ = items()
    flow = Flow([a], [Progression([a], name="x")])
    flow.clear()
    assert content(flow) == ([], [])
    flow.add_progression(Progression(name="x"))


def test_the_piles_cannot_be_written_behind_the_flows_back_f1():
    a, *_ = items()
    mine = Pile([a])
    flow = Flow(mine, [Progression([a], name="x")])
    mine.clear()
    assert flow.items.values() == [a]
    for view in (flow.items, flow.progressions):
        assert not hasattr(view, "clear")


@pytest.mark.parametrize("given", ["list", "pile", "payload", "dicts"])
def test_every_construction_path_round_trips_and_leaves_its_payload_alone_f8(given):
    a, b, _ = items()
    pile = Pile([a, b], item_type=Node)
    source = {
        "list": [a, b],
        "pile": pile,
        "payload": pile.to_dict(),
        "dicts": [a.to_dict(), b.to_dict()],
    }[given]
    before = copy.deepcopy(source)
    flow = Flow(source, [Progression([b, a, b], name="x"), Progression([a], unique=True)], name="f")
    payload = json.loads(json.dumps(flow.to_dict()))
    kept = copy.deepcopy(payload)
    again = Flow.from_dict(payload)
    assert content(again) == content(flow)
    assert again.to_dict() == payload == kept
    if given in ("payload", "dicts"):
        assert source == before
    if given in ("pile", "payload"):
        assert again.items.item_type == (Node,)
        assert again.items.id == pile.id


def test_a_malformed_part_is_named_with_its_place():
    payload = Flow(items(), [Progression(name="x")]).to_dict()
    payload["progressions"][0]["colour"] = "red"
    with pytest.raises(FormatError, match=r"\$\.progressions\[0\]: unknown field 'colour'"):
        Flow.from_dict(payload)
    payload["items"]["collections"][2]["colour"] = "red"
    with pytest.raises(FormatError, match=r"\$\.items\.collections\[2\]: unknown field 'colour'"):
        Flow.from_dict(payload)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_change_on_their_own(copied):
    a, b, _ = items()
    flow = Flow([a, b], [Progression([a], name="x")])
    again = copied(flow)
    again.add_item(b, "x")
    again.remove_progression("x")
    assert content(flow) == ([a, b], [("x", [a.id])])
