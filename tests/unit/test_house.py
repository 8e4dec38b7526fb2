"""The house: what the wheel holds, what an import costs, who may import whom, and that the documents say what is."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import graphrun
from graphrun import errors

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "graphrun").rglob("*.py"))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
IMPORT_SECONDS = 0.15


def python(code: str) -> str:
    """Run code in a process of its own, away from the checkout."""
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_the_wheel_holds_graphrun_alone_whole_and_with_its_licence(tmp_path: Path) -> None:
    # Without hatchling beside us an environment for the build is made, which takes longer.
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-isolation"]
    command = [sys.executable, "-m", "build", "--wheel", *isolated, "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"graphrun-{graphrun.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"graphrun", info}
    assert f"{info}/licenses/LICENSE" in names
    assert "graphrun/py.typed" in names
    assert {str(path.relative_to(ROOT)) for path in MODULES} <= names
    assert any(name.startswith("graphrun/storage/migrations/versions/") for name in names)


def test_importing_graphrun_loads_neither_celery_nor_sqlalchemy_nor_pydantic() -> None:
    loaded = python("import sys, graphrun; print(*sys.modules)").split()
    assert not {"celery", "kombu", "sqlalchemy", "alembic", "pydantic", "redis"} & set(loaded)


@pytest.mark.parametrize("name", ["Settings", "task", "GraphSpec", "GraphrunError"])
def test_a_name_of_the_lower_layers_loads_neither_celery_nor_sqlalchemy(name: str) -> None:
    loaded = python(f"import sys, graphrun; graphrun.{name}; print(*sys.modules)").split()
    assert not {"celery", "kombu", "sqlalchemy", "alembic", "redis"} & set(loaded)


def test_importing_graphrun_is_quick() -> None:
    code = "import time; t = time.perf_counter(); import graphrun; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < IMPORT_SECONDS


def test_every_public_name_is_there_and_typed() -> None:
    assert sorted(graphrun._HOMES) == graphrun.__all__
    for name in graphrun.__all__:
        assert getattr(graphrun, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        graphrun.Nothing  # noqa: B018 - the access is the fact


def test_the_layers_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout


def test_graphrun_imports_nothing_of_an_application() -> None:
    for path in MODULES:
        assert not imported(path) & {"tasks", "config", "examples", "bench", "tests"}, path


def test_the_guard_needs_the_standard_library_alone() -> None:
    assert imported(ROOT / "graphrun/engine/guard.py") <= sys.stdlib_module_names


def test_every_module_says_what_it_answers_for() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert not text or ast.get_docstring(ast.parse(text)), path


def test_the_tree_of_exceptions_in_the_docstring_is_the_real_one() -> None:
    classes = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    tree = (errors.__doc__ or "").splitlines()
    lines = [line for line in tree if "Error" in line and ("─" in line or line.startswith("    G"))]
    parents: list[str] = []
    for line in lines:
        name = next(word for word in line.split() if word.endswith("Error"))
        depth = (line.index(name) - 4) // 4
        assert depth == 0 or parents[depth - 1] in {base.__name__ for base in classes[name].__bases__}, name
        parents[depth:] = [name]
    assert {next(word for word in line.split() if word.endswith("Error")) for line in lines} == set(classes)


def test_ci_runs_the_command_of_the_readme_and_nothing_of_its_own() -> None:
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands == [
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "export GRAPHRUN_REQUIRE_SERVICES=1",
        "make test",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert any(line.startswith(f"{target}:") for line in makefile)


def test_make_takes_a_good_python_and_says_so_when_there_is_none(tmp_path: Path) -> None:
    command = ["make", "-s", f"VENV={tmp_path / 'v'}", f"PYTHON={tmp_path / 'none'}", str(tmp_path / "v/bin/python")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode != 0
    assert "no usable Python 3.11 or newer" in result.stderr


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) < 60


def test_the_figure_of_states_is_drawn_from_the_tables() -> None:
    spec = importlib.util.spec_from_file_location("docs_states", ROOT / "docs/states.py")
    assert spec is not None
    assert spec.loader is not None
    states = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(states)
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert states.drawn(text) == states.figure(), "run python docs/states.py"


def test_the_figure_of_layers_is_that_of_the_contract() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    layers = re.sub(r"[()]", "", "\n".join(contracts[0]["layers"]))  # in parentheses: a place that is kept
    assert f"```\n{layers}\n```" in (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_to_a_file_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        assert "://" in target or (path.parent / target).exists(), target
