"""Formats: own JSON and YAML without loss, node-edge lists, WfFormat; every fault named with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrun.errors import FormatError
from graphrun.formats import read_graph, write_graph
from graphrun.formats.documents import read_json, read_yaml
from graphrun.formats.own import read, to_json, to_yaml
from graphrun.model.spec import GraphSpec

OWN: dict[str, Any] = {
    "name": "etl",
    "nodes": [
        {
            "key": "a",
            "task": "graphrun.builtin.echo",
            "params": {
                "x": 1,
                "y": {"$node": "名前", "path": "items[0]"},
                "on": "yes",
                "when": "2020-01-01",
                "n": "1e3",
            },
            "policy": {"max_attempts": 3, "queue": "io", "backoff": {"initial_seconds": 2.0}},
            "resources": ["disk"],
            "join": "all",
        },
        {
            "key": "名前",
            "task": "graphrun.builtin.echo",
            "params": {"nan": {"$float": "nan"}, "d": {"$literal": {"$x": 1}}},
        },
        {"key": "rule\nds: 552", "task": "graphrun.builtin.echo"},
    ],
    "edges": [
        {"head": "名前", "tail": "a", "parameter": "y", "when": "result > 0", "required": True},
        {"head": "rule\nds: 552", "tail": "a", "enabled": False},
    ],
    "settings": {"failure_policy": "fail_fast"},
}

_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_names = _texts.filter(lambda text: text[0] != "$")
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_texts.filter(lambda k: k[0] != "$"), inner, max_size=3)
    ),
    max_leaves=6,
)


def _write(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_graph_written_and_read_is_the_same_graph(tmp_path: Path, suffix: str):
    spec = GraphSpec.from_document(OWN)
    file = tmp_path / f"g.{suffix}"
    write_graph(spec, file)
    assert read_graph(file) == spec
    assert read_graph(file).content_hash == spec.content_hash
    assert spec.to_document() == OWN


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(_texts, _values, max_size=4), _texts)
def test_z9_any_parameters_survive_json_and_yaml(params: dict[str, Any], key: str):
    spec = GraphSpec.from_document({"name": "g", "nodes": [{"key": key, "task": "t", "params": params}]})
    assert read(read_json(to_json(spec), "g.json"), "g.json") == spec
    assert read(read_yaml(to_yaml(spec), "g.yaml"), "g.yaml") == spec


def test_z8_an_explicit_default_is_the_same_graph():
    plain = {"nodes": [{"key": "a", "task": "t"}]}
    explicit = {"nodes": [{"key": "a", "task": "t", "join": "any", "policy": {"max_attempts": 2}}], "edges": []}
    assert GraphSpec.from_document(plain).content_hash == GraphSpec.from_document(explicit).content_hash


def test_unknown_and_missing_fields_are_all_named_with_their_place(tmp_path: Path):
    document = {"nodes": [{"key": "a", "tsk": "t", "policy": {"timeout_seconds": -1}}], "egdes": []}
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "bad.json", document))
    for place in (
        "nodes[0].tsk: unknown field",
        "nodes[0].task",
        "nodes[0].policy.timeout_seconds",
        "egdes: unknown field",
    ):
        assert place in str(refused.value)


def test_an_edge_onto_a_parameter_binds_it_and_onto_one_with_a_value_is_refused():
    nodes = [{"key": "a", "task": "t"}, {"key": "b", "task": "t"}]
    spec = GraphSpec.from_document({"nodes": nodes, "edges": [{"head": "a", "tail": "b", "parameter": "x"}]})
    assert spec.node("b").params == {"x": {"$node": "a"}}
    taken = [nodes[0], {"key": "b", "task": "t", "params": {"x": 1}}]
    with pytest.raises(FormatError, match=r"edges\[0\]: parameter 'x' of node 'b' has a value already"):
        GraphSpec.from_document({"nodes": taken, "edges": [{"head": "a", "tail": "b", "parameter": "x"}]})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.json", '{"nodes": [}', "line 1, column 12"),
        ("g.yaml", "nodes: [a\nb: c", "line 2"),
        ("g.json", '{"nodes": [], "nodes": []}', "'nodes' is given twice"),
        ("g.yaml", "nodes: []\nnodes: []\n", "'nodes' is given twice"),
        ("g.json", '{"nodes": [{"key": "a", "task": "t", "params": {"x": NaN}}]}', "NaN is not JSON"),
        ("g.json", '{"steps": []}', "not a graph of any known format"),
        ("g.json", "[1, 2]", "not a graph of any known format"),
        ("g.json", '{"nodes": [], "edges": 5}', "edges"),
    ],
)
def test_a_file_that_is_not_a_graph_says_where(tmp_path: Path, name: str, text: str, said: str):
    with pytest.raises(FormatError, match=r"g\.(json|yaml)") as refused:
        read_graph(_write(tmp_path / name, text))
    assert said in str(refused.value)


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path):
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        read_graph(tmp_path / "none.json")
    binary = tmp_path / "g.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="is not text"):
        read_graph(binary)


def test_a_compressed_file_and_a_byte_order_mark_are_read(tmp_path: Path):
    file = tmp_path / "g.json.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(OWN).encode()))
    assert read_graph(file) == GraphSpec.from_document(OWN)


def test_writing_is_all_or_nothing(tmp_path: Path):
    with pytest.raises(FormatError, match="cannot be written"):
        write_graph(GraphSpec.from_document(OWN), tmp_path / "none" / "g.json")
    with pytest.raises(FormatError, match="read only"):
        write_graph(GraphSpec.from_document(OWN), tmp_path / "g.json", format="wfformat")
    assert list(tmp_path.iterdir()) == []


# --- node-edge lists


def test_edges_are_read_by_index_and_by_name_and_order_is_proved_by_values(tmp_path: Path):
    spec = read_graph(_write(tmp_path / "g.json", {"nodes": ["a", "b", "c"], "edges": [[0, 1], ["b", "c"], [0, 1]]}))
    assert [(edge.head, edge.tail) for edge in spec.edges] == [("a", "b"), ("b", "c")]
    assert spec.node("c").params == {"seconds": 0.0, "inputs": [{"$node": "b"}]}


def test_every_bad_pair_is_named(tmp_path: Path):
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "g.json", {"nodes": ["a"], "edges": [[0, 1], ["a", "x"], [0], [True, 0]]}))
    assert all(f"edges[{number}]" in str(refused.value) for number in range(4))


# --- WfFormat


def _task(key: str, parents: list[str], children: list[str], **more: Any) -> dict[str, Any]:
    return {"name": "same", "id": key, "parents": parents, "children": children, **more}


def _measured(version: str = "1.5") -> dict[str, Any]:
    tasks = [_task("a", [], ["b"]), _task("b", ["a"], [])]
    if version == "1.5":
        times = [{"id": "a", "runtimeInSeconds": 10.0}, {"id": "b", "runtimeInSeconds": 4.0}]
        workflow = {"specification": {"tasks": tasks}, "execution": {"tasks": times}}
    else:
        workflow = {"tasks": [{**task, "runtime": time} for task, time in zip(tasks, (10.0, 4.0), strict=True)]}
    return {"name": "measured", "schemaVersion": version, "workflow": workflow}


@pytest.mark.parametrize("version", ["1.4", "1.5"])
def test_measured_times_are_joined_scaled_and_capped(tmp_path: Path, version: str):
    spec = read_graph(_write(tmp_path / "w.json", _measured(version)), time_scale=0.1, cap_seconds=0.5, mode="burn")
    assert spec.node("a").params == {"seconds": 0.5, "mode": "burn"}
    assert spec.node("b").params == {"seconds": 0.4, "mode": "burn", "inputs": [{"$node": "a"}]}
    assert [(edge.head, edge.tail) for edge in spec.edges] == [("a", "b")]


def test_a_task_without_a_measured_time_takes_none(tmp_path: Path):
    document = _measured()
    document["workflow"]["execution"]["tasks"].pop()
    assert read_graph(_write(tmp_path / "w.json", document)).node("b").params["seconds"] == 0.0


def test_lists_of_parents_and_children_that_disagree_are_a_fault(tmp_path: Path):
    document = _measured()
    tasks = document["workflow"]["specification"]["tasks"]
    tasks[1]["parents"] = []
    tasks.append(_task("a", [], ["ghost"]))
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "w.json", document))
    for said in ("'a' is used twice", "'ghost' is named", "a -> b is given by children only"):
        assert said in str(refused.value)


def test_another_version_is_refused(tmp_path: Path):
    with pytest.raises(FormatError, match=r"WfFormat 2\.0 is not read"):
        read_graph(_write(tmp_path / "w.json", _measured() | {"schemaVersion": "2.0"}))
