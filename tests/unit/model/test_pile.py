"""Pile: the P rules."""

import copy
import json
import pickle
from uuid import uuid4

import pytest

from graphrun.errors import FormatError, ItemExistsError, ItemNotFoundError
from graphrun.model import Edge, Element, Node, Pile, Progression


class Special(Node):
    __slots__ = ()


def nodes(count=3):
    return [Node(f"n{i}") for i in range(count)]


def consistent(pile):
    return list(pile.collections) == list(pile.progression) == [item.id for item in pile] and len(pile) == len(
        list(pile)
    )


# Construction


def test_no_items_and_none_make_an_empty_false_pile_p5():
    assert not Pile()
    assert not Pile(None)
    assert len(Pile([])) == 0
    assert Pile([Node()])


def test_items_keep_the_order_in_which_they_came_p2():
    a, b, c = nodes()
    assert Pile([c, a, b]).keys() == [c.id, a.id, b.id]
    assert Pile(item for item in (c, a)).values() == [c, a]
    assert Pile({1: b, 2: a}).values() == [b, a]


def test_one_element_is_one_item_also_an_empty_pile_or_progression_p2():
    for item in (Node(), Pile(), Progression()):
        assert list(Pile(item)) == [item]
        assert len(Pile(item)) == 1


def test_serialised_items_are_rebuilt_p2():
    a, b, _ = nodes()
    pile = Pile([a.to_dict(), b])
    assert pile.values() == [a, b]
    assert pile[a] is not a
    assert Pile(a.to_dict()).values() == [a]


def test_of_items_with_one_id_the_last_wins_at_the_first_place_p2():
    a, b, _ = nodes()
    twin = copy.copy(a)
    pile = Pile([a, b, twin])
    assert pile.keys() == [a.id, b.id]
    assert pile[0] is twin


def test_an_order_may_be_ids_strings_items_a_progression_or_a_serialised_one_p2_p7():
    a, b, c = nodes()
    wanted = [c.id, a.id, b.id]
    for order in (wanted, [str(i) for i in wanted], [c, a, b], Progression(wanted), Progression(wanted).to_dict()):
        assert Pile([a, b, c], order=order).keys() == wanted


@pytest.mark.parametrize("order", [None, [], (), Progression()])
def test_an_empty_order_means_insertion_order_p2(order):
    a, b, c = nodes()
    assert Pile([a, b, c], order=order).values() == [a, b, c]


def test_an_order_with_duplicates_another_length_or_an_unknown_id_is_a_value_error_p2():
    a, b, c = nodes()
    for order in ([a, a, b], [a, b], [a, b, Node()], [a, b, c, c]):
        with pytest.raises(ValueError, match="the order names"):
            Pile([a, b, c], order=order)


# Admission


@pytest.mark.parametrize("junk", ["text", 5, [5], object()])
def test_only_nominal_elements_are_admitted_p8(junk):
    with pytest.raises((TypeError, ItemNotFoundError)):
        Pile(junk)


def test_what_merely_has_an_id_is_neither_admitted_nor_found_p8():
    class Lookalike:
        id = uuid4()

    with pytest.raises(TypeError, match="is no Element"):
        Pile([Lookalike()])
    assert Lookalike() not in Pile([Node()])
    with pytest.raises(ItemNotFoundError):
        Pile([Element(id=Lookalike.id)])[Lookalike()]


@pytest.mark.parametrize("item_type", [Node, [Node], "Node", ["Node"], (Node,), {Node}])
def test_item_type_takes_classes_and_registered_names_p9(item_type):
    pile = Pile(item_type=item_type)
    pile.include([Node(), Special()])
    with pytest.raises(TypeError, match="this Pile holds Node"):
        pile.include(Element())


def test_item_type_takes_unions_p9():
    pile = Pile(item_type=Node | Edge)
    assert pile.item_type == (Node, Edge)
    pile.include([Node(), Edge(uuid4(), uuid4())])
    with pytest.raises(TypeError, match="Node or Edge"):
        pile.include(Progression())


def test_item_type_refuses_duplicates_unknown_names_and_other_classes_p9():
    for duplicated in ([Node, Node], [Node | Edge, Node], [Node, "Node"]):
        with pytest.raises(ValueError, match="twice"):
            Pile(item_type=duplicated)
    with pytest.raises(ValueError, match=r"unknown type 'os\.system'"):
        Pile(item_type="os.system")
    with pytest.raises(TypeError, match="int is no Element class"):
        Pile(item_type=int)


def test_strict_means_exactly_that_class_and_is_frozen_p3_p9():
    pile = Pile(item_type=Node, strict_type=True)
    with pytest.raises(TypeError, match="exactly Node"):
        pile.include(Special())
    with pytest.raises(AttributeError):
        pile.strict_type = False


def test_a_refused_item_leaves_all_others_out_too_p8():
    pile = Pile(item_type=Node)
    with pytest.raises(TypeError):
        pile.include([Node(), Element()])
    assert len(pile) == 0


# Reading


def test_references_select_by_identity_p4_p7():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    assert pile[b.id] is pile[b] is pile[str(b.id)] is b
    assert pile[[c, str(a.id)]] == [c, a]
    assert pile[[b.id]] is pile[[b, b]] is b


def test_ints_select_by_position_p4():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    assert (pile[0], pile[2], pile[-1], pile[-3]) == (a, c, c, a)


def test_a_slice_gives_a_list_even_of_one_p4():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    assert pile[1:] == [b, c]
    assert pile[:1] == [a]
    assert pile[::-1] == [c, b, a]


@pytest.mark.parametrize("key", [3, -4, slice(3, None), slice(2, 1), [], uuid4(), "nonsense", Element(), None, 2.5])
def test_what_selects_nothing_is_item_not_found_p4_p5(key):
    pile = Pile(nodes())
    with pytest.raises(ItemNotFoundError):
        pile[key]
    with pytest.raises(ItemNotFoundError):
        pile.get(key)
    with pytest.raises(ItemNotFoundError):
        pile.pop(key)
    assert pile.get(key, "fallback") == pile.pop(key, "fallback") == "fallback"
    assert pile.get(key, None) is None
    assert len(pile) == 3


def test_a_class_or_a_predicate_gives_a_filtered_pile_p4():
    a, b, edge = Node("a"), Special("b"), Edge(uuid4(), uuid4())
    pile = Pile([a, edge, b], item_type=Node | Edge)
    assert list(pile[Node]) == [a, b]
    assert list(pile[Special | Edge]) == [edge, b]
    assert list(pile[lambda item: item is not a]) == [edge, b]
    assert isinstance(pile[Node], Pile)
    assert pile[Node].item_type == (Node, Edge)
    with pytest.raises(TypeError, match="int is no Element class"):
        pile[int]


def test_keys_values_and_items_are_lists_in_order_p5():
    a, b, c = nodes()
    pile = Pile([a, b, c], order=[c, b, a])
    assert pile.keys() == [c.id, b.id, a.id]
    assert pile.values() == [c, b, a]
    assert pile.items() == [(c.id, c), (b.id, b), (a.id, a)]


def test_iteration_works_on_a_snapshot_of_order_and_items_p5():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    seen = []
    for item in pile:
        seen.append(item)
        pile.clear()
    assert seen == [a, b, c]


def test_positions_follow_appends_and_removals_p1():
    pile = Pile(nodes(5))
    kept = pile.values()
    assert pile[4] is kept[4]
    late = Node()
    pile.append(late)
    assert pile[5] is pile[-1] is late
    pile.exclude(kept[0])
    assert pile[0] is kept[1]
    assert consistent(pile)


def test_membership_asks_for_every_reference_p7():
    a, b, c = nodes()
    pile = Pile([a, b])
    assert a in pile
    assert str(b.id) in pile
    assert [a.id, b] in pile
    assert [a, c] not in pile
    assert "nonsense" not in pile


# Writing


@pytest.mark.parametrize("method", ["include", "update", "append"])
def test_include_update_and_append_replace_without_moving_and_add_at_the_end_p6(method):
    a, b, c = nodes()
    pile = Pile([a, b])
    twin = copy.copy(a)
    getattr(pile, method)([c, twin])
    assert pile.keys() == [a.id, b.id, c.id]
    assert pile[0] is twin
    assert consistent(pile)


def test_including_the_id_of_a_resident_item_changes_nothing_and_of_another_raises_p7():
    a, b, _ = nodes()
    pile = Pile([a])
    pile.include(str(a.id))
    assert list(pile) == [a]
    with pytest.raises(ItemNotFoundError):
        pile.include([b.id])


def test_insert_puts_new_items_before_a_position_p6():
    a, b, c = nodes()
    pile = Pile([a])
    pile.insert(0, [b, c])
    assert pile.values() == [b, c, a]


def test_insert_refuses_a_resident_id_and_changes_nothing_p6():
    a, b, c = nodes()
    pile = Pile([a, b])
    with pytest.raises(ItemExistsError):
        pile.insert(0, [c, a])
    assert pile.values() == [a, b]


def test_assignment_to_a_position_evicts_what_stood_there_p6():
    a, b, c = nodes()
    new, other = Node(), Node()
    pile = Pile([a, b, c])
    pile[1] = new
    assert pile.values() == [a, new, c]
    pile[-1] = other
    assert pile.values() == [a, new, other]
    assert b not in pile
    assert consistent(pile)


def test_assignment_to_a_slice_evicts_its_items_p6():
    a, b, c = nodes()
    new = nodes(3)
    pile = Pile([a, b, c])
    pile[:2] = new
    assert pile.values() == [*new, c]
    with pytest.raises(ValueError, match="extended slice"):
        pile[::2] = [Node()]
    assert consistent(pile)


def test_assignment_takes_only_new_ids_and_one_item_a_position_p6():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    for key, value in ((0, a), (0, c), (slice(0, 1), [b])):
        with pytest.raises(ItemExistsError):
            pile[key] = value
    with pytest.raises(ValueError, match="takes one item, got 2"):
        pile[0] = [Node(), Node()]
    with pytest.raises(ItemNotFoundError):
        pile[3] = Node()
    assert pile.values() == [a, b, c]


def test_assignment_by_id_needs_the_items_own_new_id_and_appends_p6_p7():
    a, b, c = nodes()
    pile = Pile([a])
    pile[b.id] = b
    pile[str(c.id)] = c
    assert pile.values() == [a, b, c]
    with pytest.raises(ValueError, match="must be the id"):
        pile[uuid4()] = Node()
    with pytest.raises(ItemExistsError):
        pile[a.id] = a


def test_exclude_is_silent_on_what_is_missing_p6_p7():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    pile.exclude([str(a.id), Node(), c])
    assert pile.values() == [b]


def test_remove_raises_on_what_is_missing_and_then_removes_nothing_p6():
    a, b, _ = nodes()
    pile = Pile([a, b])
    with pytest.raises(ItemNotFoundError):
        pile.remove([a, Node()])
    assert pile.values() == [a, b]
    pile.remove(a)
    assert pile.values() == [b]


@pytest.mark.parametrize("key", [0, slice(None)])
def test_removal_by_position_is_refused_p6(key):
    pile = Pile(nodes())
    for method in (pile.remove, pile.exclude):
        with pytest.raises(TypeError, match="by identity"):
            method(key)


def test_pop_gives_an_item_a_pile_of_a_slice_and_a_list_of_references_p6():
    a, b, c, d, e = nodes(5)
    pile = Pile([a, b, c, d, e])
    assert pile.pop(0) is a
    assert pile.pop(str(b.id)) is b
    sliced = pile.pop(slice(0, 1))
    assert isinstance(sliced, Pile)
    assert list(sliced) == [c]
    assert pile.pop([e.id]) == [e]
    assert pile.values() == [d]
    assert consistent(pile)


def test_pop_of_several_removes_nothing_when_one_is_missing_p5():
    a, b, _ = nodes()
    pile = Pile([a, b])
    with pytest.raises(ItemNotFoundError):
        pile.pop([a, Node()])
    assert pile.values() == [a, b]


def test_set_operations_go_by_id_and_keep_the_left_type_policy_p6():
    a, b, c = nodes()
    left, right = Pile([a, b], item_type=Node), Pile([c, copy.copy(b)])
    assert (left | right).values() == [a, b, c]
    assert (left & right).values() == [b]
    assert (left & right)[0] is b
    assert (left ^ right).values() == [a, c]
    assert (left | right).item_type == (Node,)
    assert left.values() == [a, b]
    with pytest.raises(TypeError, match="this Pile holds Node"):
        left | Pile([Element()])


@pytest.mark.parametrize("other", [[], set(), None, {}])
def test_set_operations_take_nothing_but_a_pile_p6(other):
    for operation in ("__or__", "__and__", "__xor__"):
        assert getattr(Pile(), operation)(other) is NotImplemented
    with pytest.raises(TypeError):
        Pile() | other


def test_reorder_changes_the_order_only_p1():
    a, b, c = nodes()
    pile = Pile([a, b, c])
    pile.reorder([c, a, b])
    assert pile.values() == [c, a, b]
    with pytest.raises(ValueError, match="the order names"):
        pile.reorder([a])
    assert pile.values() == [c, a, b]


def test_the_order_and_the_items_cannot_be_changed_from_outside_p1():
    a, b, _ = nodes()
    pile = Pile([a, b])
    pile.progression.clear()
    with pytest.raises(TypeError):
        pile.collections[a.id] = b
    assert consistent(pile)
    assert len(pile) == 2


# JSON and copies


def test_the_round_trip_keeps_items_order_types_and_strictness_p10():
    a, b, c = nodes()
    pile = Pile([a, b, c], order=[c, a, b], item_type=Node | Edge, strict_type=True, metadata={"m": 1})
    again = Pile.from_dict(json.loads(json.dumps(pile.to_dict())))
    assert again.keys() == [c.id, a.id, b.id]
    assert (again.item_type, again.strict_type) == ((Node, Edge), True)
    assert (again.id, again.created_at, again.metadata) == (pile.id, pile.created_at, {"m": 1})
    with pytest.raises(TypeError):
        again.include(Special())


def test_an_empty_pile_and_piles_in_piles_round_trip():
    inner = Pile([Node("a")])
    again = Pile.from_dict(Pile([inner, Pile()]).to_dict())
    assert [len(pile) for pile in again] == [1, 0]
    assert again[0][0].key == "a"


def test_a_malformed_item_is_named_with_its_place():
    payload = Pile([Node("a"), Node("b")], item_type=Node).to_dict()
    payload["collections"][1]["colour"] = "red"
    with pytest.raises(FormatError, match=r"\$\.collections\[1\]: unknown field 'colour'"):
        Pile.from_dict(payload)
    payload["collections"][1] = Element().to_dict()
    with pytest.raises(FormatError, match=r"\$\.collections\[1\]: .*this Pile holds Node"):
        Pile.from_dict(payload)
    with pytest.raises(FormatError, match=r"\$\.item_type\[0\]: unknown type 5"):
        Pile.from_dict(payload | {"item_type": [5]})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_change_on_their_own_and_have_their_own_lock_p12(copied):
    pile = Pile(nodes(), item_type=Node)
    again = copied(pile)
    again.include(Node())
    assert (len(pile), len(again)) == (3, 4)
    assert again._lock is not pile._lock
    with pytest.raises(TypeError):
        again.include(Element())


def test_a_view_is_live_and_has_no_way_to_write():
    a, b, _ = nodes()
    pile = Pile([a], item_type=Node)
    view = pile.view()
    pile.include(b)
    assert view.values() == [a, b]
    assert (view | Pile()).values() == view[Node].values() == [a, b]
    assert not hasattr(view, "include")
    assert Pile.from_dict(view.to_dict()).values() == [a, b]
    with pytest.raises(TypeError):
        view[0] = Node()


def test_mixed_use_by_threads_never_breaks_p1_p12(together):
    pile = Pile(nodes(20))
    fixed = nodes(20)

    def include_and_exclude():
        for _ in range(40):
            pile.include(fixed)
            pile.exclude(fixed[::2])

    def insert_and_pop():
        for _ in range(150):
            pile.insert(0, Node())
            pile.pop(0, None)

    def assign_and_read_slices():
        for _ in range(100):
            pile[0:1] = Node()
            pile.get(slice(0, 5), None)

    def read():
        for _ in range(150):
            keys = pile.keys()
            assert len(set(keys)) == len(keys)
            assert None not in list(pile)

    together(include_and_exclude, insert_and_pop, assign_and_read_slices, read)
    assert consistent(pile)
