"""FILE on a command line: which spellings give which graph, and what is said when there is none."""

from __future__ import annotations

import sys

import pytest

from graphrun.cli.graph_file import load_graph
from graphrun.errors import GraphError, GraphrunError, RegistryError

ONE = """
from graphrun import Graph
from graphrun.builtin import echo

daily = Graph("daily")
daily.add(echo, value=1, key="a")
"""

MANY = """
from graphrun import Graph

first = Graph("first")
second = Graph("second")

def made():
    return Graph("made")

def broken():
    raise ValueError("no data")

def asks(name):
    return Graph(name)

number = 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """Write a module of a name of its own; return a function from its text to its path."""
    names = []

    def write(text, name=None):
        name = name or f"g_{request.node.name.translate(str.maketrans('[]-.', '____'))}"
        names.append(name)
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        return path

    monkeypatch.setattr(sys, "path", [*sys.path])
    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_a_python_file_gives_its_only_graph(module):
    assert load_graph(str(module(ONE))).spec.name == "daily"


def test_a_name_after_a_colon_chooses_among_graphs(module):
    assert load_graph(f"{module(MANY)}:second").spec.name == "second"


def test_the_graph_called_graph_is_the_usual_one(module):
    path = module(MANY + "graph = second\n")
    assert load_graph(str(path)).spec.name == "second"


def test_a_function_is_called(module):
    assert load_graph(f"{module(MANY)}:made").spec.name == "made"


def test_a_dotted_module_is_imported_from_the_working_directory(module, tmp_path, monkeypatch):
    path = module(ONE)
    monkeypatch.chdir(tmp_path)
    loaded = load_graph(f"{path.stem}:daily")
    assert (loaded.spec.name, loaded.tasks) == ("daily", (path.stem,))


def test_the_worker_is_told_the_absolute_file(module, tmp_path, monkeypatch):
    path = module(ONE)
    monkeypatch.chdir(tmp_path)
    assert load_graph(path.name).tasks == (str(path),)


def test_task_modules_come_before_the_file(module):
    tasks = module("from graphrun import task\n\n@task(name='t.one')\ndef one() -> int:\n    return 1\n", "t_first")
    graph = module("from graphrun import Graph\n\ng = Graph('g')\ng.add('t.one', key='a')\n", "t_second")
    loaded = load_graph(str(graph), [str(tasks)])
    assert loaded.spec.node("a").task == "t.one"
    assert loaded.tasks == (str(tasks), str(graph))


@pytest.mark.parametrize(
    ("suffix", "error", "text"),
    [
        ("", GraphError, "holds 2 graphs; say which: "),
        (":third", GraphError, "has no 'third'; it has first, second"),
        (":number", GraphError, ":number is an int, not a graph"),
        (":broken", GraphError, ":broken() failed: ValueError: no data"),
        (":asks", GraphError, ":asks() failed: TypeError: "),
    ],
)
def test_a_file_without_the_graph_says_what_it_has(module, suffix, error, text):
    path = module(MANY)
    with pytest.raises(error) as caught:
        load_graph(f"{path}{suffix}")
    assert text in str(caught.value)


def test_a_file_without_any_graph_says_how_to_name_a_function(module):
    path = module("x = 1\n")
    with pytest.raises(GraphError, match=r"holds no graph; say which function makes one: .*:NAME"):
        load_graph(str(path))


def test_a_python_file_that_raises_names_its_error(module):
    path = module("1 / 0\n")
    with pytest.raises(RegistryError, match=r"cannot be imported: ZeroDivisionError"):
        load_graph(str(path))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("nothing.json", "no such file: nothing.json"),
        ("nothing.py", "no such file: nothing.py"),
        ("no.such.module:graph", "no module named 'no.such.module'"),
        ("flows", "no such file: flows; for a module say flows:NAME"),
        (".", ". is a directory"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, monkeypatch, source, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphrunError) as caught:
        load_graph(source)
    assert text in str(caught.value)
