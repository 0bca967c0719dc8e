"""Errors of reading a kernel interface."""

from __future__ import annotations


class Unsupported(Exception):
    """This host does not provide what the source reads; ``remedy`` says what would provide it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class ParseError(OSError):
    """A kernel file has unexpected content; the message names the file and the token."""


class LayoutChanged(Exception):
    """The columns have changed: ``channels`` has the new ones, and the next read returns them."""
