"""Facts about ``@task``: names, signatures, options, replacement."""

import functools
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from graphrun.errors import RegistryError
from graphrun.registry import (
    Condition,
    Context,
    Done,
    Evolved,
    Failed,
    Parameter,
    ParameterKind,
    Task,
    TaskRegistry,
    condition,
    default_registry,
    task,
)

ROOT = Path(__file__).resolve().parents[2]


class Model(BaseModel):
    x: int


@pytest.fixture
def registry():
    return TaskRegistry()


def test_the_bare_decorator_fills_the_default_registry_and_the_task_is_callable():
    @task
    def double(x: int) -> int:
        """Twice."""
        return x * 2

    assert isinstance(double, Task)
    assert double(3) == 6
    assert double.__doc__ == "Twice."
    assert inspect.signature(double) == inspect.signature(double.function)
    assert double.name == f"{__name__}.{double.function.__qualname__}"
    assert default_registry().get(double.name) is double


def test_options_are_kept_as_given(registry):
    @task(registry=registry)
    def check(output: Any) -> bool:
        return bool(output)

    @condition(registry=registry, name="nothing-to-do")
    def nothing(_params: dict[str, Any]) -> bool:
        return True

    @task(
        name="io.fetch",
        queue="io",
        owner="crawler-agt-001",
        timeout_seconds=60,
        soft_timeout_seconds=50,
        max_attempts=3,
        priority=9,
        resources=["disk"],
        verify=check,
        done_when=nothing,
        registry=registry,
    )
    def fetch(url: str) -> str:
        return url

    assert fetch.name == "io.fetch"
    assert fetch.defaults.resources == ("disk",)
    assert (fetch.defaults.verify, fetch.defaults.done_when) == (check.name, "nothing-to-do")
    policy = fetch.defaults.policy()
    assert (policy.queue, policy.timeout_seconds, policy.soft_timeout_seconds) == ("io", 60, 50)
    assert (policy.max_attempts, policy.priority) == (3, 9)


@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 7.0), ({"timeout_seconds": None}, None), ({"timeout_seconds": 5}, 5)]
)
def test_a_timeout_left_out_is_the_settings_and_none_is_unbounded(registry, options, seconds):
    @task(registry=registry, **options)
    def body() -> None: ...

    assert body.defaults.policy(default_timeout_seconds=7.0).timeout_seconds == seconds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_seconds": 0}, "timeout_seconds is above 0"),
        ({"soft_timeout_seconds": -1}, "soft_timeout_seconds is above 0"),
        ({"timeout_seconds": 5, "soft_timeout_seconds": 5}, "is not below timeout_seconds 5"),
        ({"max_attempts": 0}, "max_attempts is 1 or more"),
        ({"priority": 10}, "priority is 0 to 9"),
        ({"resources": "gpu"}, "resources is a list"),
        ({"verify": print}, "verify is a name or a Task"),
        ({"done_when": len}, "done_when is a name or a Condition"),
        ({"name": ""}, "not empty"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_by_name(registry, options, message):
    with pytest.raises(RegistryError, match=message):
        task(registry=registry, **options)(lambda: None)
    assert registry.names() == ()


def test_parameters_state_type_default_and_none(registry):
    @task(registry=registry)
    def body(a, b: int, c: str | None, d: "list[Model] | None" = None, *, e: float = 1.5, **rest: int) -> Model: ...

    assert list(body.parameters.values()) == [
        Parameter("a", Any, has_default=False, default=None, allows_none=False, kind=ParameterKind.NAMED),
        Parameter("b", int, has_default=False, default=None, allows_none=False, kind=ParameterKind.NAMED),
        Parameter("c", str | None, has_default=False, default=None, allows_none=True, kind=ParameterKind.NAMED),
        Parameter("d", list[Model] | None, has_default=True, default=None, allows_none=True, kind=ParameterKind.NAMED),
        Parameter("e", float, has_default=True, default=1.5, allows_none=False, kind=ParameterKind.NAMED),
        Parameter("rest", int, has_default=False, default=None, allows_none=False, kind=ParameterKind.FREE),
    ]
    assert body.return_annotation is Model
    assert body.wants_context is None


@pytest.mark.parametrize(
    ("annotation", "welcome"),
    [
        (None, True),
        (int | None, True),
        (Annotated[int | None, Field(ge=0)], True),
        (list[int | None], False),
        (Any, False),
        (object, False),
    ],
)
def test_only_an_annotation_that_names_none_allows_none(registry, annotation, welcome):
    def body(x): ...

    body.__annotations__["x"] = annotation
    assert task(registry=registry)(body).parameters["x"].allows_none is welcome


@pytest.mark.parametrize("annotation", [Context, Context | None, "Context", Annotated[Context, "note"]], ids=repr)
def test_the_context_is_found_by_its_annotation_and_is_no_parameter(registry, annotation):
    def body(x, who): ...

    body.__annotations__["who"] = annotation
    made = task(registry=registry)(body)
    assert made.wants_context == "who"
    assert list(made.parameters) == ["x"]


@pytest.mark.parametrize(
    ("annotation", "stripped"),
    [
        (int | Evolved, int),
        (int | Done | Failed | None, int | None),
        (Evolved, Any),
        (Done | Failed, Any),
        (inspect.Signature.empty, Any),
        (None, type(None)),
    ],
    ids=repr,
)
def test_return_classes_are_no_part_of_the_output_type(registry, annotation, stripped):
    def body(): ...

    if annotation is not inspect.Signature.empty:
        body.__annotations__["return"] = annotation
    assert task(registry=registry)(body).return_annotation == stripped


def test_string_annotations_may_name_classes_of_the_enclosing_function(registry):
    class Local(BaseModel):
        y: int

    @task(registry=registry)
    def body(one: "Local") -> "list[Local]":
        return [one]

    assert body.parameters["one"].annotation is Local
    assert body.return_annotation == list[Local]


def test_a_name_that_exists_for_type_checkers_only_is_refused_with_the_remedy(registry):
    def body(x: "Nowhere") -> int: ...  # noqa: F821 - the fact under test

    with pytest.raises(RegistryError, match=r"'Nowhere' of parameter 'x' .* not under TYPE_CHECKING"):
        task(registry=registry)(body)


def args(*values): ...


def positional(x, /): ...


def generator():
    yield 1


async def async_generator():
    yield 1


def two_contexts(a: Context, b: Context): ...


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (args, r"\*values cannot be given by name"),
        (positional, "'x' is positional-only"),
        (generator, "generator"),
        (async_generator, "generator"),
        (two_contexts, "a and b both ask"),
        (functools.partial(args), "give name="),
    ],
)
def test_a_signature_that_no_node_can_use_is_refused(registry, body, message):
    with pytest.raises(RegistryError, match=message):
        task(registry=registry)(body)


class CallableBody:
    async def __call__(self, x: int) -> int:
        return x


async def coroutine(x: int) -> int:
    return x


@pytest.mark.parametrize(
    "body", [coroutine, CallableBody(), functools.partial(coroutine)], ids=["function", "object", "partial"]
)
def test_async_bodies_are_known_as_such(body):
    made = Task(body, name="body")
    assert made.is_async
    assert made.parameters["x"].annotation is int


def test_a_plain_body_is_not_async():
    assert not Task(lambda x: x, name="plain").is_async


def load(path: Path, name: str = "reloaded_tasks"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_reloaded_module_replaces_its_tasks_and_another_function_is_refused(registry, tmp_path):
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    for path in (first, second):
        path.write_text("def body() -> int:\n    return 1\n")
    register: Callable[..., Any] = task(registry=registry, name="shared")
    register(load(first).body)
    again = register(load(first).body)
    assert registry.get("shared") is again
    with pytest.raises(RegistryError, match=r"'shared' is defined twice: .*first\.py:1 and .*second\.py:1"):
        register(load(second).body)
    assert registry.get("shared") is again


def test_a_notebook_cell_that_is_run_again_replaces_its_task(registry, tmp_path):
    for name in ("cell1.py", "cell2.py"):
        (tmp_path / name).write_text("def body() -> int:\n    return 1\n")
        task(registry=registry)(load(tmp_path / name, "__main__").body)
    assert registry.names() == ("__main__.body",)


def test_an_unknown_task_is_answered_with_the_nearest_names(registry):
    task(registry=registry, name="etl.clean")(lambda: None)
    task(registry=registry, name="other.place.load")(lambda: None)
    with pytest.raises(RegistryError, match=r"unknown task 'etl.claen'; did you mean etl.clean\?"):
        registry.get("etl.claen")
    with pytest.raises(RegistryError, match=r"did you mean other.place.load\?"):
        registry.get("load")
    with pytest.raises(RegistryError, match=r"registry\.external"):
        registry.get("zzz")


def test_an_external_name_is_known_to_graphs_but_has_no_function_here(registry):
    registry.external("java.score")
    assert "java.score" in registry
    assert registry.is_external("java.score")
    assert registry.names() == ()
    with pytest.raises(RegistryError, match="declared external"):
        registry.get("java.score")
    task(registry=registry, name="java.score")(lambda: None)
    assert not registry.is_external("java.score")
    assert registry.get("java.score").name == "java.score"


def test_conditions_are_found_by_name_and_refused_twice(registry):
    @condition(registry=registry, name="big")
    def big(result: int) -> bool:
        return result > 3

    assert isinstance(big, Condition)
    assert big(4)
    assert registry.condition("big") is big
    assert registry.condition_names() == ("big",)
    with pytest.raises(RegistryError, match="condition 'big' is defined twice"):
        condition(registry=registry, name="big")(lambda: True)
    with pytest.raises(RegistryError, match=r"did you mean big\?"):
        registry.condition("bigg")


def test_the_bare_condition_fills_the_default_registry():
    @condition
    def always() -> bool:
        return True

    assert default_registry().condition(always.name) is always


def test_importing_registry_and_builtin_loads_neither_celery_nor_sql_nor_numpy():
    probe = (
        "import sys, graphrun.registry, graphrun.builtin, graphrun.codec;"
        "print(sorted({'celery', 'kombu', 'sqlalchemy', 'numpy', 'networkx'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
