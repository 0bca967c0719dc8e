"""``/proc/pressure``: how long tasks waited for a resource (kernel: accounting/psi.rst).

Only ``total`` (microseconds) is read: the averages move every two seconds.  ``full`` of the
CPU is always 0 for the whole host and left out.  Kernels before 4.20 have none, some are
built or booted without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from reveal_collector.source import Roots, Source, Unsupported
from reveal_collector.textfile import KeptFile, channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_REMEDY = "boot with psi=1 on a kernel built with CONFIG_PSI (4.20 or later)"
_FILES = {
    "cpu": {"some": "cpu.pressure.some"},
    "memory": {"some": "memory.pressure.some", "full": "memory.pressure.full"},
    "io": {"some": "storage.pressure.some", "full": "storage.pressure.full"},
    "irq": {"full": "cpu.pressure.irq"},
}
_TOTAL = re.compile(rb"(?m)^(some|full) .*total=(\d+)$")
_NS_PER_US = 1000.0


def sources(roots: Roots) -> list[Source]:
    return [_Pressure(roots.proc / "pressure")]


class _Pressure:
    """The files that are there, one descriptor each."""

    name, lane = "psi", Lane.FAST

    def __init__(self, folder: Path) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._folder = folder
        self._files: list[tuple[KeptFile, tuple[str, ...]]] = []

    def open(self) -> None:
        reason = Unsupported(f"{self._folder} does not exist", _REMEDY)
        for name, metrics in _FILES.items():
            file = KeptFile(self._folder / name, _REMEDY)
            try:
                file.open()
                shown = totals(file.read())
            except Unsupported as why:
                reason = why if name == "cpu" else reason
                continue
            except OSError as error:  # EOPNOTSUPP: built in, switched off
                reason = Unsupported(f"{file.path}: {error.strerror}", _REMEDY)
                file.close()
                continue
            wanted = tuple(kind for kind in metrics if kind in shown)
            self._files.append((file, wanted))
            self.channels += tuple(channel(metrics[kind], scale=_NS_PER_US) for kind in wanted)
        if not self.channels:
            self.close()
            raise reason

    def read(self) -> Sequence[int | None]:
        values: list[int | None] = []
        for file, wanted in self._files:
            try:
                shown = totals(file.read())
            except OSError:
                shown = {}
            values += [shown.get(kind) for kind in wanted]
        return values

    def close(self) -> None:
        for file, _ in self._files:
            file.close()
        self._files, self.channels = [], ()


def totals(data: bytes) -> dict[str, int]:
    """``some`` and ``full`` -> total stall time in microseconds."""
    return {kind.decode(): int(total) for kind, total in _TOTAL.findall(data)}
