"""Real task graphs: acyclic ones load, validate and plan as indexed, cyclic ones are refused by a real cycle."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphrun import builtin
from graphrun.engine.compiling import compile_graph
from graphrun.errors import FormatError, ValidationFailedError
from graphrun.formats import read_graph, write_graph
from graphrun.model.spec import GraphSpec
from graphrun.registry import default_registry

_DATA = Path(os.environ.get("GRAPHRUN_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
_INDEX = _DATA / "INDEX.md"
pytestmark = pytest.mark.skipif(not _INDEX.is_file(), reason="the data folder is not here (GRAPHRUN_DATA)")

assert builtin  # its tasks are in the default registry


@dataclass(frozen=True)
class Row:
    """One row of the tables of INDEX.md: ``nodes, edges, depth, width`` of a file that a format reads."""

    file: Path
    numbers: tuple[int, int, int, int]

    def __str__(self) -> str:
        return f"{self.file.parent.name}/{self.file.name}"


def _content(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _files(folder: str, name: str) -> Iterator[Path]:
    """Yield the file of a row as it is here: itself, or the structure that was derived from it."""
    for file in (_DATA / folder / name, _DATA / folder / f"{name}.structure.json"):
        if file.is_file() and file.name.endswith((".json", ".json.gz")):
            yield file


def _is_read(file: Path) -> bool:
    """Say whether a file is WfFormat or a node-edge list; the other JSON here is in formats that graphrun lacks."""
    document = json.loads(_content(file))
    if not isinstance(document, dict):
        return False
    nodes = document.get("nodes")
    return "schemaVersion" in document or (isinstance(nodes, list) and all(isinstance(node, str) for node in nodes))


def _rows() -> list[Row]:
    if not _INDEX.is_file():
        return []
    rows: list[Row] = []
    folder = ""
    for line in _INDEX.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            folder = line[4:].split(" ")[0].rstrip(",")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = [re.match(r"\d+", cell) for cell in cells[1:5]]
        if len(cells) == 9 and cells[7] == "yes" and all(numbers):
            name = cells[0].replace("**\\***", "").strip()
            four = (int(cells[1].split(" ")[0]), int(cells[2]), int(cells[3]), int(cells[4]))
            rows += [Row(file, four) for file in _files(folder, name) if _is_read(file)]
    return rows


ROWS = _rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_acyclic_graph_loads_and_plans_as_the_index_says(row: Row) -> None:
    spec = read_graph(row.file)
    compiled = compile_graph(spec, default_registry())
    pairs = {(edge.head, edge.tail) for edge in compiled.edges}
    widest = max(Counter(compiled.waves).values())
    assert (len(spec.nodes), len(pairs), compiled.depth, widest) == row.numbers
    assert all(compiled.waves[head] < compiled.waves[tail] for head, tail in pairs)
    assert compiled.report.ok


def test_every_acyclic_file_of_ours_is_in_the_index_and_was_read() -> None:
    here = {file for file in _DATA.rglob("*.json*") if file.name.endswith((".json", ".json.gz")) and _is_read(file)}
    left = {file.name for file in here - {row.file for row in ROWS}}
    assert left == {"spack-all.CYCLIC.json.gz"}
    assert len(ROWS) > 60


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.file.name in ("sarek-dirt02-001.json.gz", "tsqr-64.json.gz")], ids=str
)
@pytest.mark.parametrize("name", ["g.json", "g.yaml", "g.json.gz"])
def test_o28_a_real_graph_survives_our_own_files(row: Row, name: str, tmp_path: Path) -> None:
    spec = read_graph(row.file)
    write_graph(spec, tmp_path / name)
    assert read_graph(tmp_path / name) == spec


@pytest.mark.parametrize("row", [row for row in ROWS if row.file.parent.name == "wfinstances-LGPL3"], ids=str)
def test_a_measured_graph_takes_the_time_that_its_index_says(row: Row) -> None:
    lines = _INDEX.read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith(f"| {row.file.name}"))
    total = float(line.rpartition("total_runtime_s: ")[2].rstrip(" |"))
    spec = read_graph(row.file)
    assert sum(node.params["seconds"] for node in spec.nodes) == pytest.approx(total, abs=1)
    capped = read_graph(row.file, time_scale=0.01, cap_seconds=0.05)
    assert max(node.params["seconds"] for node in capped.nodes) <= 0.05


# --- cyclic graphs


def _cargo() -> tuple[list[str], list[tuple[str, str]]]:
    """Read a Cargo.lock: a bare name is a package's only version."""
    packages = tomllib.loads(_content(_DATA / "cargo-lock/uv-Cargo.lock.gz").decode())["package"]
    versions: dict[str, list[str]] = {}
    for package in packages:
        versions.setdefault(package["name"], []).append(package["version"])
    edges = []
    for package in packages:
        tail = f"{package['name']} {package['version']}"
        for wanted in package.get("dependencies", []):
            name, _, version = wanted.partition(" ")
            head = f"{name} {version.split(' ')[0] or versions[name][0]}"
            edges.append((head, tail))
    return [f"{name} {version}" for name, found in versions.items() for version in found], edges


def _toolgraph(name: str) -> tuple[list[str], list[tuple[str, str]]]:
    document: dict[str, Any] = json.loads(_content(_DATA / "agent-plans" / name))
    return [node["id"] for node in document["nodes"]], [(link["source"], link["target"]) for link in document["links"]]


def _refused_by_a_real_cycle(spec: GraphSpec, edges: set[tuple[str, str]]) -> list[str]:
    with pytest.raises(ValidationFailedError) as refused:
        compile_graph(spec, default_registry())
    (cycle,) = [issue for issue in refused.value.issues if issue.code == "cycle"]
    named: list[str] = cycle.message.split(" -> ")
    assert named[0] == named[-1]
    assert len(set(named)) == len(named) - 1
    assert set(itertools.pairwise(named)) <= edges
    return named


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("uv-Cargo.lock.gz", 753, 3160),
        ("taskbench-toolgraph-dailylifeapis.json.gz", 40, 1560),
        ("taskbench-toolgraph-huggingface.json", 23, 225),
        ("taskbench-toolgraph-multimedia.json", 40, 449),
    ],
)
def test_o1_o3_a_cyclic_graph_is_refused_and_a_real_cycle_is_named_in_order(name: str, nodes: int, edges: int) -> None:
    keys, pairs = _cargo() if name.startswith("uv") else _toolgraph(name)
    assert (len(keys), len(set(pairs))) == (nodes, edges)
    document = {
        "name": name,
        "nodes": [{"key": key, "task": "graphrun.builtin.echo"} for key in keys],
        "edges": [{"head": head, "tail": tail} for head, tail in pairs],
    }
    named = _refused_by_a_real_cycle(GraphSpec.from_document(document), set(pairs))
    assert name != "uv-Cargo.lock.gz" or [key.split(" ")[0] for key in named] == ["uv-preview", "uv-preview"]


def test_o1_a_cyclic_node_list_is_read_and_refused_by_a_real_cycle() -> None:
    file = _DATA / "spack-packages" / "spack-all.CYCLIC.json.gz"
    document = json.loads(_content(file))
    names = document["nodes"]
    pairs = {(names[head], names[tail]) for head, tail in document["edges"]}
    assert (len(names), len(pairs)) == (9114, 50910)
    _refused_by_a_real_cycle(read_graph(file), pairs)


@pytest.mark.parametrize("name", ["estee/elementary-grid.json", "kedro-viz/spaceflights.mock.json", "dbt/README.md"])
def test_a_file_of_a_format_that_is_not_read_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(FormatError) as refused:
        read_graph(_DATA / name)
    assert "\n" not in str(refused.value)
    assert name.rpartition("/")[2] in str(refused.value)
