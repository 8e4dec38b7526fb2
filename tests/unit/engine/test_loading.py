"""Task modules and files: one name each, collisions and failing imports told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrun.engine.loading import load_tasks
from graphrun.errors import RegistryError


@pytest.fixture(autouse=True)
def _modules_of_this_test_alone() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path


def _refusal(name: str | Path) -> str:
    with pytest.raises(RegistryError) as refused:
        load_tasks(str(name))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def _file(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_a_module_under_its_stem_and_is_loaded_once(tmp_path: Path) -> None:
    file = _file(tmp_path, "loading_shop.py", "made = object()\nname = __name__\n")
    module = load_tasks(str(file))
    assert module.name == "loading_shop"
    assert load_tasks(str(tmp_path / "." / "loading_shop.py")) is module
    assert sys.modules["loading_shop"] is module


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    file = _file(tmp_path, "loading_shop.py", "")
    link = tmp_path / "loading_link.py"
    link.symlink_to(file)
    assert load_tasks(str(link)) is load_tasks(str(file))


def test_a_file_finds_the_modules_beside_it(tmp_path: Path) -> None:
    _file(tmp_path, "loading_neighbour.py", "x = 5\n")
    file = _file(tmp_path, "loading_shop.py", "from loading_neighbour import x\n")
    assert load_tasks(str(file)).x == 5


def test_a_module_is_imported_by_its_dotted_name_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _file(tmp_path / "loading_package", "shop.py", "x = 5\n")
    monkeypatch.chdir(tmp_path)
    assert load_tasks("loading_package.shop").x == 5


def test_two_files_of_one_name_collide(tmp_path: Path) -> None:
    first = _file(tmp_path / "one", "loading_shop.py", "")
    load_tasks(str(first))
    said = _refusal(_file(tmp_path / "two", "loading_shop.py", ""))
    assert f"a module named 'loading_shop' is loaded already, from {first}; rename the file" in said


@pytest.mark.parametrize("name", ["json.py", "turtledemo.py", "this.py"])
def test_a_file_does_not_take_the_name_of_a_module_of_python(tmp_path: Path, name: str) -> None:
    assert "is a module of Python itself; rename the file" in _refusal(_file(tmp_path, name, ""))


def test_a_file_or_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "none.py") == f"no such file: {tmp_path / 'none.py'}"
    assert "no module named 'loading_none.shop'" in _refusal("loading_none.shop")
    assert "no module named 'json.none'" in _refusal("json.none")


def test_a_module_that_a_module_lacks_is_told_from_the_module_itself(tmp_path: Path) -> None:
    said = _refusal(_file(tmp_path, "loading_shop.py", "import loading_nowhere\n"))
    assert "loading_shop.py cannot be imported: ModuleNotFoundError: No module named 'loading_nowhere'" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "SyntaxError: "),
        ("raise ValueError('one\\ntwo')\n", "ValueError: one two"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("x = b'\udcff'\n", "SyntaxError: "),
    ],
)
def test_a_file_that_fails_to_import_says_why_in_one_line_and_may_be_mended(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "loading_shop.py"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert f"loading_shop.py cannot be imported: {said}" in _refusal(file)
    assert "loading_shop" not in sys.modules
    file.write_text("x = 5 + 0\n", encoding="utf-8")
    assert load_tasks(str(file)).x == 5


@pytest.mark.parametrize("name", ["", ".", "..x", "a b"])
def test_what_is_no_name_of_a_module_is_refused_in_one_line(name: str) -> None:
    assert "cannot be imported" in _refusal(name) or "no module named" in _refusal(name)
