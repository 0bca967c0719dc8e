"""buildah, with a store of its own in the user's cache."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NEEDED = ("buildah", "debootstrap")
_LINES = 25  # of a failed command's output


class BuildError(Exception):
    """An image cannot be made; the text says what failed, with the end of its output."""


def missing_tools() -> str:
    """Why no image can be built here, in a sentence; empty when it can."""
    if os.geteuid() != 0:
        return "images are built as root"
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no {' and no '.join(missing)}: apt-get install {' '.join(missing)}"
    return ""


def cache() -> Path:
    """The folder of images and what they are made of: of the user, shared by all checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reveal" / "images"


class Store:
    """Images in ``folder``; one process at a time builds (``building``)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.root = folder / "store"
        self.driver = os.environ.get("STORAGE_DRIVER") or _driver(folder)

    def buildah(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """What a buildah command prints; ``BuildError`` when it fails."""
        own = ("--root", self.root, "--runroot", self.folder / "run")
        return run("buildah", *own, "--storage-driver", self.driver, *arguments, cwd=cwd)

    def names(self) -> list[str]:
        """Of all images, with their tags."""
        listed = json.loads(self.buildah("images", "--json") or "null") or []
        return [name for item in listed for name in item.get("names") or ()]

    def digest(self, image: str) -> str:
        """Of its configuration, which names all layers by theirs: equal only if all is."""
        return self.buildah("images", "--quiet", "--no-trunc", image)

    def config(self, image: str) -> dict[str, Any]:
        """The image's configuration: ``config``, ``rootfs``, ``history`` (OCI, config.md)."""
        found = json.loads(self.buildah("inspect", "--type", "image", image))
        return dict(found["OCIv1"])

    def layer_bytes(self, image: str) -> list[int]:
        """Sizes of the layers, unpacked, lowest first."""
        known = json.loads((self.root / f"{self.driver}-layers" / "layers.json").read_text())
        # layers of containers have no digest, as they may still change
        sizes = {item.get("diff-digest"): item.get("diff-size", 0) for item in known}
        return [sizes[digest] for digest in self.config(image)["rootfs"]["diff_ids"]]

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """The image's files in a folder, as a container of it would see them."""
        container = self.buildah("from", "--pull-never", image)
        try:
            yield Path(self.buildah("mount", container)).resolve()  # runtimes refuse links
        finally:
            self.buildah("rm", container)

    @contextmanager
    def building(self) -> Iterator[None]:
        """Waits until no other process builds in this store."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """A command's output; ``BuildError`` with the end of what it said when it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False,
        # without privileges of its own: works inside a container too
        stdin=subprocess.DEVNULL, env={"BUILDAH_ISOLATION": "chroot", **os.environ},
    )  # fmt: skip
    if done.returncode:
        last_lines = (done.stdout + done.stderr).strip().splitlines()[-_LINES:]
        raise BuildError("\n".join([f"{' '.join(map(str, command[:9]))} ... failed:", *last_lines]))
    return done.stdout.strip()


def _driver(folder: Path) -> str:
    """Overlay where the kernel mounts one here, which a container's own root may refuse."""
    trial = folder / "trial"
    lower, upper, work, merged = (trial / name for name in ("lower", "upper", "work", "merged"))
    for part in (lower, upper, work, merged):
        part.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    try:
        run("mount", "-t", "overlay", "overlay", "-o", options, merged)
        run("umount", merged)
    except (BuildError, OSError):
        return "vfs"
    finally:
        shutil.rmtree(trial, ignore_errors=True)
    return "overlay"
