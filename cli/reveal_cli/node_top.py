"""Frames of a node of another host, by its stream."""

from __future__ import annotations

import math
import sys
from contextlib import closing

from reveal_cli.interrupt import Interrupt
from reveal_cli.node_stream import NodeStream
from reveal_cli.stream_session import StreamSession
from reveal_cli.terminal import console, show
from reveal_cli.top_screen import LastFrame, LiveScreen, frame

_ONCE_S = 2.0  # the stream has the seconds before


def show_node(stream: NodeStream, interrupt: Interrupt, *, once: bool) -> None:
    """Show frames until the user interrupts; without a terminal or with ``once`` one frame."""
    once = once or not sys.stdout.isatty()
    screen = LastFrame() if once else LiveScreen(console(sys.stdout))
    with closing(stream):
        try:
            StreamSession(stream, _ONCE_S if once else math.inf, screen, interrupt).run()
        finally:
            screen.stop()
    if screen.view is not None:
        show(frame(screen.view))
