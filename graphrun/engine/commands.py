"""Running a verify command: no shell, the node's output as JSON on standard input, exit code 0 passes (X16).

A command comes from a graph's document, so a worker runs it only where its operator said so (``allow_commands``).
"""

from __future__ import annotations

import subprocess

from graphrun.settings import Settings

_SHOWN_LINES = 5


def run_command(command: list[str], output: str, settings: Settings) -> str | None:
    """Run a command to its end; the node's time limits hold for it as for a body.

    Args:
        command: its words.
        output: the node's output, encoded JSON.
        settings: whether commands are allowed here.

    Returns:
        Why it failed, with the first lines that it printed; None when it passed.
    """
    name = command[0]
    if not settings.allow_commands:
        return f"verify failed: command {name!r} is not run: this worker has allow_commands off"
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell, and switched on by the operator
            command, input=output, capture_output=True, text=True, errors="backslashreplace", check=False
        )
    except OSError as error:
        return f"verify failed: command {name!r} cannot be started: {error.strerror}"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = f"verify failed: {name!r} ended with exit code {done.returncode}"
    return ": ".join([said, " | ".join(lines[:_SHOWN_LINES])]) if lines else said
