"""Counting words: read files, count each, merge the counts, keep the largest. It must not know how it is scheduled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from graphrun import Context, task


@task(timeout_seconds=60)
def read(path: str) -> str:
    """Return the text of a file."""
    return Path(path).read_text(encoding="utf-8")


@task(timeout_seconds=60)
def count(text: str) -> dict[str, int]:
    """Return how often each word occurs, in lower case."""
    return dict(Counter(text.lower().split()))


@task(timeout_seconds=60)
def merge(counts: list[dict[str, int]], ctx: Context) -> dict[str, int]:
    """Add counts up; say so when some are missing, since a total that lacks a part must not look whole."""
    if ctx.missing_inputs:
        print(f"without {', '.join(ctx.missing_inputs)}")
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


@task(timeout_seconds=60)
def largest(counts: dict[str, int], limit: int = 10) -> list[tuple[str, int]]:
    """Return the most frequent words, the first in the alphabet first where two are equal."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
