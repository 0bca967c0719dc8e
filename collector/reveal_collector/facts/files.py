"""Small files of sysfs and procfs, read once; what cannot be read is ``None`` or empty."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.readers.sysfs_attributes import fields, number, target
from reveal_collector.readers.sysfs_attributes import listed as _entries
from reveal_collector.readers.sysfs_attributes import text_of as text
from reveal_contract import cpulist

__all__ = ["chosen", "fields", "listed", "names", "number", "numbered", "target", "text"]


def names(folder: Path) -> list[str]:
    """What is in the folder, sorted; empty where there is none."""
    return list(_entries(folder)[0])


def chosen(line: str) -> str:
    """The choice in ``always [madvise] never``; the word itself where none is marked."""
    _, opened, rest = line.partition("[")
    return rest.partition("]")[0] if opened else line


def listed(path: Path) -> str:
    """A list of CPUs in its shortest form; "" where it cannot be read or is none."""
    try:
        return cpulist.render(cpulist.parse(text(path)))
    except ValueError:
        return ""


def numbered(folder: Path, prefix: str) -> list[int]:
    """N of every entry ``prefixN``, rising."""
    rest = (name.removeprefix(prefix) for name in names(folder) if name.startswith(prefix))
    return sorted(int(number) for number in rest if number.isdecimal() and number.isascii())
