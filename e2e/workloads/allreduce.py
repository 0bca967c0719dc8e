"""A rank of two that train together: it computes, then sums its gradient with the other's.

``allreduce.py PORT`` waits for the other rank, ``allreduce.py PORT ADDRESS`` goes to it.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

import numpy as np

_STEP_S = 0.05
_GRADIENT = 1 << 16  # of float64: 512 KiB each way and step
_CHUNK = 1 << 13  # exchanged at a time: whole gradients at once would overflow queues by themselves
_PATIENCE_S = 60.0
_ARRIVES_S = 5.0  # before its first step whoever started it may change its network


def main() -> None:
    port, *address = sys.argv[1:]
    other = meet(int(port), address[0] if address else "")
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    weights, gradient = np.random.rand(150, 150), np.random.rand(_GRADIENT)
    while True:
        began = time.monotonic()
        weights @ weights
        theirs = [exchange(other, part) for part in np.split(gradient, _GRADIENT // _CHUNK)]
        gradient = (gradient + np.concatenate(theirs)) / 2
        time.sleep(max(0.0, _STEP_S - (time.monotonic() - began)))


def meet(port: int, address: str) -> socket.socket:
    """The connection to the other rank, who may come later."""
    if not address:
        with socket.create_server(("", port)) as server:
            return server.accept()[0]
    time.sleep(_ARRIVES_S)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, port))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def exchange(other: socket.socket, mine: np.ndarray) -> np.ndarray:
    """Both directions at once, as a ring does."""
    sender = threading.Thread(target=other.sendall, args=(mine.tobytes(),))
    sender.start()
    parts, missing = [], mine.nbytes
    while missing:
        part = other.recv(min(missing, 1 << 18))
        if not part:
            raise ConnectionError("the other rank is gone")
        parts.append(part)
        missing -= len(part)
    sender.join()
    return np.frombuffer(b"".join(parts))


main()
