"""A stand-in for the official slim Python image, made of Debian packages by debootstrap.

It has what matters of it for us: Debian 12, the same Python, no compiler, and no bytecode of the
standard library. The build image adds what the first stages of the Dockerfiles would fetch.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from images.store import Store, run

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "libpython3-stdlib", "python3-minimal")
BUILD_PACKAGES = ("binutils", "gcc", "libc6-dev", "python3-venv")
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LEFT_OUT = (
    "var/cache/apt/archives/*.deb", "var/cache/apt/*.bin", "var/lib/apt/lists/*", "var/log/*.log",
    "var/log/apt", "usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*",
)  # fmt: skip
_INSTALL = (
    "export DEBIAN_FRONTEND=noninteractive && apt-get update --quiet=2 && apt-get install --yes"
    " --quiet=2 --no-install-recommends {} >/dev/null && rm -rf /var/lib/apt/lists/*"
)


@dataclass(frozen=True)
class Base:
    """Names of two local images: what images are made from, and what they are built in."""

    image: str
    build_image: str


def recipe() -> str:
    """A digest of what the bases are made of, which their tags carry."""
    text = " ".join([SUITE, *PACKAGES, "/", *BUILD_PACKAGES, *_LEFT_OUT])
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def make(store: Store) -> Base:
    """Both images, made where they are not there yet (a minute); needs root and a mirror."""
    tag = recipe()
    base = Base(f"localhost/reveal-base:{tag}", f"localhost/reveal-build:{tag}")
    if base.image not in (there := store.names()):
        _make_base(store, base.image)
    if base.build_image not in there:
        _make_build_image(store, base)
    return base


def _make_base(store: Store, image: str) -> None:
    root = store.folder / "rootfs"
    shutil.rmtree(root, ignore_errors=True)  # of a run that was interrupted
    include = f"--include={','.join(PACKAGES)}"
    run("debootstrap", "--variant=minbase", include, SUITE, root)
    _slim(root)
    container = store.buildah("from", "scratch")
    store.buildah("copy", "--quiet", container, root, "/")
    store.buildah("config", "--env", _PATH, "--cmd", "python3", container)
    store.buildah("commit", "--quiet", "--rm", container, image)
    shutil.rmtree(root)


def _make_build_image(store: Store, base: Base) -> None:
    container = store.buildah("from", "--pull-never", base.image)
    install = _INSTALL.format(" ".join(BUILD_PACKAGES))
    store.buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", install)
    store.buildah("commit", "--quiet", "--rm", container, base.build_image)


def _slim(root: Path) -> None:
    for pattern in (*_LEFT_OUT, "usr/lib/python3*/**/__pycache__"):
        for path in [*root.glob(pattern)]:  # all before the first is gone
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
