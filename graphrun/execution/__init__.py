"""How a graph runs: states, events, commands and the planner.

Pure: no clock, random, log, network, database or Celery. What it needs comes in, what it wants done goes out.
"""
