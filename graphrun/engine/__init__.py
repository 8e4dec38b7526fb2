"""The only part that speaks Celery: it carries out what the planner decides, on what the ledger knows.

Importing this package loads no Celery; the modules that need it do. ``attempt`` and ``coordinator`` do the work,
``dispatcher`` and ``inline`` are the two ways to send it, ``node_task`` and ``app`` join it to Celery.
"""
