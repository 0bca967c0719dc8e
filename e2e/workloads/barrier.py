"""A rank of an indexed Job: it computes, sleeps as if a GPU worked, and waits for all others.

``barrier.py FOLDER SIZE``: rank 0 writes its address to the folder, which all ranks share.  The
nodes of the tests share the CPUs of one machine, so the ranks compute one after the other: else
they would wait for a CPU in each step.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

_WORK_S, _SLEEP_S = 0.02, 0.11  # not an eighth of a second together, as timers have
_APART_S = 0.03  # between two ranks
_PORT = 29501
_PATIENCE_S = 60.0


def main() -> None:
    folder, size, rank = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        int(os.environ["JOB_COMPLETION_INDEX"]),
    )
    links = accepted(folder, size - 1) if rank == 0 else [connected(folder)]
    before_s = rank * _APART_S % _SLEEP_S
    while True:
        time.sleep(before_s)
        ends = time.thread_time() + _WORK_S
        while time.thread_time() < ends:
            sum(range(2000))
        time.sleep(_SLEEP_S - before_s)
        if rank == 0:
            for link in links:
                receive(link)
            for link in links:
                link.sendall(b"x")
        else:
            links[0].sendall(b"x")
            receive(links[0])


def accepted(folder: Path, count: int) -> list[socket.socket]:
    """The links of the others."""
    server = socket.create_server(("", _PORT))
    address = folder / "address.new"
    address.write_text(socket.gethostbyname(socket.gethostname()))
    address.replace(folder / "address")
    return [server.accept()[0] for _ in range(count)]


def connected(folder: Path) -> socket.socket:
    """The link to rank 0, which may come later."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return socket.create_connection(((folder / "address").read_text(), _PORT))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def receive(link: socket.socket) -> None:
    if not link.recv(1):
        raise ConnectionError("another rank is gone")


main()
