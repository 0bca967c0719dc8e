"""Timers that fire every 20 us, all on the last CPU: ``timers.py AFTER_S``."""

from __future__ import annotations

import os
import signal
import sys
import time

_EVERY_S = 20e-6
_PROCESSES = 2

time.sleep(float(sys.argv[1]))
print(time.time(), flush=True)
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
for _ in range(_PROCESSES - 1):
    if os.fork() == 0:
        break
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, _EVERY_S, _EVERY_S)
while True:
    signal.pause()
