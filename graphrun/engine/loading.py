"""Loading task modules and graph files by the name that a person gave at a command line or in the environment.

A file gets one deterministic module name, its stem, on submitter and worker alike, so that its tasks have one name
(§3.11). Nothing is ever loaded because a message or a stored document names it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from graphrun.errors import RegistryError


def load_tasks(name: str) -> ModuleType:
    """Import a dotted module, or a ``.py`` file under its stem; its ``@task`` functions are registered by that.

    Raises:
        RegistryError: there is no such module or file, it fails to import, or another module has the file's name.
    """
    path = Path(name)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise RegistryError(f"no such file: {name}")
    try:
        return _load_file(path) if is_file else _load_module(name)
    except RegistryError:
        raise
    except (Exception, SystemExit) as error:  # a script that ends its process must not end this one without a word
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise RegistryError(f"{name} cannot be imported: {text}") from error


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise RegistryError(f"no module named {name!r} (looked in {Path.cwd()} and the Python path)") from error
        raise


def _load_file(path: Path) -> ModuleType:
    full = path.resolve()
    name = full.stem
    if name in sys.stdlib_module_names:
        raise RegistryError(f"{path}: {name!r} is a module of Python itself; rename the file")
    known = sys.modules.get(name)
    if known is not None:
        origin = getattr(known, "__file__", None)
        if origin is not None and Path(origin).resolve() == full:
            return known
        raise RegistryError(f"{path}: a module named {name!r} is loaded already, from {origin}; rename the file")
    if str(full.parent) not in sys.path:
        sys.path.insert(0, str(full.parent))
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None:
        raise RegistryError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
