"""A stream that is a terminal to whoever writes to it."""

from __future__ import annotations

import io


class TerminalStream(io.StringIO):
    """Text written to a terminal."""

    def isatty(self) -> bool:
        return True
