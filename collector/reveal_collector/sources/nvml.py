"""Source: NVIDIA GPUs through NVML (docs.nvidia.com/deploy/nvml-api).

The driver is asked by a thread of its own; here its last answers are handed out, at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.nvml import library
from reveal_collector.nvml.boards import QUICK, STALE_NS, STATE, SUBJECTS, Board
from reveal_collector.readers.source import Roots, Source
from reveal_collector.subjects.pods.process_owner import SubjectOfPid
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

if TYPE_CHECKING:
    from reveal_collector.nvml.poller import Poller

_NAMES = {QUICK: "nvml", STATE: "nvml-state", SUBJECTS: "nvml-subjects"}


def sources(
    roots: Roots, profiling: bool = False, subject_of_pid: SubjectOfPid | None = None
) -> list[Source]:
    """Use every tick, state once a second, and who uses it; ``profiling`` adds GPM figures."""
    shared = Shared(roots, profiling, subject_of_pid)
    return [GpuFigures(roots, shared, board) for board in (QUICK, STATE, SUBJECTS)]


class Shared:
    """One poller for all boards, made where there is a driver: elsewhere 1 MB in vain."""

    def __init__(self, roots: Roots, profiling: bool, subject_of_pid: SubjectOfPid | None) -> None:
        self.poller: Poller | None = None
        self._roots, self._profiling, self._subject_of_pid = roots, profiling, subject_of_pid

    def start(self) -> Poller:
        """The poller, with one more user; raises ``Unsupported`` as it does."""
        if self.poller is None:
            library.load()
            from reveal_collector.nvml.poller import Poller  # noqa: PLC0415

            self.poller = Poller(self._roots, self._profiling, self._subject_of_pid)
        self.poller.start()
        return self.poller


class GpuFigures:
    """One board of the poller as a source."""

    def __init__(self, roots: Roots, shared: Shared, board: str) -> None:
        self.name = _NAMES[board]
        self.lane = Lane.FAST if board == QUICK else Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self._roots, self._shared, self._board = roots, shared, board
        self._poller: Poller | None = None
        self._started = False
        self._blank: tuple[None, ...] = ()

    @property
    def degraded(self) -> Sequence[str]:
        """What the poller does less often, or not at all; told once for all boards."""
        poller = self._poller
        return poller.degraded if poller is not None and self._board == QUICK else ()

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("GPUs can be asked on the machine itself only")
        self.close()
        self._poller = self._shared.start()
        self._started = True
        self._learn(self._poller.boards[self._board])

    def read(self) -> Sequence[int | None]:
        if self._poller is None:
            return self._blank
        board = self._poller.boards[self._board]
        if board.channels is not self.channels:
            self._learn(board)
            raise LayoutChanged(self.name)
        if time.monotonic_ns() - board.at_ns > STALE_NS:
            return self._blank
        return board.values

    def close(self) -> None:
        if self._started and self._poller is not None:
            self._started = False
            self._poller.stop()

    def _learn(self, board: Board) -> None:
        self.channels = board.channels
        self._blank = (None,) * len(board.channels)
