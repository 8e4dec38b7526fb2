"""Progression: the R rules."""

import copy
import json
import pickle
from uuid import uuid4

import pytest

from graphrun.errors import FormatError, ItemExistsError, ItemNotFoundError
from graphrun.model import Element, Progression

A, B, C, D = (uuid4() for _ in range(4))


def counted(progression):
    return dict(progression._counts) == {i: list(progression).count(i) for i in set(progression)}


def test_ids_stand_in_order_with_repeats_r1_r3():
    progression = Progression([A, B, A], name="visits")
    assert list(progression) == progression.order == [A, B, A]
    assert list(reversed(progression)) == [A, B, A]
    assert (len(progression), progression.count(A), progression.index(B)) == (3, 2, 1)
    assert (progression.name, progression.unique) == ("visits", False)


def test_input_is_flattened_r4():
    item = Element()
    assert list(Progression([item, None, (str(A), [B]), {C: "value"}])) == [item.id, A, B, C]


def test_invalid_input_is_a_value_error_r4():
    for method in ("append", "extend", "remove", "__iadd__"):
        with pytest.raises(ValueError, match="is no"):
            getattr(Progression(), method)(["nonsense"])
    with pytest.raises(ValueError, match="is no"):
        Progression(5)


def test_an_empty_progression_is_false_r1():
    assert not Progression()
    assert Progression([A])


def test_include_appends_what_is_absent_and_says_whether_r2():
    progression = Progression([A])
    assert progression.include([A, B, B]) is True
    assert progression.include(B) is False
    assert progression.include([]) is True
    assert progression.include(None) is True
    assert progression.include("nonsense") is False
    assert list(progression) == [A, B]


def test_append_extend_insert_and_plus_keep_repeats_r2():
    progression = Progression([A])
    progression.append(A)
    progression.extend([B, A])
    progression.insert(1, [C, C])
    progression += B
    assert list(progression) == [A, C, C, A, B, A, B]
    assert list(progression + [A]) == [A, C, C, A, B, A, B, A]  # noqa: RUF005 - the operator is under test
    assert counted(progression)


def test_membership_asks_for_each_id_r2():
    progression = Progression([A, B])
    assert A in progression
    assert [str(A), B] in progression
    assert [A, C] not in progression
    assert [] in progression
    assert "nonsense" not in progression


def test_exclude_removes_every_occurrence_and_says_whether_r2():
    progression = Progression([A, B, A, C])
    assert progression.exclude([A, D]) is True
    assert progression.exclude(A) is False
    assert progression.exclude([]) is True
    assert progression.exclude("nonsense") is False
    assert list(progression) == [B, C]
    assert counted(progression)


def test_minus_removes_every_occurrence_r2():
    progression = Progression([A, B, A], name="n")
    assert list(progression - A) == [B]
    assert (progression - A).name == "n"
    progression -= [A, D]
    assert list(progression) == [B]


def test_remove_raises_on_any_absent_id_and_then_removes_nothing_r2_r4():
    progression = Progression([A, B, A])
    with pytest.raises(ItemNotFoundError):
        progression.remove([A, C])
    assert list(progression) == [A, B, A]
    progression.remove([])
    progression.remove(A)
    assert list(progression) == [B]


def test_pop_and_popleft_take_one_occurrence_r2():
    progression = Progression([A, B, A, C])
    assert progression.pop() == C
    assert progression.popleft() == A
    assert A in progression
    assert progression.pop(1) == A
    assert A not in progression
    assert list(progression) == [B]
    progression.pop()
    for method in (progression.pop, progression.popleft):
        with pytest.raises(ItemNotFoundError):
            method()


def test_an_int_gives_an_id_and_a_slice_a_progression_r2():
    progression = Progression([A, B, C], name="n", unique=True)
    assert (progression[0], progression[-1]) == (A, C)
    assert isinstance(progression[1:], Progression)
    assert list(progression[1:]) == [B, C]
    assert progression[1:].unique


@pytest.mark.parametrize("key", [3, -4, slice(3, 9), slice(1, 1)])
def test_out_of_range_and_empty_slices_are_item_not_found_r2(key):
    with pytest.raises(ItemNotFoundError):
        Progression([A, B, C])[key]


def test_equality_is_order_and_name_and_nothing_else_r2_r3():
    assert Progression([A], name="n") == Progression([A], name="n", unique=True)
    assert Progression([A]) != Progression([A], name="n")
    assert Progression([A, B]) != Progression([B, A])
    assert Progression() != []
    with pytest.raises(TypeError, match="unhashable"):
        hash(Progression())


def test_move_swap_and_reverse_keep_multiplicity_r2():
    progression = Progression([A, B, A, C])
    progression.move(3, 0)
    assert list(progression) == [C, A, B, A]
    progression.swap(0, -1)
    assert list(progression) == [A, A, B, C]
    progression.reverse()
    assert list(progression) == [C, B, A, A]
    assert counted(progression)
    with pytest.raises(ItemNotFoundError):
        progression.swap(0, 4)
    with pytest.raises(ItemNotFoundError):
        progression.move(4, 0)
    assert list(progression) == [C, B, A, A]


def test_assignment_to_an_int_takes_exactly_one_id_r2():
    progression = Progression([A, B])
    progression[1] = str(C)
    assert list(progression) == [A, C]
    with pytest.raises(ValueError, match="takes one id, got 2"):
        progression[0] = [B, C]
    with pytest.raises(IndexError):
        progression[0] = []
    assert list(progression) == [A, C]
    assert counted(progression)


def test_assignment_past_the_end_inserts_r4():
    progression = Progression([A])
    progression[9] = B
    progression[-9] = C
    assert list(progression) == [C, A, B]


def test_assignment_to_a_slice_takes_any_number_r2():
    progression = Progression([A, B, C])
    progression[:2] = [D, D, A]
    assert list(progression) == [D, D, A, C]
    progression[:] = None
    assert list(progression) == []
    assert counted(progression)


def test_a_unique_progression_refuses_repeats_and_changes_nothing_r3():
    progression = Progression([A, B], unique=True)
    for attempt in (
        lambda: progression.append(A),
        lambda: progression.extend([C, C]),
        lambda: progression.insert(0, B),
        lambda: progression.__iadd__([C, A]),
        lambda: progression.__setitem__(0, B),
        lambda: progression.__setitem__(slice(0, 1), [C, C]),
        lambda: progression + A,
    ):
        with pytest.raises(ItemExistsError):
            attempt()
    assert list(progression) == [A, B]
    assert progression.include([A, C]) is True
    assert list(progression) == [A, B, C]
    with pytest.raises(ValueError, match="twice"):
        Progression([A, A], unique=True)


def test_a_unique_progression_may_assign_an_id_to_its_own_place_r3():
    progression = Progression([A, B], unique=True)
    progression[0] = A
    progression[:] = [B, A]
    assert list(progression) == [B, A]


def test_the_name_cannot_be_assigned():
    with pytest.raises(AttributeError):
        Progression(name="a").name = "b"


def test_the_round_trip_keeps_everything():
    progression = Progression([A, B, A], name="visits", metadata={"m": 1})
    again = Progression.from_dict(json.loads(json.dumps(progression.to_dict())))
    assert again == progression
    assert (again.id, again.created_at, again.metadata) == (progression.id, progression.created_at, {"m": 1})
    unique = Progression([A], unique=True)
    assert Progression.from_dict(unique.to_dict()).unique


def test_a_malformed_order_is_named_with_its_place():
    payload = Progression([A]).to_dict()
    with pytest.raises(FormatError, match=r"\$\.order: 'nonsense'"):
        Progression.from_dict(payload | {"order": ["nonsense"]})
    with pytest.raises(FormatError, match=r"\$\.order: .*twice"):
        Progression.from_dict(payload | {"order": [str(A), str(A)], "unique": True})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_change_on_their_own(copied):
    progression = Progression([A, A], name="n")
    again = copied(progression)
    assert again == progression
    again.popleft()
    again.append(B)
    assert list(progression) == [A, A]
    assert counted(again)


def test_removing_many_ids_is_one_pass_not_one_for_each():
    ids = [uuid4() for _ in range(20_000)]
    progression = Progression(ids)
    progression.remove(ids[::2])
    assert list(progression) == ids[1::2]


def test_threads_that_share_a_progression_leave_ids_and_counts_agreeing(together):
    progression = Progression()

    def work():
        for _ in range(200):
            progression.append([A, B])
            progression.popleft()
            progression.exclude(C)

    together(*[work] * 4)
    assert len(progression) == 800
    assert counted(progression)
