"""The detection bench: labelled telemetry of real machines, Reveal beside the paper and others.

    bench/detection DIR[:SECONDS]... [--only NAME...] [--cli] [--jobs N]

DIR holds one .npz a machine (``detectionbench/dataset.py`` says which arrays); SECONDS lie between
samples, known for folders called smd and asd.  No label chooses anything: thresholds come from
the scores alone.  Columns:

  AUC-PR, VUS-PR   by sample; VUS-PR with buffers of 0 to 100 samples
  ev@1             events found at one false alarm a day, by the best threshold for that
  quiet@50         healthy days without an alarm, at a threshold that finds half of the events
  false/day@50     false alarms a day on the labelled half there, and cut@50 the threshold
  found ... delay  at the detector's own threshold; the delay in samples, median
  Hit@100, @150    causes among the first so many ranked metrics; top-1: the first is one; of
                   Reveal and the paper's mode the ranking of `reveal explain`, one for all modes
  seconds          of CPU a machine, scores and rankings
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# each process judges one machine; threads of BLAS would only get in each other's way
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from benchmark_report import Row, report
from detectionbench import command_line, detectors
from detectionbench.dataset import DataError, Machine, machines
from detectionbench.detectors import Detector
from detectionbench.summary import Measured, measure, summarise

GOAL = (
    "SMD 1-2 to 1-8: report .512/.609/.913, online .486/.551/.913 (AUC-PR, VUS-PR, ev@1); "
    "ASD 1-6: report .471/.610/.779, online .282/.264/.622; quiet@50 .66"
)

DataFolder = tuple[Path, int | None]  # a folder, and the seconds between its samples


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 error, 2 usage."""
    asked = _parser().parse_args(argv)
    known = detectors.DETECTORS | (command_line.DETECTORS if asked.cli else {})
    if unknown := set(asked.only or ()) - set(known):
        print(f"detection: no detector {min(unknown)!r}: {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = {name: known[name] for name in known if not asked.only or name in asked.only}
    try:
        rows = [row for item in asked.data for row in _rows(item, chosen, asked.jobs)]
    except (DataError, command_line.CommandError, OSError) as error:
        print(f"detection: {error}", file=sys.stderr)
        return 1
    report("detection", rows, goal=GOAL)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/detection", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=_data_folder, metavar="DIR[:SECONDS]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these detectors")
    parser.add_argument("--cli", action="store_true", help="through `reveal analyze`, too")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="machines at a time")
    return parser


def _data_folder(text: str) -> DataFolder:
    folder, _, period = text.partition(":")
    return Path(folder), int(period) if period else None


def _rows(data: DataFolder, chosen: dict[str, Detector], jobs: int) -> list[Row]:
    folder, period = data
    found = list(machines(folder, period))
    with ProcessPoolExecutor(jobs) as pool:
        judged = list(pool.map(_measured, found, [chosen] * len(found)))
    return [
        {"data": folder.name, "detector": name} | summarise([each[name] for each in judged])
        for name in chosen
    ]


def _measured(machine: Machine, chosen: dict[str, Detector]) -> dict[str, Measured]:
    return {name: measure(machine, detector) for name, detector in chosen.items()}


if __name__ == "__main__":
    sys.exit(main())
