"""What is done before it starts: an output given at submit, a declared output that exists, a named check (X10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import fsspec

from graphrun.codec import encode, from_plain
from graphrun.errors import EncodingError, GraphError, RegistryError
from graphrun.execution.inputs import evaluate_condition, run_scope
from graphrun.execution.run import EdgeRun, NodeRun
from graphrun.execution.state import NodeState
from graphrun.model.spec import NodeSpec, references
from graphrun.registry import TaskRegistry

_EXISTS = "output"


def find_pre_done(nodes: Iterable[NodeSpec], given: Mapping[str, Any], registry: TaskRegistry) -> dict[int, str]:
    """Return the encoded outputs of the nodes that need not run, by node id.

    Args:
        nodes: in declared order; a node's id is its place.
        given: outputs by node key, from the submitter.
        registry: for return types and named checks.

    Raises:
        GraphError: an output is given for a key that is not in the graph, cannot be stored, or a check cannot be made.
    """
    outputs: dict[int, str] = {}
    unused = dict(given)
    for node_id, node in enumerate(nodes):
        if node.key in unused:
            outputs[node_id] = _encoded(node, unused.pop(node.key), registry)
        elif node.done_when is not None and _is_done(node, registry):
            outputs[node_id] = encode(node.output)
    if unused:
        raise GraphError(f"outputs are given for nodes that are not in the graph: {', '.join(map(repr, unused))}")
    return outputs


def mark_pre_done(
    run_id: str,
    nodes: Iterable[NodeRun],
    edges: Iterable[EdgeRun],
    specs: tuple[NodeSpec, ...],
    outputs: Mapping[int, str],
) -> tuple[tuple[NodeRun, ...], tuple[EdgeRun, ...]]:
    """Return the rows with done nodes marked and the conditions on their outgoing edges evaluated."""
    marked = tuple(
        replace(node, state=NodeState.SUCCEEDED, pre_done=True) if node.node_id in outputs else node for node in nodes
    )
    decided = tuple(
        replace(edge, truth=_truth(run_id, edge, specs[edge.head], outputs[edge.head]))
        if edge.when is not None and edge.head in outputs
        else edge
        for edge in edges
    )
    return marked, decided


def output_exists(url: str) -> bool:
    """Say whether a declared output, a path or any fsspec URL, exists and is not empty (D4)."""
    filesystem, path = fsspec.core.url_to_fs(url)
    if not filesystem.exists(path):
        return False
    if filesystem.isdir(path):
        return bool(filesystem.ls(path))
    size = filesystem.size(path)
    return bool(filesystem.cat_file(path, end=1) if size is None else size)  # not every server tells a size


def _truth(run_id: str, edge: EdgeRun, spec: NodeSpec, output: str) -> Any:
    return evaluate_condition(
        edge.when or "",
        result=from_plain(json.loads(output)),
        status=NodeState.SUCCEEDED.value,
        params=spec.params,
        run=run_scope(run_id),
    )


def _encoded(node: NodeSpec, value: Any, registry: TaskRegistry) -> str:
    try:
        annotation = registry.get(node.task).return_annotation
    except RegistryError:
        annotation = Any  # declared external: its return type is known where it runs
    try:
        return encode(value, annotation)
    except EncodingError as error:
        raise GraphError(f"the output given for node {node.key!r} cannot be stored: {error}") from error


def _is_done(node: NodeSpec, registry: TaskRegistry) -> bool:
    """Ask the check of a node; whatever it raises is the check's fault, and names the node."""
    if node.done_when == _EXISTS and node.output is None:
        raise GraphError(f"node {node.key!r}: done_when is 'output', but no output is declared")
    try:
        return output_exists(node.output or "") if node.done_when == _EXISTS else _says_done(node, registry)
    except Exception as error:
        what = f"output {node.output!r}" if node.done_when == _EXISTS else f"condition {node.done_when!r}"
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise GraphError(f"node {node.key!r}: done_when cannot be checked, {what}: {text}") from error


def _says_done(node: NodeSpec, registry: TaskRegistry) -> bool:
    """Ask the named check, which gets the node's literal parameters; it cannot see outputs that do not exist yet."""
    check = registry.condition(node.done_when or "")
    bound = {name for name, _head, _path, _nested in references(node.params)}
    literals = {name: from_plain(value) for name, value in node.params.items() if name not in bound}
    return bool(check(**literals))
