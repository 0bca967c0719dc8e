"""Space on the local file systems of the host, read by statvfs(3) every ten seconds.

The mount table of process 1 (proc_pid_mountinfo(5)) lists them; a file system that is mounted
several times is read once.  Only file systems on block devices of this host are read, and those
that manage their devices themselves: statvfs of a network or FUSE file system waits for its
server, possibly forever.  Read-only images are always full and left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import Snapshot, SnapshotSource
from reveal_collector.readers.textfile import channel, unfit_lines
from reveal_contract.channels import Channel

_OWN_DEVICES = {"zfs", "btrfs", "bcachefs"}
_IMAGES = {"squashfs", "iso9660", "erofs", "cramfs", "udf"}
_REMOTE = ("fuse", "nfs", "cifs", "ceph", "9p", "lustre", "gpfs", "ocfs2", "gfs2")
_FIELDS = ("size", "free", "available", "inodes", "inodes_free", "read_only")
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system, identified by its device number."""

    device: str
    path: str
    type: str
    device_path: str
    read_only: bool


def sources(roots: Roots) -> list[Source]:
    def read() -> Snapshot:
        if not roots.live:
            raise Unsupported("file systems can be queried only on the running machine itself")
        return usage(roots.proc)

    return [
        SnapshotSource(
            "filesystems", read, Unsupported("no file system is on a local disk of this host")
        )
    ]


def usage(proc: Path) -> Snapshot:
    """Return size, free space and inodes of each file system; ``None`` where unknown."""
    path = proc / "1/mountinfo"
    table, unfit = mounts(os.fsdecode(path.read_bytes()))
    base = _host_root(proc)
    columns: dict[Channel, int | None] = {}
    for mount in local_mounts(table):
        columns |= _usage_of(mount, base)
    return Snapshot(columns, unfit_lines("filesystems", path, unfit))


def mounts(text: str) -> tuple[list[Mount], list[str]]:
    """Return the rows of a mount table, and the lines that have another form."""
    found: list[Mount] = []
    unfit: list[str] = []
    for line in filter(None, text.split("\n")):
        head, separator, tail = line.partition(" - ")
        left, right = head.split(" "), tail.split(" ")
        if not separator or len(left) < 6 or len(right) < 3:
            unfit.append(line)
            continue
        options = (*left[5].split(","), *right[2].split(","))
        found.append(
            Mount(left[2], unescaped(left[4]), right[0], unescaped(right[1]), "ro" in options)
        )
    return found, unfit


def local_mounts(table: Iterable[Mount]) -> list[Mount]:
    """Return each file system on disks of this host once, at its shortest path."""
    found: dict[str, Mount] = {}
    for mount in table:
        if mount.type in _IMAGES or mount.type.startswith(_REMOTE):
            continue
        if mount.device_path.startswith("/dev/") or mount.type in _OWN_DEVICES:
            known = found.setdefault(mount.device, mount)
            if len(mount.path) < len(known.path):
                found[mount.device] = mount
    return sorted(found.values(), key=lambda mount: mount.path)


def unescaped(text: str) -> str:
    """Decode the octal escapes of blanks and backslashes in the mount table."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def _host_root(proc: Path) -> Path:
    """Return the directory where the paths of process 1 start.

    A container has another root than its host, which must not be read instead.
    """
    root = proc / "1/root"
    if os.access(root, os.X_OK):
        return root
    if proc != Path("/proc"):
        raise Unsupported(
            "this process is not permitted to enter the root of the host", "grant CAP_SYS_PTRACE"
        )
    return Path("/")


def _usage_of(mount: Mount, base: Path) -> dict[Channel, int | None]:
    channels = [channel(f"storage.filesystem.{name}", mount.path) for name in _FIELDS]
    try:
        status = os.statvfs(base / mount.path.lstrip("/"))
    except OSError:
        return dict.fromkeys(channels)
    unit = status.f_frsize
    # 0 means that the file system (btrfs) creates inodes as needed and cannot run out of them
    inodes = (status.f_files, status.f_favail) if status.f_files else (None, None)
    values = (status.f_blocks * unit, status.f_bfree * unit, status.f_bavail * unit, *inodes,
              int(mount.read_only))  # fmt: skip
    return dict(zip(channels, values, strict=True))
