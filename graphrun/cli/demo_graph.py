"""The graph that ``graphrun demo`` runs: eight nodes in four waves, of which one fails once and one evolves.

It is in the wheel, so that the demo needs no checkout, and loads no engine: workers import it for its one task.
"""

from __future__ import annotations

from graphrun.build import Graph
from graphrun.builtin import add, echo, fail_once, sleep
from graphrun.registry import Context, Evolved, task

REFUNDS = {"key": "refunds", "task": "graphrun.builtin.echo", "params": {"value": {"$node": "check"}}}


@task
def check_orders(orders: int, ctx: Context, *, deeper: bool = False) -> int | Evolved:
    """Find something odd at first: ask for a deeper check, and for a node that looks at refunds after it."""
    if deeper:
        return orders
    return Evolved(
        scope="count orders, refunds apart",
        params={"deeper": True},
        add=[REFUNDS],
        edges=[("refunds", "report")],
        reason=f"{ctx.key} found refunds among the orders",
    )


def demo_graph() -> Graph:
    """Return the graph: orders of three regions, summed up and reported."""
    graph = Graph("demo")
    north = graph.add(sleep, seconds=0.4, value=120, key="north")
    south = graph.add(fail_once, value=80, key="south")
    west = graph.add(echo, value=45, key="west")
    subtotal = graph.add(add, a=north, b=south, key="subtotal")
    check = graph.add(check_orders, orders=west, key="check", scope="count orders")
    total = graph.add(add, a=subtotal, b=check, key="total")
    graph.add(echo, total=total, key="report")
    graph.add(sleep, seconds=0.2, value="archived", after=[total], key="archive")
    return graph
