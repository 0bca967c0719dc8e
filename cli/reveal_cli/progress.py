"""Progress of a scan on stderr: a live block on a terminal, warnings alone elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from reveal_cli.lost_time_text import short_lines
from reveal_cli.options import format_duration
from reveal_cli.redrawn_block import can_redraw, redrawn_block
from reveal_cli.stderr_lines import inert
from reveal_cli.terminal import console
from reveal_contract.metric import Subsystem

if TYPE_CHECKING:
    from reveal_analyzer.ledger.lost_time import LostTime

_BAR_WIDTH = 24
_MAX_ROWS = 3  # of each list of the block


@dataclass(frozen=True)
class ProgressView:
    """The state of a scan.  ``scores`` are multiples of the threshold of each subsystem.

    ``lost_time`` is of the last seconds; ``ledger`` is its tier, or why there is none.
    """

    node: str
    phase: str
    elapsed: float
    duration: float
    slices: int = 0
    lost: int = 0
    channels: int = 0
    warmup_left: float = 0.0
    findings: int = 0
    scores: Mapping[Subsystem, float] = field(default_factory=dict)
    suspected: Sequence[str] = ()
    changed: Sequence[str] = ()
    step_times: Sequence[str] = ()
    lost_time: Sequence[LostTime] = ()
    ledger: str = ""
    warning: str = ""


class Progress(Protocol):
    """Where a scan reports its progress."""

    def update(self, view: ProgressView) -> None:
        """Draw the current state."""

    def warn(self, line: str) -> None:
        """Print a warning."""

    def event(self, line: str) -> None:
        """Print a line for those who watch, such as a new finding."""

    def stop(self) -> None:
        """Remove the block and restore the cursor."""


class PlainProgress:
    """Prints warnings only: stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def update(self, view: ProgressView) -> None:
        """Draw nothing."""

    def warn(self, line: str) -> None:
        print(f"reveal: {inert(line)}", file=self._stream, flush=True)

    def event(self, line: str) -> None:
        """Print nothing."""

    def stop(self) -> None:
        """Do nothing: there is no block."""


class LiveProgress:
    """Redraws a block in place; warnings and events stay above it."""

    refresh_s = 0.25

    def __init__(self, target: Console) -> None:
        self._console = target
        self._live = redrawn_block(target)
        self._next = 0.0

    def update(self, view: ProgressView) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.refresh_s
            self._live.start()
            self._live.update(self.draw(view), refresh=True)

    def draw(self, view: ProgressView) -> RenderableType:
        """Return the block."""
        return progress_block(view)

    def warn(self, line: str) -> None:
        self._console.print(Text(f"reveal: {line}", style="yellow"))

    def event(self, line: str) -> None:
        self._console.print(Text(line))

    def stop(self) -> None:
        self._live.stop()


def open_progress(stream: TextIO | None = None) -> Progress:
    """Return the live block for a terminal that can redraw, else warnings only."""
    stream = stream or sys.stderr
    return LiveProgress(console(stream)) if can_redraw(stream) else PlainProgress(stream)


def progress_block(view: ProgressView) -> RenderableType:
    """Return the block: a headline, a bar for each subsystem, and what is suspected."""
    lines: list[RenderableType] = [_line(_headline(view), "bold")]
    if view.scores:
        lines += [_bars(view.scores), _line("  a full bar is a finding", "dim")]
    lines += _listed("suspected", view.suspected, "yellow")
    lines += _listed("changed", view.changed, "dim")
    lines += _listed("steps", view.step_times, "dim")
    lines += _listed("lost", short_lines(view.lost_time), "dim")
    if view.warning:
        lines.append(_line(f"  {view.warning}", "yellow"))
    return Group(*lines)


def _bars(scores: Mapping[Subsystem, float]) -> Table:
    rows = Table.grid(padding=(0, 2, 0, 0))
    for subsystem, score in scores.items():
        style = "red" if score >= 1 else "yellow" if score >= 0.6 else "green"
        bar = ProgressBar(
            total=1.0, completed=min(1.0, score), width=_BAR_WIDTH,
            complete_style=style, finished_style=style,
        )  # fmt: skip
        rows.add_row(f"  {subsystem.value}", bar, Text(f"{score:.2f}", style=style))
    return rows


def _headline(view: ProgressView) -> str:
    total = "" if math.isinf(view.duration) else f" of {format_duration(view.duration)}"
    parts = [f"reveal · {view.node}", f"{format_duration(view.elapsed)}{total}", view.phase]
    if view.warmup_left > 0:
        parts[-1] += f" ({format_duration(view.warmup_left)} left)"
    if view.slices:
        lost = f", {view.lost} lost" if view.lost else ""
        parts.append(f"{view.slices} slices of {view.channels} channels{lost}")
    if view.findings:
        parts.append(f"{view.findings} finding{'s' if view.findings > 1 else ''}")
    return " · ".join(parts)


def _listed(title: str, lines: Sequence[str], style: str) -> Iterator[Text]:
    for number, line in enumerate(lines[:_MAX_ROWS]):
        yield _line(f"  {title if number == 0 else '':<9}  {line}", style)
    if len(lines) > _MAX_ROWS:
        yield _line(f"  {'':<9}  and {len(lines) - _MAX_ROWS} more", style)


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
