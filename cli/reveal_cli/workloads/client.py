"""Three clients of the request server, alternating between 50 and 90 requests a second."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
import zlib

from reveal_cli.workloads.pace import Interval, Pacer, log
from reveal_cli.workloads.server import BLOCK, PORT, REQUEST

CLIENTS = 3
RATES = (50.0, 90.0)  # requests a second
PHASE_S = 10.0


def connect(address: str) -> socket.socket:
    """Connect; retry until the server listens."""
    pace = Pacer(0.05)
    while True:
        pace.wait()
        try:
            return socket.create_connection((address, PORT), timeout=30)
        except OSError:
            continue


def send_request(server: socket.socket, number: int) -> float:
    """Send one request; return the seconds until the whole reply arrived."""
    start = time.monotonic()
    server.sendall(REQUEST.pack(number))
    reply = bytearray(REQUEST.size + BLOCK)
    view, received = memoryview(reply), 0
    while received < len(reply):
        count = server.recv_into(view[received:])
        if not count:
            raise ConnectionError("the server closed the connection")
        received += count
    if REQUEST.unpack_from(reply)[0] != zlib.crc32(view[REQUEST.size :]):
        raise ConnectionError("a reply has a wrong checksum")
    return time.monotonic() - start


def client(address: str) -> None:
    """Send requests forever; log the count and the slowest reply once a second."""
    server, phase, second = connect(address), Interval(PHASE_S), Interval(1.0)
    pace, number, seconds = Pacer(1 / RATES[0]), 0, [0.0]
    while True:
        pace.wait()
        try:
            seconds.append(send_request(server, number))
        except OSError:
            server.close()
            server = connect(address)
        number += 1
        if phase.due():
            pace.period = 1 / RATES[int(pace.period == 1 / RATES[0])]
        if second.due():
            log("requests", count=len(seconds) - 1, slowest=max(seconds), client=os.getpid())
            seconds = [0.0]


def main(address: str) -> None:
    """Run the clients."""
    spawn = multiprocessing.get_context("fork")
    clients = [spawn.Process(target=client, args=(address,), daemon=True) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


if __name__ == "__main__":
    main(sys.argv[1])
