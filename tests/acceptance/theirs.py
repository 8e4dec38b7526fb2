"""An application that had Celery before it had graphrun: a plain app with plain tasks, and ``install``."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery

import graphrun

app = Celery("theirs", broker=os.environ["GRAPHRUN_BROKER_URL"], backend=os.environ["GRAPHRUN_RESULT_URL"])
app.conf.update(
    task_default_queue=os.environ["GRAPHRUN_QUEUE"] + "-own",
    task_routes={"theirs.resize": {"queue": os.environ["GRAPHRUN_QUEUE"] + "-images"}},
    task_create_missing_queues=True,
)


@app.task
def resize(path: str, width: int = 10) -> str:
    """A task without a self."""
    return f"{path}@{width}"


@app.task(bind=True, max_retries=3)
def asks_for_a_retry(self: Any, value: int) -> int:
    """A task that uses Celery's own retry, which is a failed attempt of its node."""
    if value:
        raise self.retry(countdown=0)
    return value


@app.task(bind=True)
def replaces_itself(self: Any) -> None:
    """A task that hands on to another one, which a node may not."""
    self.replace(resize.s("other"))


graphrun.install(app)
