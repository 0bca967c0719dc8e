"""Progress of a long analysis of a table: a line on stderr that is redrawn, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from rich.text import Text

from reveal_cli.options import format_duration
from reveal_cli.redrawn_block import can_redraw, redrawn_block
from reveal_cli.terminal import console

_QUIET_S = 2.0  # a shorter analysis needs no progress
_REFRESH_S = 0.25


class TableProgress:
    """Shows which step of an analysis runs, and how much of it is done, after two seconds."""

    def __init__(self, name: str, stream: TextIO | None = None, quiet_s: float = _QUIET_S) -> None:
        stream = stream or sys.stderr
        self._live = redrawn_block(console(stream)) if can_redraw(stream) else None
        self._name, self._step = name, ""
        self._started = time.monotonic()
        self._next = self._started + quiet_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, name: str) -> None:
        """Begin a step of the analysis."""
        self._step = name
        self.update(0.0)

    def update(self, share: float) -> None:
        """Report the share of the step that is done."""
        now = time.monotonic()
        if self._live is None or now < self._next:
            return
        self._next = now + _REFRESH_S
        self._live.start()
        self._live.update(self._line(share, now - self._started), refresh=True)

    def _line(self, share: float, elapsed_s: float) -> Text:
        done = f" {share:.0%}" if share > 0.0 else ""
        line = f"reveal · {self._name} · {format_duration(elapsed_s)} · {self._step}{done}"
        return Text(line, no_wrap=True, overflow="ellipsis")
