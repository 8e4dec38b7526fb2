"""Safe expressions: what a condition or a transform may say, and nothing else.

This module answers for reading an expression: which syntax is allowed, and how long and deep. ``evaluation`` answers
for its value. It must not use ``eval``, import anything by name, or reach an attribute of an object.

Allowed are comparisons, ``and or not``, the conditional, arithmetic, literals, subscripts and slices, attributes
without a leading underscore (a dict's key), and calls of ``len str int float bool abs min max round sorted``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from graphrun.errors import ExpressionError
from graphrun.model.evaluation import Evaluation, located, quoted
from graphrun.model.limits import FUNCTIONS, bounded

MAX_CHARACTERS = 4_096
MAX_DEPTH = 20

_ALLOWED: tuple[type[ast.AST], ...] = (
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Constant, ast.Name),
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)


class Expression:
    """An expression that was read and found allowed; immutable, equal when the source is.

    Attributes:
        source: the text.
        names: the top-level names that it reads.
    """

    __slots__ = ("_tree", "names", "source")

    def __init__(self, source: str, tree: ast.expr) -> None:
        self.source = source
        self.names = frozenset(_names_read(tree))
        self._tree = tree

    def evaluate(self, scope: Mapping[str, object]) -> object:
        """Return the value with these names; a path that is not there is None.

        Raises:
            ExpressionError: a name is missing, an operation fails, or a result would be too large.
        """
        return Evaluation(self.source, scope).visit(self._tree)

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)

    def __reduce__(self) -> tuple[Callable[[str], Expression], tuple[str]]:
        return compile_expression, (self.source,)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"


def compile_expression(source: str) -> Expression:
    """Read an expression; the last ones read are remembered.

    Raises:
        ExpressionError: names the fault and the column.
    """
    if not isinstance(source, str) or not source.strip():
        raise ExpressionError(f"an expression is a string that is not empty, got {source!r}")
    return _compiled(source)


@lru_cache(maxsize=1_024)
def _compiled(source: str) -> Expression:
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"the expression has {len(source)} characters; at most {MAX_CHARACTERS} are allowed")
    try:
        tree = ast.parse(source.lstrip(), mode="eval").body  # leading blanks would count as an indentation
    except SyntaxError as error:
        indent = len(source) - len(source.lstrip()) if error.lineno == 1 else 0
        line = "" if error.lineno in {None, 1} else f"line {error.lineno}, "
        column = error.offset + indent if error.offset else len(source) + 1  # 0 means that the text ends too early
        raise ExpressionError(f"{line}column {column}: {error.msg}, in {quoted(source)}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"column 1: {error or 'nested too deeply'}, in {quoted(source)}") from None
    _check(source, tree)
    return Expression(source, tree)


def _check(source: str, tree: ast.expr) -> None:
    # Iterative, since the parser accepts deeper trees than the stack holds.
    open_nodes: list[tuple[ast.AST, ast.expr, int]] = [(tree, tree, 1)]
    while open_nodes:
        node, place, depth = open_nodes.pop()
        if isinstance(node, ast.expr):
            place = node
        too_deep = depth > MAX_DEPTH and isinstance(node, ast.expr)
        fault = f"the expression is nested deeper than {MAX_DEPTH}" if too_deep else _fault(node)
        if fault:
            raise located(source, place, fault)
        deeper = depth + isinstance(node, ast.expr)
        open_nodes.extend((child, place, deeper) for child in ast.iter_child_nodes(node))


def _literal_fault(literal: ast.Constant) -> str | None:
    value = literal.value
    if value is not None and not isinstance(value, str | int | float):
        return f"literals of type {type(value).__name__} are not allowed"
    try:
        bounded(value)
    except ValueError as error:
        return str(error)
    return None


def _call_fault(call: ast.Call) -> str | None:
    if not isinstance(call.func, ast.Name) or call.func.id not in FUNCTIONS:
        return f"only {', '.join(FUNCTIONS)} can be called"
    return "keyword arguments are not allowed" if call.keywords else None


def _identity_fault(compare: ast.Compare) -> str | None:
    operands = [compare.left, *compare.comparators]
    for operator, left, right in zip(compare.ops, operands, operands[1:], strict=False):
        if isinstance(operator, ast.Is | ast.IsNot) and not (_is_none(left) or _is_none(right)):
            return "'is' compares with None only; use =="
    return None


def _attribute_fault(attribute: ast.Attribute) -> str | None:
    return f"attribute {attribute.attr!r} begins with an underscore" if attribute.attr.startswith("_") else None


def _dict_fault(display: ast.Dict) -> str | None:
    return "unpacking is not allowed" if None in display.keys else None


def _tuple_fault(display: ast.Tuple) -> str | None:
    sliced = any(isinstance(member, ast.Slice) for member in display.elts)
    return "a slice stands alone in its brackets" if sliced else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_FAULTS: dict[type[ast.AST], Callable[[Any], str | None]] = {
    ast.Constant: _literal_fault,
    ast.Call: _call_fault,
    ast.Compare: _identity_fault,
    ast.Attribute: _attribute_fault,
    ast.Dict: _dict_fault,
    ast.Tuple: _tuple_fault,
}


def _fault(node: ast.AST) -> str | None:
    if not isinstance(node, _ALLOWED):
        return f"{type(node).__name__} is not allowed"
    find = _FAULTS.get(type(node))
    return find(node) if find else None


def _names_read(tree: ast.expr) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            yield node.id
