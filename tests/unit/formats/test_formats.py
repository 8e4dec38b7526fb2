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
from graphrun.formats import FORMATS, read_graph, write_graph
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


@settings(max_examples=75, deadline=None)
@given(st.dictionaries(_texts, _values, max_size=4), _texts)
def test_z9_any_parameters_survive_json_and_yaml(params: dict[str, Any], key: str):
    spec = GraphSpec.from_document({"name": "g", "nodes": [{"key": key, "task": "t", "params": params}]})
    assert read(read_json(to_json(spec), "g.json"), "g.json") == spec
    assert read(read_yaml(to_yaml(spec), "g.yaml"), "g.yaml") == spec


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


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08 nothing", gzip.compress(b"x" * 99)[:-9], b"\x1f\x8b"])
def test_a_compressed_file_that_is_broken_is_named(tmp_path: Path, content: bytes):
    file = tmp_path / "g.json.gz"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=r"^g\.json\.gz is not text: "):
        read_graph(file)


@pytest.mark.parametrize("name", ["g.json.gz", "g.yaml.gz", "g.yml", "g.json"])
def test_a_file_is_written_as_its_name_says(tmp_path: Path, name: str):
    file = tmp_path / name
    write_graph(GraphSpec.from_document(OWN), file)
    assert file.read_bytes().startswith(b"\x1f\x8b") is name.endswith(".gz")
    assert read_graph(file) == GraphSpec.from_document(OWN)


def test_a_file_is_not_written_under_a_name_that_says_nothing(tmp_path: Path):
    with pytest.raises(FormatError, match=r"e\.txt: a graph is written to a \.json or a \.yaml file"):
        write_graph(GraphSpec.from_document(OWN), tmp_path / "e.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("g.dot", "digraph { a -> b }"), ("g.json", '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}')],
)
def test_a_foreign_file_is_called_one_and_not_a_bad_one_of_ours(tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=f"^{name} is not a graph of any known format"):
        read_graph(tmp_path / name)


def test_of_many_faults_of_a_document_the_first_are_told_and_the_rest_counted():
    nodes = [{"key": f"n{number}"} for number in range(50)]
    with pytest.raises(FormatError, match=r"nodes\[19\]\.task: .*; … 30 more$"):
        GraphSpec.from_document({"nodes": nodes})


def test_a_named_format_decides_and_not_the_suffix(tmp_path: Path):
    spec = GraphSpec.from_document(OWN)
    write_graph(spec, tmp_path / "g.txt", format="yaml")
    assert (tmp_path / "g.txt").read_text(encoding="utf-8").startswith("name: etl\n")
    assert read_graph(tmp_path / "g.txt", format="yaml") == spec
    write_graph(spec, tmp_path / "g.yaml", format="json")
    assert read_graph(tmp_path / "g.yaml", format="json") == spec


def test_a_file_of_another_format_than_named_and_an_unknown_format_are_refused(tmp_path: Path):
    file = _write(tmp_path / "g.json", OWN)
    with pytest.raises(FormatError, match=r"g\.json is not WfFormat"):
        read_graph(file, format="wfformat")
    with pytest.raises(FormatError, match="unknown format 'dot'; there are wfformat, node-list, json, yaml"):
        read_graph(file, format="dot")


def test_a_file_that_no_format_knows_names_those_that_there_are(tmp_path: Path):
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "g.json", {"steps": []}))
    assert all(name in str(refused.value) for name in FORMATS)


def test_a_writing_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    spec = GraphSpec.from_document(OWN)
    with pytest.raises(FormatError, match="cannot be written: No such file"):
        write_graph(spec, tmp_path / "none" / "g.json")
    with pytest.raises(FormatError, match="'wfformat' is read only; these are written: json, yaml"):
        write_graph(spec, tmp_path / "g.json", format="wfformat")
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "g.json"
    folder.mkdir()
    with pytest.raises(FormatError, match="cannot be written"):
        write_graph(spec, folder)
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_that_is_there_is_replaced_whole(tmp_path: Path):
    file = _write(tmp_path / "g.json", "x" * 10_000)
    with file.open(encoding="utf-8") as old:
        write_graph(GraphSpec(name="g"), file)
        assert old.read() == "x" * 10_000  # who reads it meanwhile reads one or the other, never half of each
    assert file.read_text() == '{\n  "name": "g",\n  "nodes": []\n}\n'
    assert list(tmp_path.iterdir()) == [file]


def test_a_yaml_bomb_and_a_yaml_value_that_holds_itself_are_refused(tmp_path: Path):
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    head = "nodes:\n- key: a\n  task: t\n  params:\n"
    with pytest.raises(FormatError, match=r"nodes\[0\]\.params\..* more than 100000 values are repeated by aliases"):
        read_graph(_write(tmp_path / "bomb.yaml", f"{head}    l0: &l0 [1]\n{levels.replace('  l', '    l')}"))
    with pytest.raises(FormatError, match=r"nodes\[0\]\.params\.x\[0\]: it contains itself"):
        read_graph(_write(tmp_path / "self.yaml", f"{head}    x: &x [*x]\n"))


def test_a_yaml_key_that_is_no_text_is_named_with_its_remedy(tmp_path: Path):
    with pytest.raises(FormatError, match=r"nodes\[0\]\.params: the key True is not text; put it in quotes"):
        read_graph(_write(tmp_path / "g.yaml", "nodes: [{key: a, task: t, params: {on: 1}}]"))


@pytest.mark.parametrize("value", [".inf", "!!timestamp 2020-01-01", "!!binary aGk=", "!!set {a}"])
def test_a_yaml_value_that_json_lacks_is_named(tmp_path: Path, value: str):
    with pytest.raises(FormatError, match=r"nodes\[0\]\.params\.x: "):
        read_graph(_write(tmp_path / "g.yaml", f"nodes: [{{key: a, task: t, params: {{x: {value}}}}}]"))


# --- node-edge lists


def test_edges_are_read_by_index_and_by_name_and_order_is_proved_by_values(tmp_path: Path):
    spec = read_graph(_write(tmp_path / "g.json", {"nodes": ["a", "b", "c"], "edges": [[0, 1], ["b", "c"], [0, 1]]}))
    assert [(edge.head, edge.tail) for edge in spec.edges] == [("a", "b"), ("b", "c")]
    assert spec.node("c").params == {"seconds": 0.0, "inputs": [{"$node": "b"}]}


def test_every_bad_pair_is_named(tmp_path: Path):
    edges = [[0, 1], ["a", "x"], [0], [False, 0], [-1, 0], "aa", {"head": "a"}, [0, 0.0]]
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "g.json", {"nodes": ["a"], "edges": edges}))
    assert all(f"edges[{number}]" in str(refused.value) for number in range(len(edges)))


def test_a_node_list_without_edges_is_a_wave_and_a_wrong_list_is_a_fault(tmp_path: Path):
    assert read_graph(_write(tmp_path / "g.json", {"nodes": ["a", "b"]})).edges == ()
    with pytest.raises(FormatError, match="edges: a list of pairs"):
        read_graph(_write(tmp_path / "g.json", {"nodes": ["a"], "edges": {}}))


def test_a_node_list_is_called_by_its_name_or_its_file(tmp_path: Path):
    assert read_graph(_write(tmp_path / "g.json", {"nodes": ["a"]})).name == "g.json"
    assert read_graph(_write(tmp_path / "g.json", {"nodes": ["a"], "name": "mine"})).name == "mine"
    long = tmp_path / ("g" * 240 + ".json")
    assert len(read_graph(_write(long, {"nodes": ["a"]})).name) == 200


def test_o1_a_node_list_may_hold_cycles_which_validation_names(tmp_path: Path):
    spec = read_graph(_write(tmp_path / "g.json", {"nodes": ["a"], "edges": [[0, 0]]}))
    assert [str(edge) for edge in spec.edges] == ["a -> a"]


# --- WfFormat


def _task(key: str, parents: list[str], children: list[str], **more: Any) -> dict[str, Any]:
    return {"name": "same", "id": key, "parents": parents, "children": children, **more}


def _measured(version: str = "1.5") -> dict[str, Any]:
    tasks = [_task("a", [], ["b"]), _task("b", ["a"], [])]
    if version == "1.5":
        times = [{"id": "a", "runtimeInSeconds": 10.0}, {"id": "b", "runtimeInSeconds": 4}]
        workflow = {"specification": {"tasks": tasks}, "execution": {"tasks": times}}
    else:
        field = "runtimeInSeconds" if version == "1.4" else "runtime"
        workflow = {"tasks": [{**task, field: time} for task, time in zip(tasks, (10.0, 4), strict=True)]}
    return {"name": "measured", "schemaVersion": version, "workflow": workflow}


def _specification(document: dict[str, Any]) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = document["workflow"]["specification"]["tasks"]
    return tasks


def _pairs(spec: GraphSpec) -> list[str]:
    return [str(edge) for edge in spec.edges]


@pytest.mark.parametrize("version", ["1.3", "1.4", "1.5"])
def test_measured_times_are_joined_scaled_and_capped(tmp_path: Path, version: str):
    spec = read_graph(_write(tmp_path / "w.json", _measured(version)), time_scale=0.1, cap_seconds=0.5, mode="burn")
    assert spec.node("a").params == {"seconds": 0.5, "mode": "burn"}
    assert spec.node("b").params == {"seconds": 0.4, "mode": "burn", "inputs": [{"$node": "a"}]}
    assert _pairs(spec) == ["a -> b"]
    assert spec.name == "measured"


def test_by_default_a_measured_node_sleeps_as_long_as_it_took(tmp_path: Path):
    spec = read_graph(_write(tmp_path / "w.json", _measured()))
    assert [node.params["seconds"] for node in spec.nodes] == [10.0, 4.0]
    assert "mode" not in spec.node("a").params


def test_times_are_joined_by_id_and_not_by_place(tmp_path: Path):
    document = _measured()
    document["workflow"]["execution"]["tasks"].reverse()
    assert read_graph(_write(tmp_path / "w.json", document)).node("a").params["seconds"] == 10.0


@pytest.mark.parametrize("version", ["1.3", "1.4"])
@pytest.mark.parametrize("field", ["tasks", "jobs"])
def test_up_to_1_4_tasks_name_each_other_by_name(tmp_path: Path, version: str, field: str):
    tasks = [
        {"name": "first", "id": "ID1", "parents": [], "children": ["second"], "runtime": 1},
        {"name": "second", "id": "ID2", "parents": ["first"], "children": []},
    ]
    document = {"schemaVersion": version, "workflow": {field: tasks}}
    assert _pairs(read_graph(_write(tmp_path / "w.json", document))) == ["ID1 -> ID2"]


def test_up_to_1_4_a_task_may_have_a_name_alone_and_one_side_of_an_edge(tmp_path: Path):
    tasks = [{"name": "first", "children": ["second"]}, {"name": "second"}, {"name": "third", "parents": ["second"]}]
    document = {"schemaVersion": "1.4", "workflow": {"tasks": tasks}}
    assert _pairs(read_graph(_write(tmp_path / "w.json", document))) == ["first -> second", "second -> third"]


def test_in_1_5_a_name_that_repeats_names_nobody(tmp_path: Path):
    document = _measured()
    _specification(document)[1]["parents"] = ["same"]
    with pytest.raises(FormatError, match=r"tasks\[1\]\.parents: 'same' is no task"):
        read_graph(_write(tmp_path / "w.json", document))


def test_a_name_that_two_tasks_have_names_nobody(tmp_path: Path):
    tasks = [{"name": "x", "id": "1"}, {"name": "x", "id": "2"}, {"name": "y", "id": "3", "parents": ["x"]}]
    with pytest.raises(FormatError, match=r"tasks\[2\]\.parents: 'x' is no task"):
        read_graph(_write(tmp_path / "w.json", {"schemaVersion": "1.4", "workflow": {"tasks": tasks}}))


@pytest.mark.parametrize("entry", [None, {"id": "b"}, {"id": "b", "runtimeInSeconds": None}], ids=str)
def test_a_task_without_a_measured_time_takes_none(tmp_path: Path, entry: dict[str, Any] | None):
    document = _measured()
    document["workflow"]["execution"]["tasks"][1:] = [] if entry is None else [entry]
    assert read_graph(_write(tmp_path / "w.json", document)).node("b").params["seconds"] == 0.0


def test_a_measured_workflow_that_never_ran_takes_no_time(tmp_path: Path):
    document = _measured()
    del document["workflow"]["execution"]
    assert read_graph(_write(tmp_path / "w.json", document)).node("a").params["seconds"] == 0.0


def test_lists_of_parents_and_children_that_disagree_are_faults_and_all_are_named(tmp_path: Path):
    document = _measured()
    tasks = _specification(document)
    tasks[1]["parents"] = []
    tasks += [_task("a", [], ["ghost"]), _task("c", ["b"], []), {"name": "no id"}, _task("d", 5, [])]
    document["workflow"]["execution"]["tasks"] += [{"id": "c", "runtimeInSeconds": "long"}, "what"]
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "w.json", document))
    for said in (
        "tasks[2]: task id 'a' is used twice",
        "tasks[2].children: 'ghost' is no task",
        "edge a -> b is given by children only",
        "edge b -> c is given by parents only",
        "tasks[5].parents: a list of ids is wanted",
        "the run time of task 'c' is 'long', which is no number",
        "execution.tasks[3] has no id",
    ):
        assert said in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schemaVersion": "1.2"}, "WfFormat 1.2 is not read; 1.3, 1.4, 1.5 are"),
        ({"schemaVersion": "1.30"}, "WfFormat 1.30 is not read"),
        ({"workflow": {}}, "neither workflow.specification.tasks nor workflow.tasks is a list"),
        ({"workflow": {"tasks": [], "execution": {"tasks": 5}}}, "workflow.execution.tasks: a list is wanted"),
        ({"workflow": []}, "not a graph of any known format"),
    ],
    ids=str,
)
def test_a_document_that_is_no_wfformat_of_ours_says_why(tmp_path: Path, change: dict[str, Any], said: str):
    with pytest.raises(FormatError) as refused:
        read_graph(_write(tmp_path / "w.json", _measured() | change))
    assert said in str(refused.value)


def test_an_empty_measured_workflow_is_an_empty_graph(tmp_path: Path):
    document = {"schemaVersion": "1.5", "workflow": {"specification": {"tasks": []}}}
    assert read_graph(_write(tmp_path / "w.json", document)).nodes == ()
