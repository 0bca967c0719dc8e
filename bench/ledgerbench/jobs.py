"""Jobs that write down their steps: ``python jobs.py NAME DIRECTORY``.

A row of the log is one piece of work of one thread: when it began (s since the epoch), how long it
took, and the CPU time that it used.  Between two pieces a thread has nothing to do.  Writing a row
is part of the next piece, since a quota often throttles a thread on its way out of the kernel.  No
job paces itself, so that lost time shows in the number of steps.
"""

from __future__ import annotations

import mmap
import os
import random
import select
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads are those of the job

import numpy as np

from reveal_cli.faults.disk import data_file

_WIDTH, _BATCH, _LAYERS, _RATE = 384, 128, 3, np.float32(1e-6)
_THREADS = 4
_BLOCK, _SAMPLE, _INDEX_SIZE, _LOOKUPS = 1 << 20, 1 << 16, 96 << 20, 24
_CLIENTS, _THINK_S, _PAGE, _PAGES = 3, 0.004, 3 << 14, 64
_REQUEST, _HEAD = struct.Struct("<Id"), struct.Struct("<I")  # page and when it was sent; size
_PORT = "port"


class Steps:
    """Writes the rows of one thread; each piece of work begins when the one before ended."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a piece of work now."""
        self._start, self._began, self._used = time.time(), time.perf_counter(), time.thread_time()

    def end(self) -> None:
        """End the piece of work, begin the next one, and write the row."""
        start, began, used = self._start, self._began, self._used
        self.begin()
        write_row(start, self._began - began, self._used - used)


def write_row(start: float, seconds: float, cpu: float) -> None:
    os.write(sys.stdout.fileno(), f"{start:.6f} {seconds:.6f} {cpu:.6f}\n".encode())


class Model:
    """A multilayer perceptron: a step is a pass forward, one back, and an update."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self._layers = [draw.standard_normal((_WIDTH, _WIDTH), np.float32) for _ in range(_LAYERS)]
        self._batch = draw.standard_normal((_BATCH, _WIDTH), np.float32)

    def step(self) -> None:
        active = [self._batch]
        for layer in self._layers:
            active.append(np.maximum(active[-1] @ layer, 0))
        error = active[-1] / np.float32(_BATCH * _WIDTH)
        for index in reversed(range(_LAYERS)):
            gradient = active[index].T @ error
            error = error @ self._layers[index].T
            self._layers[index] -= _RATE * np.clip(gradient, -1, 1)


def train(directory: Path) -> None:
    """Train in one thread."""
    model, steps = Model(1), Steps()
    while True:
        model.step()
        steps.end()


def train4(directory: Path) -> None:
    """Train in threads that wait for each other after each step, each on a part of the batch."""
    barrier = threading.Barrier(_THREADS)

    def part(seed: int) -> None:
        model, steps = Model(seed), Steps()
        while True:
            model.step()
            steps.end()
            barrier.wait()
            steps.begin()

    threads = [threading.Thread(target=part, args=(seed,)) for seed in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def loader(directory: Path) -> None:
    """Read blocks with direct I/O, look places up in a mapped index, compress a sample."""
    file = os.open(data_file(directory), os.O_RDONLY | os.O_DIRECT)
    buffer, blocks = mmap.mmap(-1, _BLOCK), os.fstat(file).st_size // _BLOCK
    index, draw = mapped_index(directory / "index"), random.Random(1)

    def work() -> None:
        os.preadv(file, [buffer], draw.randrange(blocks) * _BLOCK)
        total = sum(index[draw.randrange(_INDEX_SIZE)] for _ in range(_LOOKUPS))
        zlib.compress(buffer[total : total + _SAMPLE], 1)

    steps = Steps()
    while True:
        work()
        steps.end()


def mapped_index(path: Path) -> mmap.mmap:
    """Return a mapped file whose pages this process has read, and is charged for."""
    with path.open("w+b") as file:
        for _ in range(_INDEX_SIZE // _BLOCK):
            file.write(os.urandom(_BLOCK))
        os.fsync(file.fileno())
        found = mmap.mmap(file.fileno(), _INDEX_SIZE, prot=mmap.PROT_READ)
    assert sum(found[:: mmap.PAGESIZE]) > 0
    return found


def server(directory: Path) -> None:
    """Reply to requests over loopback with a page, compressed, in one thread.

    A request is worked on from when it was sent, or from the reply before on.
    """
    draw = random.Random(1)
    pages = [bytes(draw.choices(range(64), k=_PAGE)) for _ in range(_PAGES)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fresh = directory / "fresh"
        fresh.write_text(str(listener.getsockname()[1]))
        fresh.replace(directory / _PORT)
        clients = [listener.accept()[0] for _ in range(_CLIENTS)]
    done, used = time.perf_counter(), time.thread_time()
    while True:
        for connection in select.select(clients, (), ())[0]:
            number, sent = _REQUEST.unpack(receive(connection, _REQUEST.size))
            page = zlib.compress(pages[number % _PAGES], 1)
            connection.sendall(_HEAD.pack(len(page)) + page)
            begun, before = max(done, sent), used
            done, used = time.perf_counter(), time.thread_time()
            write_row(time.time() - (done - begun), done - begun, used - before)


def clients(directory: Path) -> None:
    """Send requests to the server of this directory, each after the reply to the one before."""
    while not (directory / _PORT).exists():
        time.sleep(0.05)
    port = int((directory / _PORT).read_text())
    for number in range(_CLIENTS - 1):
        if os.fork() == 0:
            client(port, number)
    client(port, _CLIENTS)


def client(port: int, number: int) -> None:
    """Send requests forever, with a pause after each reply."""
    connection = socket.create_connection(("127.0.0.1", port))
    draw = random.Random(number)
    while True:
        connection.sendall(_REQUEST.pack(draw.getrandbits(16), time.perf_counter()))
        (size,) = _HEAD.unpack(receive(connection, _HEAD.size))
        if len(zlib.decompress(receive(connection, size))) != _PAGE:
            raise ConnectionError("a reply has a wrong size")
        time.sleep(_THINK_S)


def receive(connection: socket.socket, size: int) -> bytearray:
    data, received = bytearray(size), 0
    while received < size:
        count = connection.recv_into(memoryview(data)[received:])
        if not count:
            raise ConnectionError("the server closed the connection")
        received += count
    return data


JOBS: dict[str, Callable[[Path], None]] = {
    "train1": train, "train4": train4, "loader": loader, "server": server, "clients": clients,
}  # fmt: skip

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2]))
