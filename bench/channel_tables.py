"""Channel tables of a node with many busy subjects: how many, what they cost, and before.

Accelerated hours of 20, 40 and 100 subjects whose use scatters (real sources over made-up cgroups;
a real analyzer gets their tables), a minute of 20 real busy cgroups with real processes, and the
Redis of a node whose pods come and go.  --against compares with the code of another checkout, which
needs a .venv; both run beside each other.  The live part needs root and cgroup version 1.

    bench/channel_tables.py --against DIR
    bench/channel_tables.py --only churn
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmark_report import Row, report
from host_cleanup import interruptible
from tablesbench import churn, live
from tablesbench.uses import uses

SUBJECTS = (20, 40, 100)
_HOUR = Path(__file__).parent / "tablesbench" / "hour.py"
_PARTS = ("hours", "live", "churn")


def hours(pythons: Mapping[str, Path], seconds: Mapping[str, int]) -> list[Row]:
    """Return a row for each number of subjects, kind of use and checkout."""
    rows: list[Row] = []
    for subjects in SUBJECTS:
        for use in uses(random.Random(0)):
            for name, python in pythons.items():
                command = [python, _HOUR, str(subjects), use, str(seconds[name])]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                rows.append({"code": name, **json.loads(done.stdout)})
                print(rows[-1], file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--only", choices=_PARTS, action="append", help="leave the other parts out")
    parser.add_argument("--seconds", type=int, default=3600, help="of an accelerated hour")
    parser.add_argument(
        "--seconds-before", type=int, default=420, help="the same for the other checkout"
    )
    parser.add_argument("--share", type=float, default=0.06, help="CPUs of a real cgroup")
    given = parser.parse_args()
    interruptible()  # the real cgroups and their processes end with the bench
    parts = given.only or _PARTS
    pythons = {"now": Path(sys.executable)}
    if given.against:
        pythons["before"] = given.against.absolute() / ".venv/bin/python"
    notes: dict[str, list[Row]] = {}
    if "live" in parts and os.geteuid() == 0:
        notes["live"] = live.measure(pythons, 20, given.share, 60.0)
    if "churn" in parts:
        notes["churn"] = churn.measure(60)
    seconds = {"now": given.seconds, "before": given.seconds_before}
    rows = hours(pythons, seconds) if "hours" in parts else []
    for name, part in notes.items():
        print(name, *part, sep="\n")
    report("channel_tables", rows, **notes)


if __name__ == "__main__":
    main()
