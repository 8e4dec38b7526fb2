"""Times, and JSON on streams that cannot show every character."""

from __future__ import annotations

import io
import json

import pytest

from graphrun.cli.console import duration, show_json


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0, "0 ms"), (0.25, "250 ms"), (3.21, "3.2 s"), (75, "1 min 15 s"), (3_725, "1 h 02 min")],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_can_be_read_whatever_the_stream(encoding, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", stream)
    show_json({"key": "wave∥"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == {"key": "wave∥"}
