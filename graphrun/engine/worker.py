"""The ready-made worker application: ``celery -A graphrun.engine.worker worker``.

It is built from the environment when it is imported, which only a worker, Flower and the command line do. Task modules
named in ``GRAPHRUN_TASKS`` (comma-separated modules or ``.py`` files) are imported here, at the worker's start: never
because a message names them.
"""

from __future__ import annotations

import os

from graphrun import builtin
from graphrun.engine.app import make_app
from graphrun.engine.loading import load_tasks

__all__ = ["app", "builtin"]

for _name in filter(None, os.environ.get("GRAPHRUN_TASKS", "").split(",")):
    load_tasks(_name)

app = make_app()
