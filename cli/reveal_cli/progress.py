"""Live progress on a terminal: one block that is drawn over itself, and lines above it.

``block`` decides what is shown and is pure; ``Terminal`` and ``Quiet`` put it on stderr.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from reveal_cli.options import clock
from reveal_contract.metric import Subsystem

BAR = 24
_AT_CUT = (
    16  # cells of the bar that a score at its cut fills; the rest shows by how much it is over
)
_LABEL = 11
_SHOWN = 3
_SHADES = {"bold": "1", "red": "31", "yellow": "33", "green": "32", "dim": "2"}


@dataclass(frozen=True)
class View:
    """What is known at this moment.  ``over`` maps subsystems to score over cut."""

    node: str
    phase: str
    elapsed: float
    duration: float
    slices: int = 0
    lost: int = 0
    channels: int = 0
    warmup_left: float = 0.0
    findings: int = 0
    over: Mapping[Subsystem, float] = field(default_factory=dict)
    suspected: Sequence[str] = ()
    changed: Sequence[str] = ()
    heartbeats: Sequence[str] = ()
    trouble: str = ""


class Progress(Protocol):
    def show(self, view: View) -> None:
        """Draw the state of this moment."""

    def say(self, line: str) -> None:
        """A line that stays: a warning."""

    def event(self, line: str) -> None:
        """A line that stays, for those who watch: a finding was opened."""

    def clear(self) -> None:
        """Take the block away."""


class Quiet:
    """Not a terminal: warnings only."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def show(self, view: View) -> None:
        pass

    def say(self, line: str) -> None:
        print(f"reveal: {line}", file=self._stream, flush=True)

    def event(self, line: str) -> None:
        pass

    def clear(self) -> None:
        pass


class Terminal:
    """Draws on a terminal with the cursor movements every terminal knows."""

    def __init__(self, stream: TextIO, paint: bool) -> None:
        self._stream = stream
        self._paint = paint
        self._drawn = 0

    def show(self, view: View) -> None:
        width = shutil.get_terminal_size().columns
        lines = block(view, width - 1, self._paint)
        self._put([*lines])
        self._drawn = len(lines)

    def say(self, line: str) -> None:
        self._put([shade(f"reveal: {line}", "yellow", self._paint)])

    def event(self, line: str) -> None:
        self._put([line])

    def clear(self) -> None:
        self._put([])

    def _put(self, lines: Sequence[str]) -> None:
        """Replace the block by ``lines``; the next block goes below them."""
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self._stream.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._drawn = 0


def open_progress(stream: TextIO | None = None) -> Progress:
    """The block on a terminal, warnings only elsewhere."""
    stream = stream or sys.stderr
    if not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Quiet(stream)
    return Terminal(stream, paint="NO_COLOR" not in os.environ)


def block(view: View, width: int, paint: bool = False) -> list[str]:
    """The lines of the block, each at most ``width`` columns wide."""
    lines = [(_headline(view), "bold")]
    for subsystem, over in view.over.items():
        colour = "red" if over >= 1 else "yellow" if over >= 0.6 else "green"
        lines.append((f"  {subsystem.value:<{_LABEL}}{bar(over)} {over:5.2f}", colour))
    if view.over:
        lines.append((f"{'':<{2 + _LABEL + _AT_CUT}}└ 1.00: a fault", "dim"))
    lines += _listed("suspected", view.suspected, "yellow")
    lines += _listed("changed", view.changed, "dim")
    lines += _listed("heartbeat", view.heartbeats, "dim")
    if view.trouble:
        lines.append((f"  {view.trouble}", "yellow"))
    return [shade(line[:width], colour, paint) for line, colour in lines]


def bar(over: float) -> str:
    """A score over its cut; two thirds of the bar are the cut itself."""
    filled = max(0, min(BAR, round(over * _AT_CUT)))
    cells = "█" * filled + "·" * (BAR - filled)
    return f"{cells[:_AT_CUT]}│{cells[_AT_CUT:]}"


def shade(text: str, colour: str, paint: bool) -> str:
    return f"\x1b[{_SHADES[colour]}m{text}\x1b[0m" if paint else text


def _headline(view: View) -> str:
    of = "" if view.duration == float("inf") else f" of {clock(view.duration)}"
    parts = [f"reveal · {view.node}", f"{clock(view.elapsed)}{of}", view.phase]
    if view.warmup_left > 0:
        parts[-1] += f" ({clock(view.warmup_left)} to go)"
    if view.slices:
        lost = f", {view.lost} lost" if view.lost else ""
        parts.append(f"{view.slices} slices of {view.channels} channels{lost}")
    if view.findings:
        parts.append(f"{view.findings} finding{'s' if view.findings > 1 else ''}")
    return " · ".join(parts)


def _listed(title: str, lines: Sequence[str], colour: str) -> list[tuple[str, str]]:
    shown = [
        (f"  {title if not at else '':<{_LABEL}}{line}", colour) for at, line in enumerate(lines)
    ]
    if len(shown) > _SHOWN:
        return [*shown[:_SHOWN], (f"  {'':<{_LABEL}}and {len(shown) - _SHOWN} more", colour)]
    return shown
