"""Real task graphs: acyclic ones load, validate and plan as their index says, cyclic ones are refused by name."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from graphrun import builtin
from graphrun.engine.compiling import compile_graph
from graphrun.errors import ValidationFailedError
from graphrun.formats import read_graph
from graphrun.model.spec import GraphSpec
from graphrun.registry import default_registry

_DATA = Path(os.environ.get("GRAPHRUN_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

_HERE = (_DATA / "INDEX.md").is_file()
pytestmark = pytest.mark.skipif(not _HERE, reason="the data folder is not here (GRAPHRUN_DATA)")

assert builtin


def _rows() -> list[tuple[str, str, int, int, int, int]]:
    """Return (folder, file, nodes, edges, depth, width) of every acyclic graph in the index that a format reads."""
    rows = []
    folder = ""
    if not (_DATA / "INDEX.md").is_file():
        return []
    for line in (_DATA / "INDEX.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            folder = line[4:].split(" ")[0].rstrip(",")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = cells[1:5]
        read = folder in ("wfinstances-LGPL3", "shapes", "epfl-circuits", "dask", "opam-repository", "spack-packages")
        if len(cells) == 9 and read and all(re.fullmatch(r"\d+", number) for number in numbers):
            name = cells[0].replace("**\\*\\*", "").replace("**\\***", "").strip()
            if name.endswith((".json", ".json.gz")) and cells[7] == "yes":
                rows.append((folder, name, *map(int, numbers)))
    return rows


@pytest.mark.parametrize(("folder", "name", "nodes", "edges", "depth", "width"), _rows(), ids=str)
def test_an_acyclic_graph_loads_and_plans_as_the_index_says(
    folder: str, name: str, nodes: int, edges: int, depth: int, width: int
) -> None:
    spec = read_graph(_DATA / folder / name)
    compiled = compile_graph(spec, default_registry())
    widths: dict[int, int] = {}
    for wave in compiled.waves:
        widths[wave] = widths.get(wave, 0) + 1
    pairs = {(edge.head, edge.tail) for edge in compiled.edges}
    assert (len(spec.nodes), len(pairs), compiled.depth, max(widths.values())) == (nodes, edges, depth, width)


def test_the_index_was_read() -> None:
    assert len(_rows()) > 25


def _cargo() -> tuple[list[str], list[tuple[str, str]]]:
    """Read a Cargo.lock: a bare name is a package's only version."""
    packages = tomllib.loads(gzip.decompress((_DATA / "cargo-lock/uv-Cargo.lock.gz").read_bytes()).decode())["package"]
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
    file = _DATA / "agent-plans" / name
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    document: dict[str, Any] = json.loads(content)
    return [node["id"] for node in document["nodes"]], [(link["source"], link["target"]) for link in document["links"]]


@pytest.mark.parametrize(
    "name",
    [
        "uv-Cargo.lock.gz",
        "taskbench-toolgraph-dailylifeapis.json.gz",
        "taskbench-toolgraph-huggingface.json",
        "taskbench-toolgraph-multimedia.json",
    ],
)
def test_o1_o3_a_cyclic_graph_is_refused_and_a_real_cycle_is_named_in_order(name: str) -> None:
    keys, edges = _cargo() if name.startswith("uv") else _toolgraph(name)
    document = {
        "name": name,
        "nodes": [{"key": key, "task": "graphrun.builtin.echo"} for key in keys],
        "edges": [{"head": head, "tail": tail} for head, tail in edges],
    }
    with pytest.raises(ValidationFailedError) as refused:
        compile_graph(GraphSpec.from_document(document), default_registry())
    (cycle,) = [issue for issue in refused.value.issues if issue.code == "cycle"]
    named = cycle.message.split(" -> ")
    assert named[0] == named[-1]
    assert set(itertools.pairwise(named)) <= set(edges)
    assert len(set(named)) == len(named) - 1
