"""Checkpoints as fast as the disk takes them: ``writing.py FILE MEBIBYTES AFTER_S``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

time.sleep(float(sys.argv[3]))
print(time.time(), flush=True)
block = bytes(1 << 20)
with Path(sys.argv[1]).open("wb", buffering=0) as file:
    while True:
        file.seek(0)
        for _ in range(int(sys.argv[2])):
            file.write(block)
        os.fsync(file.fileno())
