"""Small files of sysfs and procfs, read once; what cannot be read is ``None`` or empty."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.readers.sysfs_attributes import (
    entries,
    link_target,
    parse_fields,
    read_number,
    read_text,
)
from reveal_contract import cpulist

__all__ = [
    "cpu_list", "link_target", "names", "numbered", "parse_fields", "read_number", "read_text",
    "selected_choice",
]  # fmt: skip


def names(folder: Path) -> list[str]:
    """What is in the folder, sorted; empty where there is none."""
    return list(entries(folder)[0])


def selected_choice(line: str) -> str:
    """The choice in ``always [madvise] never``; the word itself where none is marked."""
    _, opened, rest = line.partition("[")
    return rest.partition("]")[0] if opened else line


def cpu_list(path: Path) -> str:
    """A list of CPUs in its shortest form; "" where it cannot be read or is none."""
    try:
        return cpulist.render(cpulist.parse(read_text(path)))
    except ValueError:
        return ""


def numbered(folder: Path, prefix: str) -> list[int]:
    """N of every entry ``prefixN``, rising."""
    rest = (name.removeprefix(prefix) for name in names(folder) if name.startswith(prefix))
    return sorted(int(digits) for digits in rest if digits.isdecimal() and digits.isascii())
