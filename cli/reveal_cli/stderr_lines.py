"""Lines on stderr: errors, warnings, and what was written."""

from __future__ import annotations

import sys

from reveal_contract.foreign_names import printable


def note(text: str, program: str = "reveal") -> None:
    """Print a line, in which names that strangers chose are inert."""
    print(f"{program}: {inert(text)}", file=sys.stderr)


def inert(text: str) -> str:
    """Return text without control characters, but for the ends of its lines."""
    return "\n".join(map(printable, text.split("\n")))
