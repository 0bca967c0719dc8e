"""Errors of reading a kernel interface."""

from __future__ import annotations


class Unsupported(Exception):
    """This host does not give what the source reads: why, and what would grant it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class ParseError(OSError):
    """A kernel file holds text its interface does not give; said with file and token."""


class LayoutChanged(Exception):
    """The columns are others than before; ``channels`` holds the new ones, read again."""
