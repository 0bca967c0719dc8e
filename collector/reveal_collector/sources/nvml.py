"""Source: NVIDIA GPUs through NVML (docs.nvidia.com/deploy/nvml-api).

The driver is asked by a thread of its own; here its last answers are handed out, at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from reveal_collector.nvml.holders import SubjectOfPid
from reveal_collector.nvml.poller import QUICK, STALE_NS, STATE, SUBJECTS, Board, Poller
from reveal_collector.source import LayoutChanged, Roots, Source, Unsupported
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_NAMES = {QUICK: "nvml", STATE: "nvml-state", SUBJECTS: "nvml-subjects"}


def sources(
    roots: Roots, profiling: bool = False, subject_of_pid: SubjectOfPid | None = None
) -> list[Source]:
    """Use every tick, state once a second, and who uses it; ``profiling`` adds GPM figures."""
    poller = Poller(roots, profiling, subject_of_pid)
    return [GpuFigures(roots, poller, board) for board in (QUICK, STATE, SUBJECTS)]


class GpuFigures:
    """One board of the poller as a source."""

    def __init__(self, roots: Roots, poller: Poller, board: str) -> None:
        self.name = _NAMES[board]
        self.lane = Lane.FAST if board == QUICK else Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self.poller = poller
        self._roots, self._board = roots, board
        self._started = False
        self._blank: tuple[None, ...] = ()

    @property
    def degraded(self) -> Sequence[str]:
        """What the poller does less often, or not at all; told once for all boards."""
        return self.poller.degraded if self._board == QUICK else ()

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("GPUs can be asked on the machine itself only")
        self.close()
        self.poller.start()
        self._started = True
        self._learn(self.poller.boards[self._board])

    def read(self) -> Sequence[int | None]:
        board = self.poller.boards[self._board]
        if board.channels is not self.channels:
            self._learn(board)
            raise LayoutChanged(self.name)
        if time.monotonic_ns() - board.at_ns > STALE_NS:
            return self._blank
        return board.values

    def close(self) -> None:
        if self._started:
            self._started = False
            self.poller.stop()

    def _learn(self, board: Board) -> None:
        self.channels = board.channels
        self._blank = (None,) * len(board.channels)
