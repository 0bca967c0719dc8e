"""Software RAID arrays (md): missing disks, rebuilds and checks, errors of their disks.

Kernel: Documentation/admin-guide/md.rst.  ``/proc/mdstat`` has the same for people.  Arrays without
redundancy (linear, raid0) have no ``degraded`` and no ``sync_action``.  What an array reads and
writes is in ``diskstats``; it repeats the I/O of its disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    entries,
    single_column,
)
from reveal_collector.readers.textfile import channel, decoded
from reveal_contract.metric import Lane

_KIB, _SECTOR = 1024.0, 512.0
_QUIET_PERIOD = 10
_MEMBER = "dev-"
# what the array does with its disks: whether it rebuilds and whether it checks
_ACTIONS = {
    "idle": (0, 0), "frozen": (0, 0),
    "resync": (1, 0), "recover": (1, 0), "reshape": (1, 0),
    "check": (0, 1), "repair": (0, 1),
}  # fmt: skip
_STATES = {
    "broken": 1,
    **dict.fromkeys(
        (
            "clear", "inactive", "suspended", "readonly", "read-auto", "clean", "active",
            "write-pending", "active-idle",
        ),
        0,
    ),
}  # fmt: skip


def sources(roots: Roots) -> list[Source]:
    block = roots.sys / "block"
    absent = Unsupported("there is no software RAID array")

    def layout_state() -> object:
        return entries(block, *arrays(block).values())

    return [
        AttributeSource(
            "md", Lane.SLOW, lambda: _attribute_files(block), layout_state, absent, _QUIET_PERIOD
        )
    ]


def arrays(block: Path) -> dict[str, Path]:
    """Return the folders of the arrays under ``/sys/block``, by the names of their disks."""
    names = (name for name in entries(block)[0] if name.startswith("md"))
    folders = {name.replace("!", "/"): block / name / "md" for name in names}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def _attribute_files(block: Path) -> Iterator[AttributeFile]:
    for name, folder in arrays(block).items():
        yield from _of_array(name, folder)
        for entry in entries(folder)[0]:
            if entry.startswith(_MEMBER):
                disk = entry.removeprefix(_MEMBER).replace("!", "/")
                errors = channel("storage.raid.disk_errors", f"{name}/{disk}")
                yield single_column(folder / entry / "errors", errors)


def _of_array(name: str, folder: Path) -> Iterator[AttributeFile]:
    broken = channel("storage.raid.broken", name)
    yield single_column(folder / "array_state", broken, partial(_word, _STATES))
    missing = channel("storage.raid.missing", name)
    yield single_column(folder / "degraded", missing)
    activity = (channel("storage.raid.rebuilding", name), channel("storage.raid.checking", name))
    yield AttributeFile(folder / "sync_action", activity, action)
    sync_speed = channel("storage.raid.sync_speed", name, _KIB)
    yield single_column(folder / "sync_speed", sync_speed, speed)
    mismatches = channel("storage.raid.mismatches", name, _SECTOR)
    yield single_column(folder / "mismatch_cnt", mismatches)


def action(text: bytes) -> tuple[int | None, int | None]:
    """Return whether an array rebuilds and whether it checks; None for an unknown action."""
    return _ACTIONS.get(decoded(text).strip(), (None, None))


def speed(text: bytes) -> int:
    """Parse the speed of a rebuild or check in KiB a second, which is "none" without one."""
    return 0 if text.strip() == b"none" else int(text)


def _word(known: Mapping[str, int], text: bytes) -> int | None:
    return known.get(decoded(text).strip())
