"""Three clients of the request server, each asking 50 and 90 times a second by turns."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
import zlib

from reveal_cli.workloads.pace import Every, Pace, log
from reveal_cli.workloads.server import BLOCK, PORT, REQUEST

CLIENTS = 3
RATES = (50.0, 90.0)  # requests a second
TURN_S = 10.0


def connect(address: str) -> socket.socket:
    """Connect, waiting for the server to come up."""
    pace = Pace(0.05)
    while True:
        pace.wait()
        try:
            return socket.create_connection((address, PORT), timeout=30)
        except OSError:
            continue


def ask(server: socket.socket, number: int) -> float:
    """One request; the seconds until the whole reply was there."""
    start = time.monotonic()
    server.sendall(REQUEST.pack(number))
    reply = bytearray(REQUEST.size + BLOCK)
    view, got = memoryview(reply), 0
    while got < len(reply):
        count = server.recv_into(view[got:])
        if not count:
            raise ConnectionError("the server closed the connection")
        got += count
    if REQUEST.unpack_from(reply)[0] != zlib.crc32(view[REQUEST.size :]):
        raise ConnectionError("a reply is not what the server meant to send")
    return time.monotonic() - start


def client(address: str) -> None:
    """Ask for ever; one log line a second with the count and the slowest reply."""
    server, turn, second = connect(address), Every(TURN_S), Every(1.0)
    pace, number, seconds = Pace(1 / RATES[0]), 0, [0.0]
    while True:
        pace.wait()
        try:
            seconds.append(ask(server, number))
        except OSError:
            server.close()
            server = connect(address)
        number += 1
        if turn.due():
            pace.period = 1 / RATES[int(pace.period == 1 / RATES[0])]
        if second.due():
            log("requests", count=len(seconds) - 1, slowest=max(seconds), client=os.getpid())
            seconds = [0.0]


def main(address: str) -> None:
    spawn = multiprocessing.get_context("fork")
    clients = [spawn.Process(target=client, args=(address,), daemon=True) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


if __name__ == "__main__":
    main(sys.argv[1])
