"""Small files of sysfs and procfs, read once; unreadable values are ``None`` or empty."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.sysfs_attributes import (
    entries,
    link_target,
    parse_fields,
    read_number,
    read_text,
)
from reveal_collector.readers.textfile import channel
from reveal_contract import cpulist

__all__ = [
    "cpu_list", "link_target", "names", "numbered", "parse_fields", "read_number", "read_text",
    "selected_choice",
]  # fmt: skip


def names(folder: Path) -> list[str]:
    """Return the sorted entries of a folder; empty where it cannot be read."""
    return list(entries(folder)[0])


def read_level(path: Path, metric: str, scale: float = 1.0) -> int | None:
    """Return the number in a file; None where the metric cannot have it, as for "unknown"."""
    return raw_bounds(channel(metric, scale=scale)).known(read_number(path))


def check_readable(path: Path) -> None:
    """Raise ``OSError`` where a folder cannot be listed, or a file cannot be read."""
    if path.is_dir():
        os.scandir(path).close()
    else:
        path.open("rb").close()


def is_read_only(path: Path) -> bool:
    """Return whether the kernel lets nobody write a file, as of interrupts that it places."""
    try:
        return not path.stat().st_mode & stat.S_IWUSR
    except OSError:
        return False


def selected_choice(line: str) -> str:
    """Return the choice in ``always [madvise] never``; the line itself where none is marked."""
    _, opened, rest = line.partition("[")
    return rest.partition("]")[0] if opened else line


def cpu_list(path: Path) -> str:
    """Return a list of CPUs in its shortest form; "" where it cannot be read or is malformed."""
    try:
        return cpulist.render(cpulist.parse(read_text(path)))
    except ValueError:
        return ""


def numbered(folder: Path, prefix: str) -> list[int]:
    """Return N of every entry ``prefixN``, in ascending order."""
    rest = (name.removeprefix(prefix) for name in names(folder) if name.startswith(prefix))
    return sorted(int(digits) for digits in rest if digits.isdecimal() and digits.isascii())
