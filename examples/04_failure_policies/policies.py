"""The same graph under the three failure policies: one of two sources is down for good."""

from graphrun import Context, Graph, task


@task
def read(source: str) -> int:
    if source == "broken":
        raise OSError("the source is down")
    return len(source)


@task
def merge(ctx: Context, parts: list[int] | None = None) -> str:
    return f"{sum(parts or [])}, without {', '.join(ctx.missing_inputs) or 'any gap'}"


@task
def announce(text: str) -> str:
    return f"merged: {text}"


def build(policy: str) -> Graph:
    graph = Graph(f"sources-{policy}", failure_policy=policy)
    good = graph.add(read, source="working", key="good")
    bad = graph.add(read, source="broken", key="bad")
    merged = graph.add(merge, parts=[good, bad], key="merge")
    graph.add(announce, text=merged, key="announce")
    return graph


def proceed() -> Graph:
    return build("proceed")


def skip_dependents() -> Graph:
    return build("skip_dependents")


def fail_fast() -> Graph:
    return build("fail_fast")


if __name__ == "__main__":
    for make in (proceed, skip_dependents, fail_fast):
        print(make.__name__)
        for node in make().run().report().nodes:
            print(f"  {node.key:9} {node.status:10} {node.cause or ''}")
