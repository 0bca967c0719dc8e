"""Images as archives that nodes import, since there is no registry: of the cluster and of ours.

All are made of Debian packages and of what is built here; each is made once and again when what
it is made of changes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cluster import binaries, building, nodefiles
from images import base
from images.building import build_all
from images.store import Store

COREDNS = "registry.k8s.io/coredns/coredns:v1.12.4"
Log = Callable[[str], None]
_FOLDER = Path(__file__).parent
_INSTALL = (
    "export DEBIAN_FRONTEND=noninteractive && apt-get update --quiet=2 && apt-get install --yes"
    " --quiet=2 --no-install-recommends {} >/dev/null && rm -rf /var/lib/apt/lists/*"
    " /var/cache/apt/*.bin /usr/share/doc/* /usr/share/man/*"
)


@dataclass(frozen=True)
class Archive:
    """An image's name, and the file that holds it."""

    image: str
    file: Path


@dataclass(frozen=True)
class Packaged:
    """An image of Debian packages on the base of ours."""

    name: str
    packages: tuple[str, ...]

    @property
    def full_name(self) -> str:
        text = " ".join((base.recipe(), *self.packages))
        return f"localhost/{self.name}:{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"


WORKLOAD = Packaged("reveal-workload", ("python3-numpy", "curl", "iproute2", "procps"))
REDIS = Packaged("reveal-redis", ("redis-server",))


def make(store: Store, log: Log = print) -> tuple[Archive, ...]:
    """All of them, what nodes cannot do without first."""
    folder = store.folder / "archives"
    folder.mkdir(exist_ok=True)
    ours = build_all(store, log)
    with store.building():
        results = [_scratch(store, folder, scratch, log) for scratch in _scratches()]
        for packaged in (WORKLOAD, REDIS):
            if packaged.full_name not in store.names():
                _timed(log, packaged.full_name, partial(_package, store, packaged))
            results.append(_archive(store, folder, packaged.full_name, log))
        results += [_archive(store, folder, item.full_name, log) for item in ours]
    return tuple(results)


@dataclass(frozen=True)
class _Scratch:
    """One program in an image of nothing else; ``digest`` is of what it is made of."""

    image: str
    program: str
    digest: str
    make: Callable[[Path], None]
    user: str = "0:0"

    @property
    def file(self) -> str:
        return f"{self.program}-{self.digest[:12]}.tar"


def _scratches() -> tuple[_Scratch, ...]:
    source = _FOLDER / "pause.c"
    pause = hashlib.sha256(source.read_bytes()).hexdigest()
    [coredns] = [program for program in building.programs() if program.name == "coredns"]
    built = binaries.find()["coredns"]

    def compile_pause(into: Path) -> None:
        subprocess.run(["gcc", "-Os", "-static", "-s", "-o", into, source], check=True)

    return (
        _Scratch(nodefiles.PAUSE, "pause", pause, compile_pause, "65535:65535"),
        _Scratch(COREDNS, "coredns", coredns.digest, lambda into: _copy(built, into)),
    )


def _copy(source: Path, into: Path) -> None:
    shutil.copy2(source, into)


def _scratch(store: Store, folder: Path, item: _Scratch, log: Log) -> Archive:
    file = folder / item.file
    if not file.exists():
        with tempfile.TemporaryDirectory() as temporary:
            program = Path(temporary, item.program)
            item.make(program)
            container = store.buildah("from", "scratch")
            store.buildah("copy", "--quiet", container, program, f"/{item.program}")
            entry = f'["/{item.program}"]'
            store.buildah("config", "--entrypoint", entry, "--user", item.user, container)
            store.buildah("commit", "--quiet", "--rm", container, item.image)
        _save(store, item.image, file, log)
    return Archive(item.image, file)


def _package(store: Store, packaged: Packaged) -> None:
    container = store.buildah("from", "--pull-never", base.make(store).image)
    install = _INSTALL.format(" ".join(packaged.packages))
    store.buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", install)
    store.buildah("commit", "--quiet", "--rm", container, packaged.full_name)


def _archive(store: Store, folder: Path, image: str, log: Log) -> Archive:
    name, _, tag = image.rpartition("/")[2].partition(":")
    file = folder / f"{name}-{tag}.tar"
    if not file.exists():
        _save(store, image, file, log)
    return Archive(image, file)


def _save(store: Store, image: str, file: Path, log: Log) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)  # buildah adds to one that is there
    target = f"docker-archive:{unfinished}:{image}"
    _timed(log, file.name, lambda: store.buildah("push", "--quiet", image, target))
    for earlier in file.parent.glob(f"{file.name.rpartition('-')[0]}-*"):
        if earlier != unfinished:
            earlier.unlink()
    unfinished.replace(file)


def _timed(log: Log, what: str, do: Callable[[], object]) -> None:
    began = time.monotonic()
    do()
    log(f"{what}: {time.monotonic() - began:.0f} s")
