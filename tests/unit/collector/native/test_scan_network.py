"""Protocol counters are not read while no interface carries packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.native import load
from reveal_collector.readers.source import Roots
from reveal_collector.sources import netdev, netstat

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)

from reveal_collector.native.scanner import NativePlan, PlanRunner, RowLayout, ScanEntry

_HEADER = "Inter-|   Receive\n face |bytes\n"


class Network:
    """The files of a host with one interface."""

    def __init__(self, proc: Path) -> None:
        self._folder = proc / "net"
        self._folder.mkdir()
        self.carried(7)
        self.segments(1)

    def carried(self, packets: int) -> None:
        row = " ".join(["1", str(packets), *["0"] * 7, str(packets), *["0"] * 6])
        (self._folder / "dev").write_text(f"{_HEADER}  eth0: {row}\n")

    def segments(self, count: int) -> None:
        (self._folder / "snmp").write_text(f"Tcp: InSegs RetransSegs\nTcp: {count} {count}\n")
        (self._folder / "netstat").write_text(f"TcpExt: TCPTimeouts\nTcpExt: {count}\n")


def test_counts_of_protocols_show_with_the_next_packet(tmp_path: Path) -> None:
    network = Network(tmp_path)
    sources = [*netdev.sources(Roots(proc=tmp_path)), *netstat.sources(Roots(proc=tmp_path))[:2]]
    entries, column = [], 0
    for owner, source in enumerate(sources):
        source.open()
        entries.append(ScanEntry(owner, source.scans(), column))
        column += len(source.channels)
    with PlanRunner(NativePlan(entries, RowLayout(column, 0, len(sources)))) as runner:
        runner.begin()
        assert runner.tick(0)[-3:] == [1, 1, 1]
        network.segments(5)
        assert runner.tick(1)[-3:] == [1, 1, 1]
        network.carried(8)
        assert runner.tick(2)[-3:] == [5, 5, 5]
    for source in sources:
        source.close()
