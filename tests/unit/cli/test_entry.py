"""The way in: exit codes, one-line errors, and a start-up that loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphrun.cli import entry, main
from graphrun.errors import GraphrunError, ValidationFailedError


@pytest.fixture
def plan_raises(monkeypatch):
    """Let ``graphrun plan`` raise what it is given."""

    def let(error):
        def fail(*_args, **_kwargs):
            raise error

        monkeypatch.setattr("graphrun.cli.graph_file.load_graph", fail)

    return let


def test_help_names_every_command_once(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:")[2].split("\n")
    names = [line.split()[0] for line in lines if line.startswith("  ") and line.strip()]
    assert names == [name for name, _function, _short in entry._COMMANDS] + ["db"]


def test_help_fits_eighty_columns_and_cuts_no_sentence(capsys):
    main(["--help"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "..." not in out.partition("Commands:")[2]


@pytest.mark.parametrize("name", [name for name, _function, _short in entry._COMMANDS])
def test_every_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"Usage: graphrun {name}" in capsys.readouterr().out


def test_help_loads_neither_celery_nor_sqlalchemy_nor_pydantic():
    code = (
        "import sys\nfrom graphrun.cli import main\nmain(['--help'])\n"
        "print([name for name in ('celery', 'sqlalchemy', 'pydantic', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [["plan"], ["nonsense"], ["plan", "--nonsense"], ["list", "--limit", "0"], ["worker", "--loglevel", "zzz"]],
)
def test_bad_usage_is_exit_code_2(arguments, capsys):
    assert main(arguments) == 2
    assert "Usage: graphrun" in capsys.readouterr().err


def test_an_error_of_graphrun_is_one_line_and_exit_code_1(plan_raises, capsys):
    plan_raises(GraphrunError("no such thing;\n  make one"))
    assert main(["plan", "x"]) == 1
    assert capsys.readouterr() == ("", "graphrun: no such thing; make one\n")


def test_of_a_refused_graph_each_fault_is_a_line(plan_raises, capsys):
    plan_raises(ValidationFailedError("daily", ("unknown task 'x'", "cycle: a -> b -> a")))
    assert main(["plan", "x"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "graphrun: graph 'daily' is refused, 2 fault(s)",
        "  unknown task 'x'",
        "  cycle: a -> b -> a",
    ]


def test_of_a_quoted_log_the_last_line_is_told(plan_raises, capsys):
    plan_raises(GraphrunError("worker-1 ended with exit code 1:\nstarting\n  KeyError: 'x'"))
    main(["plan", "x"])
    assert capsys.readouterr().err == "graphrun: worker-1 ended with exit code 1: KeyError: 'x'\n"


def test_an_unexpected_error_is_one_line_with_its_type(plan_raises, capsys):
    plan_raises(ZeroDivisionError("division by zero\n(more about it elsewhere)"))
    assert main(["plan", "x"]) == 1
    assert capsys.readouterr().err == "graphrun: ZeroDivisionError: division by zero (--debug shows where)\n"


@pytest.mark.parametrize("arguments", [["--debug", "plan", "x"], ["plan", "x", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(plan_raises, arguments, capsys):
    plan_raises(ZeroDivisionError("division by zero"))
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("graphrun: ZeroDivisionError: division by zero\n")


def test_the_environment_asks_for_tracebacks_too(plan_raises, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRUN_DEBUG", "1")
    plan_raises(GraphrunError("no"))
    main(["plan", "x"])
    assert capsys.readouterr().err.startswith("Traceback")


def test_ctrl_c_is_exit_code_130(plan_raises):
    plan_raises(KeyboardInterrupt())
    assert main(["plan", "x"]) == 130


def test_the_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "graphrun 0.1.0\n"
