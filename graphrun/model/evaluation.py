"""Evaluation of a safe expression that has been read and found allowed.

This module answers for values: names, paths, short cuts, and faults with their column. It must not check syntax
(``expression``) nor measure results (``limits``), and it never reads an attribute of an object.
"""

# ruff: noqa: D102 - a visit method is named by the syntax that it gives the value of

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from graphrun.errors import ExpressionError
from graphrun.model.limits import FUNCTIONS, OPERATIONS, bounded, member

_NAMES_SHOWN = 20
_SOURCE_SHOWN = 120

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: member,
    ast.NotIn: lambda value, container: not member(value, container),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def located(source: str, node: ast.expr, message: str) -> ExpressionError:
    """Return the error for a fault at a node, with its column, counted in characters from 1."""
    text = source.lstrip()
    line = text.splitlines()[node.lineno - 1]
    column = len(line.encode()[: node.col_offset].decode(errors="ignore")) + 1
    if node.lineno > 1:
        return ExpressionError(f"line {node.lineno}, column {column}: {message}, in {quoted(source)}")
    return ExpressionError(f"column {column + len(source) - len(text)}: {message}, in {quoted(source)}")


def quoted(source: str) -> str:
    """Return the source for a message, cut where it would hide the message."""
    return repr(source if len(source) <= _SOURCE_SHOWN else source[: _SOURCE_SHOWN - 1] + "…")


class Evaluation(ast.NodeVisitor):
    """One evaluation: ``visit`` gives the value of a node. The depth was checked, so that recursion is bounded."""

    def __init__(self, source: str, scope: Mapping[str, object]) -> None:
        self._source = source
        self._scope = scope

    def generic_visit(self, node: ast.AST) -> object:
        """Refuse what has no rule here."""
        raise ExpressionError(f"{type(node).__name__} is not allowed here, in {quoted(self._source)}")

    def visit_Constant(self, node: ast.Constant) -> object:
        return node.value

    def visit_Name(self, node: ast.Name) -> object:
        if node.id in self._scope:
            return self._scope[node.id]
        names = sorted(self._scope)
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        raise located(self._source, node, f"the name {node.id!r} is not available (there are: {shown or 'none'})")

    def visit_BoolOp(self, node: ast.BoolOp) -> object:
        stops_at = isinstance(node.op, ast.Or)
        value: object = None
        for operand in node.values:
            value = self.visit(operand)
            if self._apply(node, bool, value) is stops_at:
                break
        return value

    def visit_IfExp(self, node: ast.IfExp) -> object:
        return self.visit(node.body if self._apply(node, bool, self.visit(node.test)) else node.orelse)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> object:
        return self._compute(node, _UNARY[type(node.op)], self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> object:
        left, right = self.visit(node.left), self.visit(node.right)
        return self._compute(node, OPERATIONS[type(node.op).__name__], left, right)

    def visit_Compare(self, node: ast.Compare) -> object:
        left = self.visit(node.left)
        outcome: object = True
        for sign, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.visit(comparator)
            outcome = self._apply(node, _COMPARISONS[type(sign)], left, right)
            if not self._apply(node, bool, outcome):
                break
            left = right
        return outcome

    def visit_Attribute(self, node: ast.Attribute) -> object:
        return _part(self.visit(node.value), node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> object:
        container, key = self.visit(node.value), self.visit(node.slice)
        # What a path leads to was there before and may be of any size; a slice is made here.
        look_up = self._compute if isinstance(key, slice) else self._apply
        return look_up(node, _part, container, key)

    def visit_Slice(self, node: ast.Slice) -> object:
        return slice(*(None if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)))

    def visit_Call(self, node: ast.Call) -> object:
        function = FUNCTIONS[node.func.id] if isinstance(node.func, ast.Name) else self.generic_visit
        return self._compute(node, function, *(self.visit(argument) for argument in node.args))

    def visit_List(self, node: ast.List) -> object:
        return [self.visit(item) for item in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> object:
        return tuple(self.visit(item) for item in node.elts)

    def visit_Set(self, node: ast.Set) -> object:
        return self._apply(node, set, [self.visit(item) for item in node.elts])

    def visit_Dict(self, node: ast.Dict) -> object:
        pairs = [(self.visit(key), self.visit(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        return self._apply(node, dict, pairs)

    def _compute(self, node: ast.expr, function: Callable[..., Any], *operands: Any) -> Any:
        return self._apply(node, lambda: bounded(function(*operands)))

    def _apply(self, node: ast.expr, function: Callable[..., Any], *operands: Any) -> Any:
        try:
            return function(*operands)
        except Exception as error:
            message = str(error) or type(error).__name__
            raise located(self._source, node, message) from error


def _part(container: Any, key: Any) -> Any:
    """Return what stands under a key or position; None when the path is not there."""
    if isinstance(container, dict):
        return None if isinstance(key, slice) else dict.get(container, key)
    if not isinstance(container, str | list | tuple):
        return None
    if isinstance(key, slice):
        return container[key]
    try:
        return container[key] if isinstance(key, int) else None
    except IndexError:
        return None
