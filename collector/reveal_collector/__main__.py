"""``reveal-collector``: what stands before the command itself, to keep it small."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from reveal_collector.kernel import memory_saving


def main(argv: Sequence[str] | None = None) -> int:
    """The command, after what makes its imports cheaper; see ``command.main``."""
    memory_saving.defer_rare_imports()
    status: int = import_module("reveal_collector.command").main(argv)
    return status


if __name__ == "__main__":
    sys.exit(main())
