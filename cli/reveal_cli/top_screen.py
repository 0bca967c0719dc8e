"""The frame of ``reveal top``: who loses time now and to whom, and how near findings are."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.text import Text

from reveal_cli.live_ledger import IN_FORCE, SECONDS
from reveal_cli.lost_time_table import lost_time_table
from reveal_cli.progress import LiveProgress, PlainProgress, ProgressView, progress_block


def frame(view: ProgressView) -> RenderableType:
    """Return the frame: the block of a scan, and the lost time of the last seconds."""
    return Group(progress_block(replace(view, lost_time=())), Text(), *_lost_time(view))


class LiveScreen(LiveProgress):
    """Redraws the frame in place; findings and warnings stay above it."""

    refresh_s = 1.0

    def __init__(self, target: Console) -> None:
        super().__init__(target)
        self.view: ProgressView | None = None

    def update(self, view: ProgressView) -> None:
        self.view = view
        super().update(view)

    def draw(self, view: ProgressView) -> RenderableType:
        return frame(view)


class LastFrame(PlainProgress):
    """Keeps the last state, for a frame that is printed at the end; warnings go to stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.view: ProgressView | None = None

    def update(self, view: ProgressView) -> None:
        self.view = view


def _lost_time(view: ProgressView) -> list[RenderableType]:
    if not view.ledger:
        return [Text("Lost time: not known yet")]
    if view.ledger not in IN_FORCE.values():
        return [Text(f"Lost time is not known: {view.ledger}")]
    title = Text(f"Lost time of the last {SECONDS} s (ledger: {view.ledger})")
    return [title, lost_time_table(view.lost_time) if view.lost_time else Text("nobody is busy")]
