"""Bytes a node puts on the broker, and how long a submit takes: O9, H10. Ratios and sizes, never a test.

    python bench/messages.py [--json]

For graphs of 10 to 5,000 nodes it submits with a private Redis and no worker, reads every message of the first wave
from the queue, and prints the largest. 20 waves of 50 nodes, which read three or all fifty of the wave before, are
submitted five times and timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import redis

from graphrun import Client, Graph, Settings
from graphrun.builtin import measured
from graphrun.engine.local import LocalServer


def layered(waves: int, width: int, heads_a_node: int = 3) -> Graph:
    """Return a graph in which every node reads up to so many nodes of the previous wave."""
    graph = Graph(f"layered-{waves}x{width}")
    before: list = []
    few = min(heads_a_node, width)
    for wave in range(waves):
        heads = [[before[(i + k) % width] for k in range(few)] if before else [] for i in range(width)]
        before = [graph.add(measured, seconds=0, inputs=heads[i], key=f"wave-{wave}-node-{i}") for i in range(width)]
    return graph


def queued_messages(url: str) -> list[bytes]:
    """Return every message that waits in a queue of a Redis broker."""
    client = redis.Redis.from_url(url)
    keys = [key for key in client.keys("graphrun*") if client.type(key) == b"list"]
    return [message for key in keys for message in client.lrange(key, 0, -1)]


def measure() -> dict:
    """Return sizes by graph and the time of a submit."""
    result: dict = {"largest_message_bytes": {}, "submit_seconds": {}}
    with tempfile.TemporaryDirectory() as directory, LocalServer() as server:
        settings = Settings.load(
            broker_url=server.broker_url,
            result_url=server.result_url,
            database_url=f"sqlite:///{Path(directory) / 'bench.db'}",
        )
        client = Client(settings)
        for waves, width in ((1, 10), (10, 100), (1, 1000), (50, 100), (1, 5000)):
            redis.Redis.from_url(server.broker_url).flushdb()  # a server of this process alone
            client.submit(layered(waves, width))
            sizes = [len(message) for message in queued_messages(server.broker_url)]
            result["largest_message_bytes"][f"{waves}x{width}"] = max(sizes)
        for name, heads in (("20x50, 3 heads a node", 3), ("20x50, 50 heads a node", 50)):
            graph = layered(20, 50, heads).freeze()
            times = []
            for _ in range(5):
                start = time.perf_counter()
                client.submit(graph)
                times.append(time.perf_counter() - start)
            result["submit_seconds"][name] = round(statistics.median(times), 3)
    return result


def main() -> int:
    """Print the figures, as a table or as one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    result = measure()
    if parser.parse_args().json:
        print(json.dumps(result))
        return 0
    for shape, size in result["largest_message_bytes"].items():
        print(f"{shape:>8} nodes: largest message {size} bytes")
    for shape, seconds in result["submit_seconds"].items():
        print(f"{shape:>23} submit: {seconds} s, median of five")
    return 0


if __name__ == "__main__":
    sys.exit(main())
