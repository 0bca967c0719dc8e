"""Room on the host's own file systems, asked by statvfs(3) every ten seconds.

Which there are stands in the mount table of process 1 (proc_pid_mountinfo(5)); one that is
mounted at several places is asked once.  Only file systems on block devices of this host are
asked, and those that manage their devices themselves: statvfs of a network or FUSE file system
waits for its server, and might wait for ever.  Read-only images are always full and left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.kernel.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import SnapshotSource
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel

_OWN_DEVICES = {"zfs", "btrfs", "bcachefs"}
_IMAGES = {"squashfs", "iso9660", "erofs", "cramfs", "udf"}
_WAITS = ("fuse", "nfs", "cifs", "ceph", "9p", "lustre", "gpfs", "ocfs2", "gfs2")
_FIELDS = ("size", "free", "available", "inodes", "inodes_free", "read_only")
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system: the device number tells two apart."""

    device: str
    place: str
    kind: str
    origin: str
    read_only: bool


def sources(roots: Roots) -> list[Source]:
    def look() -> dict[Channel, int | None]:
        if not roots.live:
            raise Unsupported("file systems can be asked on the machine itself only")
        return room(roots.proc)

    return [
        SnapshotSource("filesystems", look, Unsupported("no file system of this host's own disks"))
    ]


def room(proc: Path) -> dict[Channel, int | None]:
    """Size, room and inodes of each file system; ``None`` where it does not say."""
    table = (proc / "1/mountinfo").read_text("utf-8", "replace")
    base = _root_of_host(proc)
    columns: dict[Channel, int | None] = {}
    for mount in own(mounts(table)):
        columns |= _room_of(mount, base)
    return columns


def mounts(table: str) -> Iterator[Mount]:
    """The rows of a mount table; one that is cut short is left out."""
    for line in table.split("\n"):
        head, separator, tail = line.partition(" - ")
        left, right = head.split(" "), tail.split(" ")
        if not separator or len(left) < 6 or len(right) < 3:
            continue
        options = (*left[5].split(","), *right[2].split(","))
        yield Mount(left[2], unescaped(left[4]), right[0], unescaped(right[1]), "ro" in options)


def own(table: Iterator[Mount]) -> list[Mount]:
    """Each file system of this host's disks once, at its shortest place."""
    found: dict[str, Mount] = {}
    for mount in table:
        if mount.kind in _IMAGES or mount.kind.startswith(_WAITS):
            continue
        if mount.origin.startswith("/dev/") or mount.kind in _OWN_DEVICES:
            known = found.setdefault(mount.device, mount)
            if len(mount.place) < len(known.place):
                found[mount.device] = mount
    return sorted(found.values(), key=lambda mount: mount.place)


def unescaped(text: str) -> str:
    """Blanks and backslashes of a path are octal in the mount table."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def _root_of_host(proc: Path) -> Path:
    """Where the paths of process 1 begin: a container has another root, which is not asked."""
    root = proc / "1/root"
    if os.access(root, os.X_OK):
        return root
    if proc != Path("/proc"):
        raise Unsupported("the root of the host may not be entered", "grant CAP_SYS_PTRACE")
    return Path("/")


def _room_of(mount: Mount, base: Path) -> dict[Channel, int | None]:
    channels = [channel(f"storage.filesystem.{name}", mount.place) for name in _FIELDS]
    try:
        seen = os.statvfs(base / mount.place.lstrip("/"))
    except OSError:
        return dict.fromkeys(channels)
    unit = seen.f_frsize
    # one that makes inodes as it goes (btrfs) says 0: there is nothing to run out of
    inodes = (seen.f_files, seen.f_favail) if seen.f_files else (None, None)
    values = (seen.f_blocks * unit, seen.f_bfree * unit, seen.f_bavail * unit, *inodes,
              int(mount.read_only))  # fmt: skip
    return dict(zip(channels, values, strict=True))
