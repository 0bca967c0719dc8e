"""A file whose reads hang in the kernel on command, as those of a driver whose device is stuck.

It is the only file of a FUSE file system (Documentation/filesystems/fuse.rst, linux/fuse.h) that a
thread of the test serves.  Ending it ends all reads that hang.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from pathlib import Path

import pytest

_DEVICE = Path("/dev/fuse")
_ROOT, _FILE = 1, 2  # node ids
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _RELEASE = 1, 2, 3, 14, 15, 18
_FLUSH, _INIT, _INTERRUPT, _BATCH_FORGET = 25, 26, 36, 42
_WITHOUT_REPLY = (_FORGET, _INTERRUPT, _BATCH_FORGET)
_IN = struct.Struct("<IIQQIIIHH")
_OUT = struct.Struct("<IiQ")
_READ_IN = struct.Struct("<QQI")
_MODES = {_ROOT: 0o040755, _FILE: 0o100644}
_DIRECT_IO = 1  # no page cache: every read reaches the server
_NOSUID_NODEV, _DETACH = 6, 2
_LARGEST_REQUEST = 1 << 17


class HangingFile:
    """``path`` contains ``text``; while ``hang`` was called, its reads do not return."""

    def __init__(self, folder: Path, text: str) -> None:
        self.path, self.text = folder / "value", text
        self.reached = threading.Event()  # a read hangs
        self._folder = folder
        self._hangs = False
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, bytes]] = []
        self._device = _mounted(folder)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hang(self) -> None:
        """Let all further reads hang."""
        with self._lock:
            self._hangs = True
            self.reached.clear()

    def release(self) -> None:
        """Answer the reads that hang, and all later ones at once."""
        with self._lock:
            self._hangs = False
            waiting, self._waiting = self._waiting, []
        for unique, request in waiting:
            self._reply(unique, self._part(request))

    def close(self) -> None:
        """Unmount; the reads that hang fail."""
        self.release()
        ctypes.CDLL(None).umount2(os.fsencode(self._folder), _DETACH)
        os.close(self._device)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, _LARGEST_REQUEST)
            except OSError:  # unmounted
                return
            _, opcode, unique, node, *_ = _IN.unpack_from(request)
            self._answer(opcode, unique, node, request[_IN.size :])

    def _answer(self, opcode: int, unique: int, node: int, body: bytes) -> None:
        if opcode == _READ and self._keeps_waiting(unique, body):
            self.reached.set()
        elif opcode == _READ:
            self._reply(unique, self._part(body))
        elif opcode == _INIT:
            self._reply(unique, struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0))
        elif opcode == _LOOKUP and body.rstrip(b"\0") == b"value":
            self._reply(unique, struct.pack("<QQQQII", _FILE, 0, 0, 0, 0, 0) + _attributes(_FILE))
        elif opcode == _LOOKUP:
            self._reply(unique, b"", errno.ENOENT)
        elif opcode == _GETATTR:
            self._reply(unique, struct.pack("<QII", 0, 0, 0) + _attributes(node))
        elif opcode == _OPEN:
            self._reply(unique, struct.pack("<QII", 0, _DIRECT_IO, 0))
        elif opcode in (_FLUSH, _RELEASE):
            self._reply(unique, b"")
        elif opcode not in _WITHOUT_REPLY:
            self._reply(unique, b"", errno.ENOSYS)

    def _keeps_waiting(self, unique: int, body: bytes) -> bool:
        with self._lock:
            if self._hangs:
                self._waiting.append((unique, body))
            return self._hangs

    def _part(self, body: bytes) -> bytes:
        _, offset, size = _READ_IN.unpack_from(body)
        return self.text.encode()[offset : offset + size]

    def _reply(self, unique: int, data: bytes, error: int = 0) -> None:
        try:
            os.write(self._device, _OUT.pack(_OUT.size + len(data), -error, unique) + data)
        except OSError:  # the reader is gone
            return


def _attributes(node: int) -> bytes:
    return struct.pack(
        "<QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, _MODES[node], 1, 0, 0, 0, 4096, 0
    )


def _mounted(folder: Path) -> int:
    """Mount the file system and return its device; skip the test where that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        device = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"no file can hang on command: {_DEVICE}: {error.strerror}")
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"test", os.fsencode(folder), b"fuse", _NOSUID_NODEV, options.encode()):
        os.close(device)
        pytest.skip(f"no file can hang on command: mount: {os.strerror(ctypes.get_errno())}")
    return device
