"""Graphs from elsewhere: one file a format, one registry. It reads and writes files; it judges and runs nothing."""

from __future__ import annotations

from graphrun.formats.registry import FORMATS, Format, read_graph, write_graph

__all__ = ["FORMATS", "Format", "read_graph", "write_graph"]
