"""The wheel, unpacked outside the checkout, runs its demo: nothing it needs was left behind."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory with the unpacked wheel and nothing of the checkout."""
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-isolation"]
    command = [sys.executable, "-m", "build", "--wheel", *isolated, "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    return tmp_path


def test_the_demo_of_the_wheel_runs_outside_the_checkout(elsewhere: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(elsewhere / "site")}
    where = [sys.executable, "-P", "-c", "import graphrun; print(graphrun.__file__)"]
    shown = subprocess.run(where, env=environment, cwd=elsewhere, capture_output=True, text=True, check=True).stdout
    assert shown.startswith(str(elsewhere))
    demo = [sys.executable, "-P", "-m", "graphrun", "demo"]
    result = subprocess.run(
        demo, env=environment, cwd=elsewhere, capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for word in ("DELEGATED", "VERDICT", "EVOLUTION"):
        assert word in result.stdout.upper()
