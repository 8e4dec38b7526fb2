"""The registry of formats: which there are, which one a file is in, and reading and writing by it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from graphrun.errors import FormatError
from graphrun.formats import node_list, own, wfformat
from graphrun.formats.documents import read_json, read_yaml
from graphrun.formats.measured import Mode
from graphrun.model.spec import GraphSpec

_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What may be said about measured graphs, as in ``read_graph``."""

    time_scale: float = 1.0
    cap_seconds: float | None = None
    mode: Mode = "sleep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format: how a document of it is known, read, and, where that is possible, written."""

    name: str
    summary: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, str, ImportOptions], GraphSpec]
    write: Callable[[GraphSpec], str] | None = None


def _wfformat(document: Any, source: str, options: ImportOptions) -> GraphSpec:
    return wfformat.read(
        document, source, time_scale=options.time_scale, cap_seconds=options.cap_seconds, mode=options.mode
    )


def _own(document: Any, source: str, _options: ImportOptions) -> GraphSpec:
    return own.read(document, source)


FORMATS: dict[str, Format] = {
    item.name: item
    for item in (
        Format(
            name="wfformat",
            summary="WfFormat 1.3 to 1.5, measured workflows of WfCommons",
            matches=wfformat.matches,
            read=_wfformat,
        ),
        Format(
            name="node-list",
            summary='plain lists: {"nodes": [names], "edges": [[i, j]]}',
            matches=node_list.matches,
            read=lambda document, source, _options: node_list.read(document, source),
        ),
        Format(name="json", summary="graphrun's own format as JSON", matches=own.matches, read=_own, write=own.to_json),
        Format(name="yaml", summary="graphrun's own format as YAML", matches=own.matches, read=_own, write=own.to_yaml),
    )
}


def read_graph(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    time_scale: float = 1.0,
    cap_seconds: float | None = None,
    mode: Mode = "sleep",
) -> GraphSpec:
    """Read a graph from a file, ``.gz`` or plain.

    Args:
        path: the file.
        format: one of ``FORMATS``; found by what the file holds when None.
        time_scale: factor on every measured time of a measured graph.
        cap_seconds: no measured node takes longer than this; None is no cap.
        mode: whether a measured node sleeps or burns CPU time.

    Raises:
        FormatError: there is no such file, it is not of the format, or of none that is known; every fault is named.
    """
    file = Path(path)
    source = file.name
    chosen = _named(format) if format else None
    text = _text(file)
    is_yaml = format == "yaml" or (format != "json" and _suffix(file) in _YAML)
    try:
        document = read_yaml(text, source) if is_yaml else read_json(text, source)
    except FormatError as error:
        if format or _suffix(file) in (".json", *_YAML):
            raise
        raise _unknown(source) from error
    chosen = chosen or _found(document, source)
    if format and not chosen.matches(document):
        raise FormatError(f"{source} is not {chosen.summary}")
    options = ImportOptions(time_scale=time_scale, cap_seconds=cap_seconds, mode=mode)
    return chosen.read(document, source, options)


def write_graph(spec: GraphSpec, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002 - the word users know
    """Write a graph to a file, compressed when it is called ``.gz``.

    Nothing else is written, and an existing file is replaced as a whole or not at all.

    Raises:
        FormatError: the format cannot be written, or the file cannot be made.
    """
    file = Path(path)
    if not format and _suffix(file) not in (".json", *_YAML):
        raise FormatError(f"{file}: a graph is written to a .json or a .yaml file, either of them also as .gz")
    chosen = _named(format or ("yaml" if _suffix(file) in _YAML else "json"))
    if chosen.write is None:
        writable = ", ".join(item.name for item in FORMATS.values() if item.write)
        raise FormatError(f"format {chosen.name!r} is read only; these are written: {writable}")
    content = chosen.write(spec).encode()
    draft = file.with_name(f".graphrun-{uuid4().hex}.part")
    try:
        draft.write_bytes(gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)
        draft.replace(file)
    except OSError as error:
        raise FormatError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _suffix(file: Path) -> str:
    return file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise FormatError(f"unknown format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def _found(document: Any, source: str) -> Format:
    if isinstance(document, dict) and document.get("nodes") == []:
        return FORMATS["json"]
    for item in FORMATS.values():
        if item.matches(document):
            return item
    if isinstance(document, dict) and "nodes" in document and not own.is_foreign(document["nodes"]):
        return FORMATS["json"]  # its reader names what is wrong with the nodes
    raise _unknown(source)


def _unknown(source: str) -> FormatError:
    known = "; ".join(f"{item.name}: {item.summary}" for item in FORMATS.values())
    return FormatError(f"{source} is not a graph of any known format ({known})")


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FormatError(f"{file} cannot be read: {error.strerror}") from error
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return content.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"{file.name} is not text: {error}") from error
