"""A data loader: blocks of 256 KiB of a file, past the page cache, forty a second at most.

``loading.py FILE``
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import time

_BLOCK = 1 << 18
_PERIOD_S = 0.025

file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
blocks = os.lseek(file, 0, os.SEEK_END) // _BLOCK
buffer = mmap.mmap(-1, _BLOCK)  # aligned, as O_DIRECT asks
while True:
    began = time.monotonic()
    os.preadv(file, [buffer], random.randrange(blocks) * _BLOCK)
    time.sleep(max(0.0, _PERIOD_S - (time.monotonic() - began)))
