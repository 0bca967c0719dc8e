"""Who asks the inference server, in turn so often a second.  ``ask.py HOST PORT RATExSECONDS...``

After the last phase the first comes again.
"""

import contextlib
import http.client
import itertools
import sys
import time

PAUSE_S = 0.5


def ask(rate: float, until: float) -> int:
    """Over one connection; how many were answered."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    answered, due = 0, time.monotonic()
    while time.monotonic() < until:
        connection.request("GET", "/")
        connection.getresponse().read()
        answered += 1
        due = max(due + 1 / rate, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    return answered


host, port = sys.argv[1], int(sys.argv[2])
phases = [tuple(map(float, item.split("x"))) for item in sys.argv[3:]]
for rate, seconds in itertools.cycle(phases):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):  # it starts, or has gone
            print("answered", ask(rate, end), flush=True)
        time.sleep(PAUSE_S)
