"""One node fails at its first attempt, another one finds that the plan was too small and asks for more of it."""

from graphrun import Context, Evolved, Graph, task


@task
def download(site: str, ctx: Context) -> list[float]:
    if ctx.attempt == 1:
        raise ConnectionError(f"{site} hung up")
    return [8.5, 9.0, 31.0]


@task
def screen(readings: list[float], limit: float = 20.0) -> list[float] | Evolved:
    odd = [reading for reading in readings if reading > limit]
    if not odd:
        return readings
    recheck = {"key": "recheck", "task": "survey.recheck", "params": {"readings": odd}}
    return Evolved(
        scope="screen the readings, odd ones are checked apart",
        params={"limit": max(odd)},
        add=[recheck],
        edges=[{"head": "recheck", "tail": "publish", "parameter": "checked"}],
        reason=f"{len(odd)} of {len(readings)} readings are over {limit:g}",
    )


@task
def recheck(readings: list[float]) -> str:
    return f"{len(readings)} rechecked by hand"


@task
def publish(readings: list[float], checked: str = "nothing to check") -> str:
    return f"mean {sum(readings) / len(readings):.1f}, {checked}"


graph = Graph("survey")
downloaded = graph.add(download, site="station-7", key="download")
screened = graph.add(screen, readings=downloaded, key="screen", scope="screen the readings")
graph.add(publish, readings=screened, key="publish")
