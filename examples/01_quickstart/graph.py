"""Read the sales of two shops at the same time, then add them up."""

from graphrun import Graph, task

SALES = {"north": "12 7 30", "south": "4 18"}


@task
def fetch(shop: str) -> list[int]:
    return [int(number) for number in SALES[shop].split()]


@task
def total(parts: list[list[int]]) -> int:
    return sum(map(sum, parts))


graph = Graph("quickstart")
north = graph.add(fetch, shop="north", key="north")
south = graph.add(fetch, shop="south", key="south")
graph.add(total, parts=[north, south], key="total")
