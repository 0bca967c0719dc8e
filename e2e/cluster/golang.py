"""Finds a Go that can build Kubernetes, of any Go that is there.

From 1.21 on ``go`` fetches the release that a go.mod asks for by itself (go.dev/doc/toolchain).
Older ones, which Debian 12 and Ubuntu 22.04 have, do not, but can download the module that holds
a release: ``golang.org/toolchain``. What Go does after that download is done here for them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_FETCHES_RELEASES = (1, 21)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_FOLDERS = ("/usr/local/go/bin", "/usr/lib/go/bin")
_ADVICE = (
    "install any Go from 1.17 on (Debian, Ubuntu: apt install golang-go; all: go.dev/dl); "
    "a release that is too old fetches a newer one"
)


class BuildError(RuntimeError):
    """What could not be built or fetched, why, and what to do."""


@dataclass(frozen=True)
class Go:
    """A ``go`` command and the environment that makes it build the same everywhere."""

    command: Path
    version: tuple[int, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, folder: Path, check: str) -> str:
        """What the command prints; ``BuildError`` beginning with ``check`` where it fails."""
        done = subprocess.run(
            [str(self.command), *arguments],
            cwd=folder,
            env={**os.environ, **_SETTINGS, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"{check}: {done.stderr.strip()[-3000:]}")
        return done.stdout


# a workspace or flags of the user must not change what is built; a release newer than the one
# at hand may be fetched, whatever the distribution's default is
_SETTINGS = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "", "GOTOOLCHAIN": "auto"}


def find(number: str, cache: Path) -> Go:
    """A Go for a module whose go.mod says ``go WANTED``; fetched into ``cache`` where needed."""
    present = _present()
    if present is None:
        raise BuildError(f"no Go to build with: {_ADVICE}")
    if present.version >= _FETCHES_RELEASES:
        return present
    name = f"go{number}"
    folder = cache / name
    if not (folder / "bin" / "go").exists():
        _unpack(_downloaded(present, name), folder)
    # GOROOT may name the old one
    return Go(folder / "bin" / "go", _numbers(number), {"GOROOT": str(folder)})


def _present() -> Go | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), *_FOLDERS))
    command = shutil.which("go", path=path)
    if command is None:
        return None
    # outside any module: the version of this Go, not the one that a go.mod requires
    output = Go(Path(command), ()).run("version", folder=Path("/"), check=f"{command} does not run")
    found = re.search(r"go(\d+\.\d+(?:\.\d+)?)", output)
    if found is None:
        raise BuildError(f"{command} says {output.strip()!r}, which is no release: {_ADVICE}")
    return Go(Path(command), _numbers(found[1]))


def _downloaded(old: Go, name: str) -> Path:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise BuildError(f"no {name} for {platform.machine()}: {_ADVICE}")
    module = f"golang.org/toolchain@v0.0.1-{name}.linux-{machine}"
    with tempfile.TemporaryDirectory() as nowhere:
        output = old.run(
            "mod", "download", "-json", module, folder=Path(nowhere),
            check=f"{old.command} is too old for Kubernetes and could not fetch {name}; {_ADVICE}",
        )  # fmt: skip
    return Path(json.loads(output)["Dir"])


def _unpack(module: Path, folder: Path) -> None:
    """A module's files have no execute bits, and it may hold no go.mod but its own."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="go-") as temporary:
        copy = Path(temporary) / "go"
        shutil.copytree(module, copy, copy_function=shutil.copyfile)
        for each in (copy, *copy.rglob("*")):
            if each.is_dir():
                each.chmod(0o755)  # nothing in Go's cache of modules may be written
        for each in copy.rglob("_go.mod"):
            each.rename(each.with_name("go.mod"))
        for programs in (copy / "bin", copy / "pkg" / "tool"):
            for each in programs.rglob("*"):
                each.chmod(0o755)
        copy.rename(folder)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
