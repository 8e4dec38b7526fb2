"""What a graph is: elements, their ordered collections, and the mutable directed graph of nodes and edges.

This package answers for structure and its invariants. It must not know runs, storage, brokers, files or logs.
"""

from __future__ import annotations

from graphrun.model.condition import Condition, EdgeCondition, ExpressionCondition, NamedCondition
from graphrun.model.edge import Edge
from graphrun.model.element import Collection, Element, Ref
from graphrun.model.expression import Expression, compile_expression
from graphrun.model.flow import Flow
from graphrun.model.graph import Graph
from graphrun.model.node import Node
from graphrun.model.pile import Pile, PileView
from graphrun.model.progression import Progression

__all__ = [
    "Collection",
    "Condition",
    "Edge",
    "EdgeCondition",
    "Element",
    "Expression",
    "ExpressionCondition",
    "Flow",
    "Graph",
    "NamedCondition",
    "Node",
    "Pile",
    "PileView",
    "Progression",
    "Ref",
    "compile_expression",
]
