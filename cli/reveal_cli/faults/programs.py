"""The programs that faults run: ``python -m reveal_cli.faults.programs NAME ARGUMENT...``.

They use the standard library only, to start fast without installed packages.  Each program and
each of its children is killed with its parent and never runs longer than ``LIMIT_S``.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from reveal_cli.faults.base import LIMIT_S
from reveal_cli.faults.cuda import gpu_compute, gpu_copy, gpu_hold

MIB = 1 << 20
_PAGE = mmap.PAGESIZE
_PR_SET_PDEATHSIG = 1
_OOM_FIRST = b"1000"
_DUTY_S = 0.1
_libc = ctypes.CDLL(None, use_errno=True)


def bound() -> None:
    """Let the kernel kill this process with its parent, and after ``LIMIT_S`` at the latest."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.alarm(LIMIT_S)


def workers(count: int, work: Callable[[], None]) -> None:
    """Run ``work`` in ``count`` processes and wait for them."""
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            bound()
            work()
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def paced(rate: float) -> Iterator[int]:
    """Count forever, ``rate`` times a second (0: no pause), catching up in small bursts."""
    start = time.monotonic()
    for number in itertools.count():
        if rate:
            wait = start + number / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
        yield number


def spin(count: str, cpu: str = "", share: str = "1") -> None:
    """Keep CPUs busy: ``count`` processes, bound to ``cpu``, for ``share`` of the time."""
    if cpu:
        os.sched_setaffinity(0, {int(cpu)})
    busy = float(share) * _DUTY_S

    def work() -> None:
        while True:
            until = time.monotonic() + busy
            while time.monotonic() < until:
                pass
            if busy < _DUTY_S:
                time.sleep(_DUTY_S - busy)

    workers(int(count), work)


def switch(pairs: str, rate: str) -> None:
    """Cause context switches: pairs of processes exchange a byte ``rate`` times a second."""

    def work() -> None:
        here, there = socket.socketpair()
        if os.fork() == 0:
            bound()
            while there.recv(1):
                there.send(b"x")
            os._exit(0)
        for _ in paced(float(rate)):
            here.send(b"x")
            here.recv(1)

    workers(int(pairs), work)


def fork(count: str, rate: str) -> None:
    """Start short-lived processes: ``count`` workers, each ``rate`` a second (0: no pause)."""

    def work() -> None:
        for _ in paced(float(rate)):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)

    workers(int(count), work)


def page_faults(count: str, size: str) -> None:
    """Touch fresh pages and free them, repeatedly."""

    def work() -> None:
        memory = _memory(int(size))
        while True:
            _touch(memory, 0, int(size))
            memory.madvise(mmap.MADV_DONTNEED)

    workers(int(count), work)


def lock(size: str) -> None:
    """Lock ``size`` bytes of memory."""
    memory = _memory(int(size))
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(int(size))):
        raise OSError(ctypes.get_errno(), "mlock")
    signal.pause()


def leak(rate: str, limit: str) -> None:
    """Allocate ``rate`` bytes of memory a second, up to ``limit``, and keep them."""
    step = int(rate) // 10
    memory = _memory(int(limit))
    for number in paced(10):
        offset = number * step
        if offset + step > int(limit):
            signal.pause()
        _touch(memory, offset, step)


def cycle(size: str) -> None:
    """Write to every page of ``size`` bytes repeatedly; pages that do not fit are swapped."""
    memory = _memory(int(size))
    while True:
        _touch(memory, 0, int(size))


def oom(size: str) -> None:
    """Start children that use more memory than the cgroup has, one after the other."""
    while True:
        pid = os.fork()
        if pid == 0:
            bound()
            Path("/proc/self/oom_score_adj").write_bytes(_OOM_FIRST)
            memory = _memory(int(size))
            _touch(memory, 0, int(size))
            os._exit(0)
        os.waitpid(pid, 0)


def reread(path: str) -> None:
    """Read a file through the page cache repeatedly."""
    with open(path, "rb", buffering=0) as file:
        while True:
            file.seek(0)
            while file.read(MIB):
                pass


def write(path: str, size: str, rate: str) -> None:
    """Write ``size`` bytes and sync, repeatedly; ``rate`` bytes a second unless it is 0."""
    block = bytes(MIB)
    blocks = int(size) // MIB
    with open(path, "wb", buffering=0) as file:
        for number in paced(float(rate) / MIB):
            if number % blocks == 0:
                os.fsync(file.fileno())
                file.seek(0)
            file.write(block)


def direct(path: str, kind: str, block: str, count: str) -> None:
    """Read or write random blocks of ``block`` bytes with direct I/O, in ``count`` processes."""
    size = int(block)

    def work() -> None:
        flags = os.O_DIRECT | (os.O_RDONLY if kind == "read" else os.O_WRONLY)
        file = os.open(path, flags)
        end = os.lseek(file, 0, os.SEEK_END)
        buffer = _memory(size)  # aligned, as O_DIRECT requires
        move = os.preadv if kind == "read" else os.pwritev
        draw = random.Random(os.getpid())  # noqa: S311 - places on a disk, no secrets
        while True:
            move(file, [buffer], draw.randrange(end // size) * size)

    workers(int(count), work)


def udp_send(address: str, port: str, size: str, rate: str, count: str = "1") -> None:
    """Send datagrams: ``count`` workers, each ``rate`` a second (0: no pause)."""

    def work() -> None:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        data, to = bytes(int(size)), (address, int(port))
        for _ in paced(float(rate)):
            try:
                sender.sendto(data, to)
            except OSError:  # no buffer space, or the receiver is not there yet
                time.sleep(0.001)

    workers(int(count), work)


def udp_receive(address: str, port: str, buffer: str, pause: str) -> None:
    """Receive datagrams through a buffer of ``buffer`` bytes, pausing ``pause`` s after each."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
    receiver.bind((address, int(port)))
    while True:
        receiver.recv(2048)
        if float(pause):
            time.sleep(float(pause))


def tcp_send(address: str, port: str, rate: str) -> None:
    """Send ``rate`` bytes a second over one connection, in pieces of 64 KiB."""
    data = bytes(1 << 16)
    sender = _connect(address, int(port))
    for _ in paced(float(rate) / len(data)):
        sender.sendall(data)


def tcp_receive(address: str, port: str) -> None:
    """Accept one connection and read all its data."""
    with socket.create_server((address, int(port))) as server:
        connection, _ = server.accept()
        while connection.recv(1 << 18):
            pass


def flap(device: str, down: str, up: str) -> None:
    """Set a network device down for ``down`` s and up for ``up`` s, repeatedly."""
    while True:
        for state, seconds in (("down", down), ("up", up)):
            subprocess.run(["ip", "link", "set", device, state], check=False)
            time.sleep(float(seconds))


def _connect(address: str, port: int) -> socket.socket:
    for _ in paced(20):
        try:
            return socket.create_connection((address, port), timeout=5)
        except OSError:
            continue  # not listening yet; the alarm limits the wait
    raise AssertionError("paced() never ends")


def _memory(size: int) -> mmap.mmap:
    """Return private memory in small pages: huge pages would hide the effect of the faults."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


def _touch(memory: mmap.mmap, offset: int, size: int) -> None:
    """Write one byte to every page."""
    pages = len(range(offset, offset + size, _PAGE))
    memory[offset : offset + size : _PAGE] = bytes(pages)


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (
        spin, switch, fork, page_faults, lock, leak, cycle, oom, reread, write, direct,
        udp_send, udp_receive, tcp_send, tcp_receive, flap, gpu_compute, gpu_hold, gpu_copy,
    )
}  # fmt: skip


if __name__ == "__main__":
    bound()
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
