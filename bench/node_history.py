"""What the history of a node costs: bytes, and CPU time beside the analysis of the same slices.

    python bench/node_history.py [RECORDING...]    (default: an H100 with faults)

The slices of each recording are analyzed, and then kept, in one process.  A day is 86,400 times the
mean of a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark_report import Row, report
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.node_history.keeper import HistoryKeeper
from reveal_analyzer.node_history.recorded import slices
from reveal_cli.recordings import Slices
from reveal_contract.settings import AnalyzerSettings

_END = 2**62
_GPU = Path(__file__).parents[1] / "tests/fixtures/gpu_faults/gpu-1.rvl"


@dataclass
class _Memory:
    """A store in memory."""

    hours: dict[int, bytes] = field(default_factory=dict)

    def append(self, node: str, hour: int, part: bytes) -> int:
        before = self.read(node, hour)
        self.hours[hour] = before + part
        return len(before)

    def read(self, node: str, hour: int) -> bytes:
        return self.hours.get(hour, b"")

    def close(self) -> None:
        pass


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", metavar="RECORDING", nargs="*", default=[_GPU], type=Path)
    asked = parser.parse_args(argv)
    report("node_history", [_row(recording) for recording in asked.recordings])
    return 0


def _row(recording: Path) -> Row:
    found = list(Slices(recording))
    node = found[0][0].node
    own = [each for each in found if each[0].node == node]
    analyzer = NodeAnalyzer(node, AnalyzerSettings())
    began = time.process_time()
    for message, table in own:
        analyzer.analyze(message, table)
    analyzed = time.process_time()
    store = _Memory()
    keeper = HistoryKeeper(store)
    for message, table in own:
        keeper.add(message, table)
    keeper.close()
    while keeper.run_due():
        pass
    kept = time.process_time()
    size = sum(map(len, store.hours.values()))
    count = len(own)
    assert len(slices(store.hours.values(), 0, _END)) == count
    return {
        "recording": recording.stem,
        "seconds": count,
        "channels": len(own[0][1].fast) + len(own[0][1].slow),
        "bytes a second": round(size / count),
        "MB a day": round(size / count * 86_400 / 1e6, 1),
        "ms a second": round(1e3 * (kept - analyzed) / count, 3),
        "of the analysis": round((kept - analyzed) / (analyzed - began), 3),
    }


if __name__ == "__main__":
    sys.exit(main())
