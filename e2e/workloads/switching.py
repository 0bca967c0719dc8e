"""Two processes that pass a byte to and fro as fast as they can: ``switching.py AFTER_S``."""

from __future__ import annotations

import os
import socket
import sys
import time

time.sleep(float(sys.argv[1]))
print(time.time(), flush=True)
here, there = socket.socketpair()
if os.fork() == 0:
    here = there
else:
    here.send(b"x")
while True:
    here.send(here.recv(1))
