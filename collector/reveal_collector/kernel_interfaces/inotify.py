"""inotify(7) through ctypes: notifies when an entry of a folder is created, deleted or moved."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from reveal_collector.kernel_interfaces.memory_saving import READ_SIZE

_CREATE, _DELETE, _MOVED = 0x100, 0x200, 0xC0
_ONLY_DIRECTORIES = 0x0100_0000


class Inotify:
    """Watches folders; its descriptor is readable after an event in one of them."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _error("inotify_init1")

    def watch(self, folder: Path) -> bool:
        """Add a folder; return False where the kernel refuses (folder removed, limit reached).

        Adding a folder twice is harmless.
        """
        events = _CREATE | _DELETE | _MOVED | _ONLY_DIRECTORIES
        return bool(self._libc.inotify_add_watch(self._fd, bytes(folder), events) >= 0)

    def drain(self) -> None:
        """Discard all pending events."""
        try:
            while os.read(self._fd, READ_SIZE):
                pass
        except BlockingIOError:
            return

    def fileno(self) -> int:
        """Return the descriptor, for ``select`` and ``poll``."""
        return int(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._fd)


def _error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
