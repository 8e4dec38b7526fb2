"""Node: what a vertex says."""

import json

import pytest

from graphrun.model import Node


def test_the_key_is_the_id_as_a_string_unless_given():
    node = Node()
    assert node.key == str(node.id)
    assert Node("a").key == Node(key="a").key == "a"


@pytest.mark.parametrize("key", ["", 5, b"a"])
def test_a_key_that_is_no_text_is_a_value_error(key):
    with pytest.raises(ValueError, match="node key"):
        Node(key)


def test_the_key_cannot_be_assigned():
    with pytest.raises(AttributeError):
        Node("a").key = "b"


def test_params_and_options_are_copied_and_empty_by_default():
    mine = {"x": 1}
    node = Node("a", params=mine, options=mine)
    node.params["y"] = node.options["y"] = 2
    assert mine == {"x": 1}
    assert (Node().params, Node().options, Node().task) == ({}, {}, None)


def test_the_round_trip_keeps_everything():
    node = Node(
        "a", task="pkg.fetch", params={"url": "file:a", "n": [1, None]}, options={"owner": "me"}, metadata={"m": 1}
    )
    again = Node.from_dict(json.loads(json.dumps(node.to_dict())))
    assert again.to_dict() == node.to_dict()
    assert (again.key, again.task, again.params, again.options) == ("a", "pkg.fetch", node.params, {"owner": "me"})


def test_a_key_that_was_derived_stays_the_same_after_a_round_trip():
    node = Node()
    assert Node.from_dict(node.to_dict()).key == node.key
