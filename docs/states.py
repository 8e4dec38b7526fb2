# ruff: noqa: INP001 - a script beside the document that it writes
"""Draw the figure of states in architecture.md from the tables of legal transitions; a test compares the two.

python docs/states.py        # writes the figure between its markers
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from graphrun.execution.state import NODE_TRANSITIONS, RUN_TRANSITIONS, TERMINAL_NODE, TERMINAL_RUN

DOCUMENT = Path(__file__).with_name("architecture.md")
BEGIN = "<!-- states: written by docs/states.py -->"
END = "<!-- end of states -->"


def figure() -> str:
    """Return both diagrams as they stand between the markers."""
    nodes = _diagram(NODE_TRANSITIONS, TERMINAL_NODE, "pending")
    runs = _diagram(RUN_TRANSITIONS, TERMINAL_RUN, "created")
    return f"{BEGIN}\nA node:\n\n{nodes}\n\nA run:\n\n{runs}\n{END}"


def drawn(text: str) -> str:
    """Return a document's figure, markers included."""
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def _diagram(table: Mapping[tuple[str, str], str], terminal: frozenset[str], first: str) -> str:
    triggers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (state, trigger), target in table.items():
        triggers[str(state), str(target)].append(str(trigger))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {state} --> {target}: {', '.join(names)}" for (state, target), names in triggers.items()]
    reached = {target for _, target in triggers}
    lines += [f"    {state} --> [*]" for state in sorted(str(state) for state in terminal) if state in reached]
    return "\n".join([*lines, "```"])


def main() -> int:
    """Write the figure into the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(text.replace(drawn(text), figure()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
