"""A rank of a job: ``python rank.py KIND RANK SIZE DIRECTORY WORK_MS SLEEP_MS``.

Each step it computes for so much CPU time, sleeps as if a GPU worked, and exchanges 64 KiB with the
other ranks over sockets in the directory: in a ring, with rank 0 as the server of all parameters,
or as a stage of a pipeline.  It does not pace itself.  At SIGUSR1 it works half as long again for
each step, as with a lower clock, and at the next one as before.  A line of its log is a step: when
it ended (s since the epoch), and how long it took.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

_BYTES = 1 << 16
_PATIENCE_S = 30.0
_SLOWER = 1.5


def main() -> None:
    kind, rank, size, directory, work, sleep = sys.argv[1:]
    exchange = KINDS[kind](int(rank), int(size), Path(directory))
    work_s, sleep_s = int(work) / 1e3, int(sleep) / 1e3
    factors = [1.0, _SLOWER]
    signal.signal(signal.SIGUSR1, lambda *_: factors.reverse())
    began = time.perf_counter()
    while True:
        compute(factors[0] * work_s)
        time.sleep(sleep_s)
        exchange()
        ended = time.perf_counter()
        os.write(sys.stdout.fileno(), f"{time.time():.6f} {ended - began:.6f}\n".encode())
        began = ended


def compute(seconds: float) -> None:
    """Use so much CPU time."""
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        sum(range(2000))


def ring(rank: int, size: int, directory: Path) -> Callable[[], None]:
    """Return the exchange of a ring: each rank receives from the one before, and sends on."""
    server = listening(directory, rank)
    to_next = connected(directory, (rank + 1) % size)
    from_previous = server.accept()[0]
    data = bytes(_BYTES)

    def exchange() -> None:
        for _ in range(2 * (size - 1)):
            to_next.sendall(data[: _BYTES // size])
            receive(from_previous, _BYTES // size)

    return exchange


def star(rank: int, size: int, directory: Path) -> Callable[[], None]:
    """Return the exchange with a server: it waits for all, and answers all."""
    if rank == 0:
        server = listening(directory, 0)
        clients = [server.accept()[0] for _ in range(size - 1)]

        def serve() -> None:
            for client in clients:
                receive(client, _BYTES)
            for client in clients:
                client.sendall(bytes(_BYTES))

        return serve
    link = connected(directory, 0)

    def exchange() -> None:
        link.sendall(bytes(_BYTES))
        receive(link, _BYTES)

    return exchange


def pipeline(rank: int, size: int, directory: Path) -> Callable[[], None]:
    """Return the exchange of a stage: it takes from the one before, and waits for the one after."""
    server = listening(directory, rank)
    after = connected(directory, rank + 1) if rank + 1 < size else None
    before = server.accept()[0] if rank else None

    def exchange() -> None:
        if before is not None:
            receive(before, _BYTES)
            before.sendall(b"x")
        if after is not None:
            after.sendall(bytes(_BYTES))
            receive(after, 1)

    return exchange


def listening(directory: Path, rank: int) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(directory / f"rank-{rank}.sock"))
    server.listen()
    return server


def connected(directory: Path, rank: int) -> socket.socket:
    ends = time.monotonic() + _PATIENCE_S
    while True:
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(str(directory / f"rank-{rank}.sock"))
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)
        else:
            return link


def receive(link: socket.socket, count: int) -> None:
    while count:
        part = link.recv(count)
        if not part:
            raise ConnectionError("another rank is gone")
        count -= len(part)


KINDS = {"ring": ring, "star": star, "pipeline": pipeline}

if __name__ == "__main__":
    main()
