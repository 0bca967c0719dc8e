"""The collectors of some nodes as a process, of the version that its PYTHONPATH names.

    python bench/failoverbench/senders.py URL FIRST COUNT TOTAL BEGAN_S FILE

FILE has what each node has sent: it is read at the start, and written when SIGTERM ends the
process, which prints faults and counts as JSON.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[1:1] = [str(ROOT / "bench"), str(ROOT / "tests")]

from failoverbench.fleet import Fleet  # noqa: E402 - needs the path above


def main() -> int:
    """Send until SIGTERM; exit code 0."""
    url, first, count, total, began_s, file = sys.argv[1:]
    known = Path(file)
    seconds = json.loads(known.read_text()) if known.exists() else {}
    fleet = Fleet(url, int(count), int(first), int(total), float(began_s), seconds)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with fleet.sending():
        signal.sigwait([signal.SIGTERM])
    known.write_text(json.dumps(fleet.sent))
    counts = {"sent": sum(fleet.sent.values()) - sum(seconds.values()), "dropped": fleet.dropped}
    print(json.dumps({"faults": fleet.faults, "buffered": fleet.buffered, **counts}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
