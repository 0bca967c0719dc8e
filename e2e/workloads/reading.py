"""Read a file round and round through the page cache: ``reading.py FILE AFTER_S``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

time.sleep(float(sys.argv[2]))
print(time.time(), flush=True)
with Path(sys.argv[1]).open("rb", buffering=0) as file:
    while True:
        if not file.read(1 << 20):
            file.seek(0)
