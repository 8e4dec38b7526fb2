"""The document of a graph: read and written without loss, every fault by place, hashed by meaning (Z8, Z9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrun.errors import FormatError
from graphrun.model.parameters import MAX_DEPTH, path_step, path_steps
from graphrun.model.spec import (
    Backoff,
    EdgeSpec,
    GraphSpec,
    NodeSpec,
    Policy,
    command_of,
    node_from_document,
    policy_from,
    references,
)

AB = [{"key": "a", "task": "t"}, {"key": "b", "task": "t"}]
READS = [AB[0], {"key": "b", "task": "t", "params": {"x": {"$node": "a"}}}]


def _read(nodes: list[Any], edges: list[Any] | None = None, **more: Any) -> GraphSpec:
    return GraphSpec.from_document({"nodes": nodes, "edges": edges or [], **more})


def _refusal(nodes: list[Any], edges: list[Any] | None = None, **more: Any) -> str:
    with pytest.raises(FormatError) as refused:
        _read(nodes, edges, **more)
    return str(refused.value)


# --- Z9: exact round trips

_texts = st.text(max_size=6)
_keys = st.sampled_from(["a", "A", " a", "a/b", "x#33", "名前", "rule\nds: 552", '("sum", 0)', "k" * 300])
_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(_texts.filter(lambda key: not key.startswith("$")), inner, max_size=2)
        | st.dictionaries(_texts, inner, max_size=2).map(lambda literal: {"$literal": literal})
    ),
    max_leaves=5,
)
_references = st.builds(
    lambda head, path: {"$node": head, "path": path} if path else {"$node": head},
    _keys,
    st.sampled_from(["", "items[0]", '["a b"].c', "[-1]"]),
)
_params = st.dictionaries(
    st.sampled_from("xyz"), _plain | _references | st.lists(_plain | _references, max_size=3), max_size=3
)
_policies = st.builds(
    Policy,
    max_attempts=st.integers(1, 5),
    retry_on=st.lists(st.sampled_from(["ValueError", "KeyError"]), max_size=2).map(tuple),
    backoff=st.none() | st.builds(Backoff, initial_seconds=st.floats(0, 9), jitter=st.floats(0, 1)),
    timeout_seconds=st.none() | st.floats(0.5, 9000) | st.just(3600.0),
    queue=st.none() | st.just("io"),
    priority=st.none() | st.integers(0, 9),
)
_edges = st.builds(
    EdgeSpec,
    head=_keys,
    tail=_keys,
    when=st.none() | st.sampled_from(["result > 0", "status == 'failed'"]),
    required=st.none() | st.booleans(),
    enabled=st.booleans(),
)


@st.composite
def _specs(draw: st.DrawFn) -> GraphSpec:
    nodes = [
        NodeSpec(
            key=key,
            task=draw(st.sampled_from(["t", "u.v"])),
            params=draw(_params),
            policy=draw(_policies),
            join=draw(st.sampled_from(["any", "all"])),
            resources=tuple(draw(st.lists(st.sampled_from(["disk", "gpu"]), max_size=2))),
            output=draw(st.none() | _texts),
            subgraph=tuple(draw(st.lists(_texts, max_size=2))),
        )
        for key in draw(st.lists(_keys, max_size=4))
    ]
    spec = GraphSpec.from_document(GraphSpec(name="g", nodes=tuple(nodes)).to_document())
    # An edge into a parameter amends the one that is implied, or stands beside it with another condition (X2).
    amended = [
        EdgeSpec(head=edge.head, tail=edge.tail, kind="data", parameter=edge.parameter, when=when, enabled=enabled)
        for edge in spec.edges
        for when, enabled in draw(st.lists(st.tuples(st.sampled_from([None, "result"]), st.booleans()), max_size=2))
    ]
    kept = [edge for edge in spec.edges if not any(edge.identity[:3] == other.identity[:3] for other in amended)]
    order = draw(st.lists(_edges, max_size=3))
    return GraphSpec(name="g", nodes=spec.nodes, edges=(*kept, *amended, *order))


@settings(max_examples=100, deadline=None)
@given(_specs())
def test_z9_a_document_that_is_written_and_read_is_the_same_graph(spec: GraphSpec) -> None:
    text = json.dumps(spec.to_document())
    again = GraphSpec.from_document(json.loads(text))
    assert json.dumps(again.to_document()) == text
    assert again.nodes == spec.nodes
    assert sorted(map(repr, again.edges)) == sorted(map(repr, spec.edges))
    assert again.content_hash == spec.content_hash
    assert GraphSpec.from_document(again.to_document()) == again


def test_z9_what_was_not_authored_stays_absent() -> None:
    document = {"name": "g", "nodes": READS}
    assert GraphSpec.from_document(document).to_document() == document


def test_z9_every_field_survives() -> None:
    node = {
        "key": "a",
        "task": "t",
        "params": {"x": 1},
        "policy": {
            "max_attempts": 1,
            "retry_on": ["ValueError"],
            "backoff": {"initial_seconds": 2.0, "factor": 3.0, "max_seconds": 4.0, "jitter": 0.5},
            "timeout_seconds": None,
            "soft_timeout_seconds": 5.0,
            "queue": "io",
            "priority": 9,
            "max_deliveries": 1,
            "max_evolutions": 0,
        },
        "join": "all",
        "resources": ["disk"],
        "owner": "me",
        "output": "a.csv",
        "done_when": "output",
        "verify": "v",
        "why": "because",
        "scope": "all of it",
        "subgraph": ["one"],
    }
    edge = {"head": "b", "tail": "a", "when": "result", "required": False, "enabled": False}
    document = {"name": "g", "nodes": [node, AB[1]], "edges": [edge], "settings": {"failure_policy": "fail_fast"}}
    assert GraphSpec.from_document(document).to_document() == document


def test_a_document_and_its_graph_share_nothing() -> None:
    document: dict[str, Any] = {"name": "g", "nodes": [{"key": "a", "task": "t", "params": {"x": [1]}}]}
    spec = GraphSpec.from_document(document)
    document["nodes"][0]["params"]["x"].append(2)
    spec.to_document()["nodes"][0]["params"]["x"].append(3)
    assert spec.node("a").params == {"x": [1]}


# --- Z8: the content hash


@pytest.mark.parametrize(
    "explicit",
    [
        {"join": "any"},
        {"policy": {"max_attempts": 2, "timeout_seconds": 3600, "backoff": None}},
        {"params": {}, "resources": [], "owner": None},
        {"subgraph": []},
    ],
    ids=str,
)
def test_z8_an_explicit_default_is_the_same_graph(explicit: dict[str, Any]) -> None:
    assert _read([AB[0] | explicit]).content_hash == _read([AB[0]]).content_hash


def test_z8_defaults_of_edges_settings_and_references_are_the_same_graph() -> None:
    plain = _read(READS)
    explicit = {"kind": "data", "parameter": "x", "when": None, "required": None, "enabled": True}
    settings_ = {"failure_policy": "proceed", "schedule": "waves"}
    path = [AB[0], {"key": "b", "task": "t", "params": {"x": {"$node": "a", "path": ""}}}]
    assert _read(READS, [{"head": "a", "tail": "b", **explicit}], settings=settings_) == plain
    assert _read(path) == plain


def test_z8_whole_seconds_are_the_same_policy_as_a_float_of_them() -> None:
    whole, exact = (
        GraphSpec(name="g", nodes=(NodeSpec(key="a", task="t", policy=Policy(timeout_seconds=seconds)),))
        for seconds in (60, 60.0)
    )
    assert whole.content_hash == exact.content_hash


@pytest.mark.parametrize(
    "other",
    [
        {"key": "c"},
        {"task": "u"},
        {"params": {"x": 1}},
        {"params": {"x": 1.0}},
        {"params": {"x": True}},
        {"params": {"x": "1"}},
        {"policy": {"max_attempts": 1}},
        {"policy": {"timeout_seconds": None}},
        {"policy": {"backoff": {}}},
        {"join": "all"},
        {"resources": ["disk"]},
        {"owner": "me"},
        {"output": "o"},
        {"done_when": "output"},
        {"verify": "v"},
        {"why": "w"},
        {"scope": "s"},
        {"subgraph": ["s"]},
    ],
    ids=str,
)
def test_z8_another_meaning_is_another_hash(other: dict[str, Any]) -> None:
    hashes = {_read([AB[0] | change]).content_hash for change in ({}, other, {"params": {"y": 1}})}
    assert len(hashes) == 3


def test_z8_edges_settings_name_and_order_are_part_of_the_meaning() -> None:
    edge = {"head": "a", "tail": "b"}
    graphs = [
        _read(AB),
        _read(AB[::-1]),
        _read(AB, name="other"),
        _read(AB, settings={"failure_policy": "fail_fast"}),
        _read(AB, [edge]),
        _read(AB, [edge | {"when": "result"}]),
        _read(AB, [edge | {"required": True}]),
        _read(AB, [edge | {"required": False}]),
        _read(AB, [edge | {"enabled": False}]),
        _read(AB, [edge | {"parameter": "x"}]),
        _read(AB, [{"head": "b", "tail": "a"}]),
    ]
    assert len({graph.content_hash for graph in graphs}) == len(graphs)


def test_o2_an_edge_given_twice_is_kept_to_be_named_and_has_no_meaning_of_its_own() -> None:
    edge = {"head": "a", "tail": "b"}
    once, twice = _read(AB, [edge]), _read(AB, [edge, edge])
    assert len(twice.edges) == 2
    assert twice.content_hash == once.content_hash
    assert GraphSpec.from_document(twice.to_document()) == twice


# --- edges and parameters


def test_a_reference_anywhere_in_a_parameter_implies_one_data_edge() -> None:
    params = {"x": [{"$node": "a"}, {"deep": {"$node": "a", "path": "p"}}], "y": {"$node": "a"}}
    spec = _read([AB[0], {"key": "b", "task": "t", "params": params}])
    assert [(edge.kind, edge.parameter) for edge in spec.edges] == [("data", "x"), ("data", "y")]


def test_x9_references_come_in_declared_order_and_say_whether_they_can_be_left_out() -> None:
    params = {"z": {"$node": "1"}, "a": [{"$node": "2"}, {"k": [{"$node": "3", "path": "p"}]}, {"$node": "4"}]}
    assert list(references(params)) == [
        ("z", "1", None, False),
        ("a", "2", None, True),
        ("a", "3", "p", True),
        ("a", "4", None, True),
    ]


@pytest.mark.parametrize("shape", [{"$literal": {"$node": "a"}}, {"$variant": "A", "value": {"$node": "a"}}], ids=str)
def test_nothing_inside_a_literal_or_a_tag_is_a_reference(shape: dict[str, Any]) -> None:
    assert _read([AB[0], {"key": "b", "task": "t", "params": {"x": shape}}]).edges == ()


def test_an_edge_between_the_same_ends_amends_the_implied_one() -> None:
    (edge,) = _read(READS, [{"head": "a", "tail": "b", "when": "result > 0", "required": False}]).edges
    assert (edge.kind, edge.parameter, edge.when, edge.required) == ("data", "x", "result > 0", False)


def test_an_edge_without_a_parameter_amends_those_of_all_parameters() -> None:
    nodes = [AB[0], {"key": "b", "task": "t", "params": {"x": {"$node": "a"}, "y": {"$node": "a"}}}]
    assert [edge.when for edge in _read(nodes, [{"head": "a", "tail": "b", "when": "result"}]).edges] == ["result"] * 2


def test_x2_two_conditions_between_the_same_ends_are_two_edges() -> None:
    entries = [{"head": "a", "tail": "b", "when": when} for when in ("result > 5", "result < 0")]
    assert [(edge.parameter, edge.when) for edge in _read(READS, entries).edges] == [
        ("x", "result > 5"),
        ("x", "result < 0"),
    ]


def test_an_order_edge_beside_a_data_edge_is_asked_for_by_its_kind_and_survives() -> None:
    spec = _read(READS, [{"head": "a", "tail": "b", "kind": "order", "required": True}])
    assert [(edge.kind, edge.parameter, edge.required) for edge in spec.edges] == [
        ("data", "x", None),
        ("order", None, True),
    ]
    assert GraphSpec.from_document(spec.to_document()) == spec


def test_an_edge_onto_a_parameter_binds_it() -> None:
    spec = _read(AB, [{"head": "a", "tail": "b", "parameter": "x"}])
    assert spec.node("b").params == {"x": {"$node": "a"}}
    assert [(edge.kind, edge.parameter) for edge in spec.edges] == [("data", "x")]


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        ({"parameter": "x"}, "edges[0]: parameter 'x' of node 'b' has a value already"),
        ({"kind": "order", "parameter": "z"}, "edges[0]: an edge of kind order has no parameter"),
        ({"kind": "data"}, "edges[0]: an edge of kind data names the parameter that it gives"),
        ({"kind": "tool"}, "edges[0].kind"),
        ({"wen": "x"}, "edges[0].wen: unknown field"),
        ({"required": "perhaps"}, "edges[0].required"),
    ],
    ids=str,
)
def test_an_edge_that_cannot_be_is_refused_with_its_place(edge: dict[str, Any], said: str) -> None:
    nodes = [AB[0], {"key": "b", "task": "t", "params": {"x": 1}}]
    assert said in _refusal(nodes, [{"head": "a", "tail": "b", **edge}])


# --- faults


def test_all_faults_of_a_document_are_named_at_once_with_their_places() -> None:
    nodes = [
        {"key": "a", "tsk": "t", "policy": {"timeout_seconds": -1, "backoff": {"factor": 0}}},
        {"key": 5, "task": "t", "params": {"x": {"$node": "a", "pth": "y"}}},
        {"key": "c", "task": "t", "resources": "disk"},
    ]
    said = _refusal(nodes, [{"head": "a"}], settings={"failure_policy": "hope"}, egdes=[])
    for place in (
        "nodes[0].tsk: unknown field",
        "nodes[0].task",
        "nodes[0].policy.timeout_seconds",
        "nodes[0].policy.backoff.factor",
        "nodes[1].key",
        "nodes[1].params.x.pth: unknown field",
        "nodes[2].resources",
        "edges[0].tail",
        "settings.failure_policy",
        "egdes: unknown field",
    ):
        assert place in said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"$node": 5}, "params.x.$node: a node key is text, not int"),
        ({"$node": ["a"]}, "params.x.$node: a node key is text, not list"),
        ([{"$node": "a", "path": 3}], "params.x[0].path: a path is text, not int"),
        ({"$node": "a", "path": "items["}, "params.x.path: path 'items[' cannot be read at column 6"),
        ({"y": {1: "a"}}, "params.x.y: the key 1 is not text; put it in quotes"),
        ([float("nan")], 'params.x[0]: nan is not JSON; write {"$float": "nan"}'),
        (float("-inf"), 'write {"$float": "-inf"}'),
        ({"y": {1, 2}}, "params.x.y: type set is not plain JSON"),
        (b"bytes", "params.x: type bytes is not plain JSON"),
    ],
    ids=str,
)
def test_a_parameter_that_no_document_can_hold_is_refused_with_its_place(value: Any, said: str) -> None:
    refusal = _refusal([{"key": "a", "task": "t", "params": {"x": value}}])
    assert "nodes[0].params.x" in refusal
    assert said in refusal


def test_a_parameter_nested_too_deep_or_holding_itself_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(2 * MAX_DEPTH):
        deep = [deep]
    itself: list[Any] = []
    itself += [itself, itself]
    assert f"nested deeper than {MAX_DEPTH}" in _refusal([{"key": "a", "task": "t", "params": {"x": deep}}])
    assert "it contains itself" in _refusal([{"key": "a", "task": "t", "params": {"x": itself}}])


def test_a_tuple_in_a_document_is_a_list() -> None:
    assert _read([{"key": "a", "task": "t", "params": {"x": (1, 2)}}]).node("a").params == {"x": [1, 2]}


@pytest.mark.parametrize("document", [None, 5, [], {"nodes": 5}, {}, {"name": "", "nodes": []}], ids=str)
def test_what_is_no_graph_at_all_is_refused_with_its_source(document: Any) -> None:
    with pytest.raises(FormatError, match=r"g\.json is not a graph: "):
        GraphSpec.from_document(document, source="g.json")


def test_a_lone_node_and_a_policy_name_their_faults() -> None:
    with pytest.raises(FormatError, match="node: tsk: unknown field"):
        node_from_document({"key": "a", "task": "t", "tsk": 1})
    with pytest.raises(FormatError, match="policy: queu: unknown field"):
        policy_from(Policy(), {"queu": "io"})
    assert policy_from(Policy(queue="io"), {"max_attempts": 5}) == Policy(queue="io", max_attempts=5)


def test_settings_are_checked_when_they_are_overridden() -> None:
    spec = _read(AB)
    assert spec.with_settings(failure_policy=None) is spec
    assert spec.with_settings(failure_policy="fail_fast").settings.failure_policy == "fail_fast"
    with pytest.raises(FormatError, match="settings: failure_policy"):
        spec.with_settings(failure_policy="hope")


# --- small things


@given(st.lists(st.integers(-9, 9) | st.text(max_size=5), min_size=1, max_size=4))
def test_o28_any_path_that_is_written_is_read_back(steps: list[str | int]) -> None:
    path = ""
    for step in steps:
        path += path_step(step, first=not path)
    assert [step for step, _end in path_steps(path)] == steps


@pytest.mark.parametrize("path", ["a..b", "a[", "[x]", "a b", '["a]', "a.", "0"])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be read at column"):
        path_steps(path)


def test_a_backoff_grows_is_capped_and_spreads() -> None:
    backoff = Backoff(initial_seconds=2, factor=3, max_seconds=10, jitter=0.5)
    assert [backoff.seconds(attempt, 0.0) for attempt in (1, 2, 3, 10_000)] == [2, 6, 10, 10]
    assert backoff.seconds(1, 0.5) == 2 * 1.25


def test_x16_a_verify_command_is_split_as_a_shell_would() -> None:
    assert command_of("verify_task") is None
    assert command_of("$ test -s 'my file.csv'") == ["test", "-s", "my file.csv"]
    for broken in ("$ 'open", "$  "):
        with pytest.raises(ValueError):
            command_of(broken)


def test_a_retry_keeps_everything_of_a_node() -> None:
    node = NodeSpec(key="a", task="t", params={"x": 1})
    assert node.subgraph_hash() == NodeSpec(key="a", task="t", params={"x": 1}, join="any").subgraph_hash()
    assert node.subgraph_hash() != NodeSpec(key="a", task="t", params={"x": 2}).subgraph_hash()


def test_an_edge_is_written_as_an_arrow() -> None:
    assert str(EdgeSpec(head="a", tail="b")) == "a -> b"
