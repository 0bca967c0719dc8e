"""Builds the programs of the control plane from Go modules into the cache.

What is built already, of the same sources and with the same flags, stays. An interrupted run
goes on where it was: finished programs are kept, and what was compiled of the next one lies in
Go's own cache. Cold, on two cores: about six minutes and 4 GB of that cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster import binaries, golang, modules
from cluster.golang import BuildError, Go
from cluster.modules import Module

__all__ = ["BuildError", "build"]

_COMMANDS = f"{modules.KUBERNETES_PATH}/cmd"
_COMMANDS_BUILT = (
    "kube-apiserver", "kubectl", "kube-controller-manager",
    "kube-scheduler", "kubelet", "kube-proxy",
)  # fmt: skip
_VERSION = "k8s.io/component-base/version"
Log = Callable[[str], None]


@dataclass(frozen=True)
class Program:
    """What is built: a package of a module; ``variables`` are set in it by the linker."""

    name: str
    module: Module
    package: str
    variables: tuple[tuple[str, str], ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """Of ``go build``: smaller files, and none of this machine's paths in them."""
        linker_flags = [f"-X {name}={value}" for name, value in self.variables]
        return ("-trimpath", "-buildvcs=false", "-ldflags", " ".join(("-s", "-w", *linker_flags)))

    @property
    def digest(self) -> str:
        """Changes with anything that changes the program."""
        hashed = hashlib.sha256()
        for each in sorted(self.module.folder.rglob("*")):
            if each.is_file():
                hashed.update(each.read_bytes())
        hashed.update(" ".join((self.package, *self.flags)).encode())
        return hashed.hexdigest()


def programs() -> tuple[Program, ...]:
    """All of them, in the order of their use: a run cut short leaves the most useful ones."""
    version = modules.KUBERNETES.version(modules.KUBERNETES_PATH)
    minor = version.split(".")[1]
    linked = (
        (f"{_VERSION}.gitVersion", version),
        (f"{_VERSION}.gitMajor", "1"),
        (f"{_VERSION}.gitMinor", minor),
    )
    return (
        Program("etcd", modules.KUBERNETES, "./etcd", ()),
        *(
            Program(name, modules.KUBERNETES, f"{_COMMANDS}/{name}", linked)
            for name in _COMMANDS_BUILT
        ),
        Program("helm", modules.HELM, f"{modules.HELM_PATH}/cmd/helm", _helm_variables(minor)),
        Program("coredns", modules.COREDNS, ".", ()),
    )


def build(log: Log = print, names: tuple[str, ...] = binaries.ALL) -> None:
    """Build what is missing or stale of ``names``; each step is logged with its seconds.

    ``BuildError`` without a Go that can do it, or where sources cannot be fetched.
    """
    folder = binaries.cache()
    given = os.environ.get(binaries.ASSETS_VARIABLE)
    expected = [
        program
        for program in programs()
        if program.name in names and not _is_current(program, folder)
    ]
    if given:
        expected = [item for item in expected if not (Path(given) / item.name).exists()]
    if not expected:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, log):
        for item in expected:
            if not _is_current(item, folder):  # another run may have built it meanwhile
                _build(item, folder, log)


def _build(program: Program, folder: Path, log: Log) -> None:
    began = time.monotonic()
    log(f"building {program.name} ...")
    go = _go(program.module, folder)
    unfinished = folder / f"{program.name}.unfinished"
    go.run(
        "build", *program.flags, "-o", str(unfinished), program.package,
        folder=program.module.folder, check=f"could not build {program.name}",
    )  # fmt: skip
    unfinished.replace(folder / program.name)
    _stamp(program, folder).write_text(program.digest)
    size = (folder / program.name).stat().st_size // 1_000_000
    log(f"built {program.name} in {time.monotonic() - began:.0f} s, {size} MB")


def _go(module: Module, folder: Path) -> Go:
    return golang.find(module.go, folder.parent.parent / "go")


def _is_current(program: Program, folder: Path) -> bool:
    stamp = _stamp(program, folder)
    if not (folder / program.name).exists() or not stamp.exists():
        return False
    return stamp.read_text() == program.digest


def _stamp(program: Program, folder: Path) -> Path:
    return folder / f".{program.name}.built-from"


def _helm_variables(minor: str) -> tuple[tuple[str, str], ...]:
    """Which Kubernetes ``helm template`` and ``helm lint`` assume: without these, 1.20."""
    path = modules.HELM_PATH
    variables = [(f"{path}/internal/version.version", modules.HELM.version(path))]
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        variables.append((f"{path}/{package}.k8sVersionMajor", "1"))
        variables.append((f"{path}/{package}.k8sVersionMinor", minor))
    return tuple(variables)


@contextmanager
def _alone(folder: Path, log: Log) -> Iterator[None]:
    """One build at a time: two at once take the memory of both and are no faster."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("waiting for another build to finish ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
