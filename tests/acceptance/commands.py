"""Calling ``graphrun`` as a person does: as a process, in a directory of its own, with nobody else's settings."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

REPOSITORY = Path(__file__).parents[2]
SECONDS = 120.0


class CommandLine:
    """The command line in one directory; every process it starts carries a mark, by which what is left is found."""

    def __init__(self, directory: Path, **variables: str) -> None:
        self.directory = directory
        self.mark = f"GRAPHRUN_TEST_MARK={uuid4().hex}"
        name, _, value = self.mark.partition("=")
        inherited = {key: text for key, text in os.environ.items() if not key.startswith("GRAPHRUN_")}
        self.environment = inherited | {name: value, "PYTHONWARNINGS": "default", "COLUMNS": "80"} | variables

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, whose output is read from pipes."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the installed package."""
        return [sys.executable, "-m", "graphrun", *arguments]

    def write(self, name: str, text: str) -> Path:
        """Write a file into the directory."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def left(self) -> list[str]:
        """Return the command lines of the processes that this command line started and that still run."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if self.mark.encode() in environment and line:
                found.append(line.replace(b"\x00", b" ").decode(errors="replace"))
        return found

    def wait_until_nothing_is_left(self, seconds: float = 20.0) -> None:
        """Poll until every process is gone; fail with what is left."""
        deadline = time.monotonic() + seconds
        while left := self.left():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def read_until(stream, text: str) -> str:
    """Return what a stream gives up to the line with a text; fail when it ends before."""
    seen = ""
    for line in stream:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} was never printed; this was:\n{seen}")
