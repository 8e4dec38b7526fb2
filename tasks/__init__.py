"""An application's own node bodies, as your project would have them: plain functions, no graph, no Celery.

A worker learns them with ``graphrun worker --tasks tasks``; graphrun itself never imports this package.
"""

from tasks.wordcount import count, largest, merge, read

__all__ = ["count", "largest", "merge", "read"]
