"""Builds the images of this checkout on the local base, as ``docker build`` would on its own."""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from images import base
from images.base import Base
from images.store import BuildError, Store, run
from reveal_contract import VERSION

ROOT = Path(__file__).resolve().parents[2]
# what .dockerignore lets through, and what decides how it is built
CONTEXT = (
    "LICENSE", "README.md", "analyzer", "cli", "collector", "contract", "hatch_build.py",
    "images", "operator", "pyproject.toml",
)  # fmt: skip
SOURCES = (*CONTEXT, "Dockerfile.analyzer", "Dockerfile.collector", ".dockerignore")
# of pip's settings what says where packages come from; folders of this machine are not there
_INDEX_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
_AUTHORITY = "/run/secrets/ca"
_MIB = 1 << 20


@dataclass(frozen=True)
class Image:
    """An image to build, and how large it may be over its base."""

    name: str
    file: str
    target: str = ""
    limit_mib: int = 0

    def tagged(self, tag: str) -> str:
        return f"localhost/{self.name}:{tag}"


IMAGES = (
    Image("reveal-collector", "Dockerfile.collector", limit_mib=120),
    Image("reveal-operator", "Dockerfile.analyzer", "operator", limit_mib=150),
    Image("reveal-analyzer", "Dockerfile.analyzer", "analyzer", limit_mib=450),
)


@dataclass(frozen=True)
class Built:
    """An image in the store; ``seconds`` is 0 where it was there already."""

    image: Image
    full_name: str
    over_base_bytes: int
    seconds: float

    @property
    def over_base_mib(self) -> float:
        return self.over_base_bytes / _MIB


def build_all(store: Store, log: Callable[[str], None] = lambda _: None) -> tuple[Built, ...]:
    """All images of this checkout; what is built already for the same input is taken."""
    with store.building():
        began = time.monotonic()
        bases = base.make(store)
        log(f"base: {time.monotonic() - began:.0f} s")
        tag = context_digest()
        images = []
        for image in IMAGES:
            images.append(_built(store, bases, image, tag))
            log(summary_of(images[-1]))
        return tuple(images)


def summary_of(built: Built) -> str:
    """One line on an image."""
    when = f"built in {built.seconds:.0f} s" if built.seconds else "there already"
    return f"{built.full_name}: {built.over_base_mib:.0f} MiB over its base, {when}"


def build(store: Store, bases: Base, image: Image, full_name: str) -> None:
    """Build from the first instruction on; the same input gives the same digest."""
    with tempfile.TemporaryDirectory() as folder:
        store.buildah(
            "build", "--no-cache", "--pull-never", "--file", ROOT / image.file,
            *(("--target", image.target) if image.target else ()),
            "--build-arg", f"BASE_IMAGE={bases.image}",
            "--build-arg", f"BUILD_IMAGE={bases.build_image}",
            "--build-arg", f"VERSION={VERSION}",
            "--build-arg", f"SOURCE_DATE_EPOCH={epoch()}", "--timestamp", str(epoch()),
            *secrets(Path(folder)), "--tag", full_name, ROOT,
        )  # fmt: skip


def context_digest() -> str:
    """Of all that decides what a build gives: every file of it, their time, and the base."""
    hasher = hashlib.blake2b(f"{base.recipe()} {epoch()} ".encode(), digest_size=6)
    for path in _files(ROOT / name for name in SOURCES):
        hasher.update(f"{path.relative_to(ROOT)} {path.stat().st_mode & 0o111}\0".encode())
        hasher.update(hashlib.blake2b(path.read_bytes()).digest())
    return hasher.hexdigest()


def epoch() -> int:
    """The time that all files of the images bear: that of the last commit that changed them.

    Other commits leave the images, and so their digests, as they are.
    """
    try:
        return int(run("git", "log", "-1", "--format=%ct", "--", *SOURCES, cwd=ROOT))
    except (BuildError, OSError, ValueError):  # not a checkout
        return 0


def secrets(folder: Path) -> list[str]:
    """Flags that hand pip's settings of this machine to the build, and to nothing else."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    settings = index_settings(listing)
    authority = settings.pop("cert", "") or os.environ.get("SSL_CERT_FILE", "")
    flags = []
    if authority:
        settings["cert"] = _AUTHORITY
        flags += ["--secret", f"id=ca,src={authority}"]
    (folder / "pip.conf").write_text(pip_conf(settings))
    return [*flags, "--secret", f"id=pip,src={folder / 'pip.conf'}"]


def index_settings(listing: str) -> dict[str, str]:
    """What ``pip config list`` says of the index; the environment wins over files.

    Lines are ``section.key='value'``; keys of the environment may be called ``default-timeout``.
    """
    found: dict[str, str] = {}
    ordered = sorted(listing.splitlines(), key=lambda line: line.startswith(":env:"))
    for line in ordered:
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        key = key.removeprefix("default-")
        if section in ("global", ":env:") and key in (*_INDEX_SETTINGS, "cert"):
            found[key] = value.strip().strip("'\"").replace("\\n", "\n")
    return found


def pip_conf(settings: dict[str, str]) -> str:
    """The text of a pip.conf."""
    parser = configparser.RawConfigParser()
    parser["global"] = settings
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def _built(store: Store, bases: Base, image: Image, tag: str) -> Built:
    full_name, seconds = image.tagged(tag), 0.0
    if full_name not in store.names():
        began = time.monotonic()
        build(store, bases, image, full_name)
        seconds = time.monotonic() - began
        _forget_others(store, full_name)
    below = len(store.layer_bytes(bases.image))
    return Built(image, full_name, sum(store.layer_bytes(full_name)[below:]), seconds)


def _forget_others(store: Store, kept: str) -> None:
    """Images of earlier checkouts: nobody would ever delete them. One in use stays."""
    name = kept.rpartition(":")[0]
    for other in store.names():
        if other.rpartition(":")[0] == name and other != kept:
            with contextlib.suppress(BuildError):
                store.buildah("rmi", other)


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += [path] if path.is_file() else (item for item in path.rglob("*") if item.is_file())
    return sorted(
        path for path in found if path.suffix != ".so" and path.parent.name != "__pycache__"
    )
