"""Packages that the lock files of the images pin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ("collector", "operator", "analyzer")
# also what only builds an image, and is not in it
LOCKS = (*IMAGES, "build")
_HASH = re.compile(r"\s+--hash=sha256:([0-9a-f]{64})")
# A tag such as python:3.11-slim means the newest patch release
_NEWEST_PATCH = 99


class LockFormatError(ValueError):
    """A lock file has a line that is no pinned package; the text names it."""


@dataclass(frozen=True, order=True)
class LockedPackage:
    """A version of a package; ``hashes`` are the SHA-256 of its files, in hexadecimal."""

    name: str
    version: str
    marker: str = ""  # none: every supported platform and Python
    hashes: tuple[str, ...] = ()

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Return whether pip installs it where these environment markers hold."""
        return not self.marker or Marker(self.marker).evaluate(dict(environment))


def read(name: str) -> list[LockedPackage]:
    """Return the packages of ``images/locks/NAME.txt``."""
    return parse((ROOT / "images" / "locks" / f"{name}.txt").read_text())


def parse(text: str) -> list[LockedPackage]:
    """Return the packages of a lock file; raise ``LockFormatError`` for another line."""
    return [_parse_line(line) for line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def _parse_line(line: str) -> LockedPackage:
    try:
        pin = Requirement(_HASH.sub("", line).strip())
    except InvalidRequirement as error:
        raise LockFormatError(f"{line.strip()[:80]}: {error}") from None
    versions = list(pin.specifier)
    if len(versions) != 1 or versions[0].operator != "==" or versions[0].version.endswith(".*"):
        raise LockFormatError(f"{pin}: not pinned to one version")
    name, marker = canonicalize_name(pin.name), str(pin.marker or "")
    return LockedPackage(name, versions[0].version, marker, tuple(_HASH.findall(line)))


def installed(image: str, environment: Mapping[str, str]) -> list[LockedPackage]:
    """Return the packages that an image has on a base with these environment markers."""
    return [package for package in read(image) if package.applies(environment)]


def markers(python: str) -> dict[str, str]:
    """Return the environment markers of an image with this version of Python, such as 3.11.4."""
    major_minor = ".".join(python.split(".")[:2])
    return {
        "implementation_name": "cpython", "os_name": "posix", "platform_machine": "x86_64",
        "platform_python_implementation": "CPython", "platform_system": "Linux",
        "python_full_version": python, "python_version": major_minor, "sys_platform": "linux",
    }  # fmt: skip


def default_python() -> str:
    """Return the Python of the default base image: the newest patch release of its tag."""
    dockerfile = (ROOT / "Dockerfile.collector").read_text()
    tag = re.search(r"^ARG BASE_IMAGE=\S*python:(\d+\.\d+)", dockerfile, re.MULTILINE)
    if tag is None:
        raise LockFormatError("Dockerfile.collector: BASE_IMAGE names no version of Python")
    return f"{tag[1]}.{_NEWEST_PATCH}"
