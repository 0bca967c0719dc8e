"""The progress of a scan: the live block on a terminal, warnings alone elsewhere."""

from __future__ import annotations

import io
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reveal_analyzer.ledger.lost_time import Loss, LostTime
from reveal_cli.progress import (
    LiveProgress,
    PlainProgress,
    ProgressView,
    open_progress,
    progress_block,
)
from reveal_cli.terminal import plain_text
from reveal_contract import ledger
from reveal_contract.metric import Subsystem
from support.terminal_stream import TerminalStream

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def view(**changes: object) -> ProgressView:
    base = {"node": "n", "phase": "watching", "elapsed": 72.0, "duration": 180.0}
    return ProgressView(**{**base, **changes})  # type: ignore[arg-type]


def block(state: ProgressView, width: int = 100) -> list[str]:
    return plain_text(progress_block(state), width=width).splitlines()


def test_the_block_describes_the_scan() -> None:
    lines = block(
        view(slices=72, channels=702, lost=2, findings=1, scores={Subsystem.CPU: 1.2},
             suspected=["a", "b", "c", "d"], changed=["x"],
             step_times=["/train: steps of 1.57 s"], warning="Redis has been unreachable")
    )  # fmt: skip
    assert lines[0] == (
        "reveal · n · 1m12s of 3m00s · watching · 72 slices of 702 channels, 2 lost · 1 finding"
    )
    text = "\n".join(lines)
    for part in ("CPU", "1.20", "suspected", "and 1 more", "changed", "/train: steps of 1.57 s",
                 "Redis has been unreachable"):  # fmt: skip
        assert part in text
    assert "steps" not in "\n".join(block(view()))


def test_the_block_has_what_was_lost_in_the_last_seconds() -> None:
    losses = (
        Loss(ledger.WAIT_OTHERS, 0.4, "/hog"), Loss(ledger.THROTTLED, 0.1),
        Loss(ledger.IRQ, 0.006),
    )  # fmt: skip
    lost = [LostTime("/job", 1.0, 0.506, losses), LostTime("/calm", 1.0, 0.004, ())]
    assert block(view(lost_time=lost))[1:] == [
        "  lost       /job 51 %: 40 % cpu (/hog), 10 % quota"
    ]


@given(st.floats(0, 1e6))
def test_a_bar_is_full_where_the_score_reaches_its_threshold(score: float) -> None:
    cells = block(view(scores={Subsystem.CPU: score}))[1].count("━")
    assert cells == min(24, int(score * 48) // 2)


@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_block_fits_the_terminal(width: int) -> None:
    full = view(
        scores=dict.fromkeys(Subsystem, 2.0), suspected=["s" * 300], slices=1, channels=1000
    )
    lines = block(full, width)
    assert all(len(line) <= width for line in lines)
    assert len(lines) == len(block(full, 100))


def test_a_pipe_gets_warnings_only() -> None:
    stream = io.StringIO()
    progress = open_progress(stream)
    assert isinstance(progress, PlainProgress)
    progress.update(view())
    progress.event("found")
    progress.warn("Redis is away")
    progress.stop()
    assert stream.getvalue() == "reveal: Redis is away\n"


@pytest.mark.parametrize(("term", "live"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_redraw_gets_no_block(
    term: str, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert isinstance(open_progress(TerminalStream()), LiveProgress) is live


def drawn(paint: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a scan writes: block, event, block, end."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "" if paint else "1")
    stream = TerminalStream()
    progress = LiveProgress(Console(file=stream, force_terminal=True, width=80))
    progress.update(view(scores={Subsystem.CPU: 2.0}))
    progress.event("found it")
    time.sleep(0.3)  # the block is redrawn four times a second
    progress.update(view(phase="ending"))
    progress.stop()
    return stream.getvalue()


def test_an_event_stays_above_the_block_and_the_block_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = drawn(True, monkeypatch)
    assert output.index("found it") < output.index("ending")
    assert output.count(HIDE) == output.count(SHOW) == 1
    assert output.rindex("\x1b[2K") > output.index("ending")  # the lines are erased


def test_colors_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    color = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    assert color.search(drawn(True, monkeypatch))
    assert not color.search(drawn(False, monkeypatch))
