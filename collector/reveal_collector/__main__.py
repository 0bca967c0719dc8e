"""``reveal-collector``: prepares the process before it imports the command, to save memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from reveal_collector.kernel_interfaces import memory_saving


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command after deferring the imports that it rarely needs; see ``command.main``."""
    memory_saving.defer_rare_imports()
    status: int = import_module("reveal_collector.command").main(argv)
    return status


if __name__ == "__main__":
    sys.exit(main())
