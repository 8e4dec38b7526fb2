"""``python -m graphrun`` and the ``graphrun`` command; everything else stands in ``graphrun.cli``."""

from __future__ import annotations

import sys

from graphrun.cli import main

if __name__ == "__main__":
    sys.exit(main())
