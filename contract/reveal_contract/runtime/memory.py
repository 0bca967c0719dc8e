"""How much memory this process may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_V1_LIMIT, _V2_LIMIT = "memory.limit_in_bytes", "memory.max"
_AVAILABLE = "MemAvailable:"
_KIB = 1024


def usable_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return what the host has available, or the limit of a cgroup of this process if it is less.

    The roots are those of procfs and of the cgroup file systems; 0 is unknown.
    """
    return min(filter(None, [_available(proc), *_limits(proc, cgroup)]), default=0)


def _available(proc: Path) -> int:
    for line in _read(proc / "meminfo").splitlines():
        if line.startswith(_AVAILABLE):
            return int(line.split()[1]) * _KIB
    return 0


def _limits(proc: Path, cgroup: Path) -> Iterator[int]:
    """Yield the limits of the cgroup of this process and of those that contain it."""
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = cgroup, _V2_LIMIT
        elif "memory" in controllers.split(","):
            root, name = cgroup / "memory", _V1_LIMIT
        else:
            continue
        folder = root / path.strip("/")
        # a container may see its own cgroup as the root of the file system
        for level in (folder, *folder.parents):
            if (text := _read(level / name).strip()).isdigit():
                yield int(text)
            if level == root:
                break


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
