"""``/sys/devices/system/cpu/online``: the number of online CPUs.

Hosts with one channel per CPU could count these channels; on large hosts no other channel shows
the number.
"""

from __future__ import annotations

from collections.abc import Sequence

from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.plan import FileScan
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import OpenFile, channel, word_scans
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane


def sources(roots: Roots) -> list[Source]:
    return [OnlineCpus(OpenFile(roots.sys / "devices/system/cpu/online"))]


class OnlineCpus:
    """The number of CPUs in the list of online CPUs."""

    name, lane = "online", Lane.SLOW

    def __init__(self, file: OpenFile) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._file = file
        self._data, self._count = b"", 0

    def open(self) -> None:
        self._file.open()
        try:
            self.read()
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror or error}") from None
        self.channels = (channel("cpu.online"),)

    def read(self) -> Sequence[int | None]:
        data = self._file.read()
        if data != self._data:
            self._data, self._count = data, len(cpu_list(data.decode("ascii", "replace")))
        return [self._count]

    def scans(self) -> Sequence[FileScan]:
        return word_scans(self._file.fd, self._data, [self._count])

    def close(self) -> None:
        self._file.close()
