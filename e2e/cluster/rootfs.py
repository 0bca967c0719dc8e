"""The disk that nodes with a kernel of their own start from: Debian, systemd, containerd, a kernel.

Made by debootstrap, once, and again when what it is made of changes; kept beside the images.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from images import base, store

Log = Callable[[str], None]
LABEL = "reveal-root"
_GUEST = Path(__file__).with_name("guest")
_PACKAGES = (
    "conntrack", "containerd", "containernetworking-plugins", "dbus", "iproute2", "iptables",
    "kmod", "linux-image-cloud-amd64", "nftables", "openssh-server", "procps", "runc",
    "systemd-sysv", "udev",
)  # fmt: skip
_UNITS = ("containerd", "images", "kubelet", "kube-proxy", "ssh", "systemd-networkd")
# the rest is for images and logs; blocks that nobody wrote take no room
_SIZE = "12G"


@dataclass(frozen=True)
class RootFs:
    """A disk, which is copied for each node, and what starts it."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "root.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"


def cache() -> Path:
    """The folder of disks: of the user, shared by all checkouts."""
    return store.cache().parent / "machines"


def digest() -> str:
    """Of what it is made of."""
    digester = hashlib.blake2b(" ".join((base.SUITE, _SIZE, *_PACKAGES, *_UNITS)).encode())
    for path in sorted(_GUEST.rglob("*")):
        if path.is_symlink():
            digester.update(f"{path.relative_to(_GUEST)} {path.readlink()}\0".encode())
        elif path.is_file():
            digester.update(f"{path.relative_to(_GUEST)} {path.stat().st_mode & 0o111}\0".encode())
            digester.update(path.read_bytes())
    return digester.hexdigest()[:10]


def find() -> RootFs:
    """Where it is, once ``make`` has returned."""
    return RootFs(cache() / digest())


def make(log: Log = print) -> RootFs:
    """What is there already stays; ``BuildError`` where it cannot be made."""
    root = find()
    root.folder.parent.mkdir(parents=True, exist_ok=True)
    with (root.folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.folder.exists():
            began = time.monotonic()
            _make(root.folder)
            log(f"disk of nodes with a kernel of their own: {time.monotonic() - began:.0f} s")
    return root


def _make(folder: Path) -> None:
    for earlier in folder.parent.iterdir():
        if earlier.is_dir():  # of an earlier checkout, or of a run that was interrupted
            shutil.rmtree(earlier)
    unfinished = RootFs(Path(tempfile.mkdtemp(dir=folder.parent)))
    root = unfinished.folder / "root"
    include = f"--include={','.join(_PACKAGES)}"
    store.run("debootstrap", "--variant=minbase", include, base.SUITE, root)
    store.run("chroot", root, "apt-get", "clean")
    shutil.copytree(_GUEST, root, symlinks=True, dirs_exist_ok=True)
    (root / "node-config").mkdir()
    (root / "etc" / "machine-id").write_text("")  # each node is given one at its first start
    store.run("chroot", root, "systemctl", "enable", "--quiet", *_UNITS)
    _take_out(root, unfinished)
    store.run("mke2fs", "-q", "-t", "ext4", "-L", LABEL, "-d", root, unfinished.disk, _SIZE)
    shutil.rmtree(root)
    unfinished.folder.chmod(0o755)
    unfinished.folder.replace(folder)


def _take_out(root: Path, into: RootFs) -> None:
    """Kernel and initrd lie beside the disk: no boot loader is needed."""
    for pattern, target in (("vmlinuz-*", into.kernel), ("initrd.img-*", into.initrd)):
        [found] = (root / "boot").glob(pattern)
        shutil.move(found, target)
