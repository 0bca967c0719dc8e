"""Blocks that are drawn again where they stand, on a terminal that can do so."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console
from rich.live import Live


def can_redraw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can draw over what it displays."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def redrawn_block(target: Console) -> Live:
    """Return a block that is drawn again where it stands, and goes when it is stopped.

    It has no thread of its own: that would delay the work that it is about.
    """
    return Live(
        console=target, auto_refresh=False, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
