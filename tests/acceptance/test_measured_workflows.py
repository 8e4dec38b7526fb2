"""Every acyclic WfFormat file of the data folder imports and runs with ``--local``; the SQL file alone proves order."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve()
_DATA = Path(os.environ.get("GRAPHRUN_DATA", _HERE.parents[3] / "shared" / "data")) / "wfinstances-LGPL3"
_FILES = sorted(_DATA.glob("*.json*")) if _DATA.is_dir() else []


def _graphrun(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graphrun", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _time_scale(file: Path, seconds: float = 0.5) -> str:
    """Return a scale under which the longest node takes half a second."""
    import gzip

    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    tasks = json.loads(text)["workflow"]["execution"]["tasks"]
    longest = max(task["runtimeInSeconds"] for task in tasks)
    return str(seconds / longest if longest else 1.0)


@pytest.mark.skipif(not _FILES, reason="the data folder is not here (GRAPHRUN_DATA)")
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name.split(".")[0])
def test_a_measured_workflow_runs_and_the_sql_file_alone_proves_its_order(file: Path, tmp_path: Path) -> None:
    imported = _graphrun("import", str(file), "--out", "g.json", "--time-scale", _time_scale(file), cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    database = tmp_path / "run.db"
    ran = _graphrun("run", "g.json", "--local", "--json", "--database", f"sqlite:///{database}", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    document = json.loads(ran.stdout)
    assert document["status"] == "succeeded"
    assert document["verdict"] == "matches"
    _check_order(database, expected=len(document["nodes"]))


def _check_order(database: Path, *, expected: int) -> None:
    """Read the SQL file with nothing but sqlite3: once each, and none before its upstreams had ended."""
    connection = sqlite3.connect(database)
    try:
        counts = connection.execute(
            "SELECT COUNT(*), COUNT(DISTINCT node_id), SUM(status = 'done') FROM attempts"
        ).fetchone()
        assert counts == (expected, expected, expected)
        early = connection.execute(
            "SELECT COUNT(*) FROM edge_runs e"
            " JOIN attempts h ON h.run_id = e.run_id AND h.node_id = e.head"
            " JOIN attempts t ON t.run_id = e.run_id AND t.node_id = e.tail"
            " WHERE t.claimed_at < h.settled_at"
        ).fetchone()[0]
        assert early == 0
    finally:
        connection.close()
