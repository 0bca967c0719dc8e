"""A container of a manifest as runc runs it, of this checkout instead of an image.

The Python that runs the tests is bind-mounted read-only; everything else is what the manifest says
(``images.pod``).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.pod import Node, bounding_set, specification
from reveal_contract.kube.names import ORIGIN_TOKEN

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
RUNC = shutil.which("runc")
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc/ld.so.cache")
_IMAGE = (str(ROOT), sys.prefix, sys.base_prefix)
NODE = "n1"
_FIELDS = {
    "spec.nodeName": NODE, "metadata.name": "pod-1", "metadata.namespace": "reveal-system",
}  # fmt: skip


@dataclass(frozen=True)
class Container:
    """One that runs; ``log`` is what it wrote."""

    name: str
    log: Path

    def execute(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Another process in it, as an exec probe is one."""
        return subprocess.run(
            [str(RUNC), "exec", self.name, *command], capture_output=True, text=True, check=False
        )

    def status(self) -> dict[str, str]:
        """/proc/PID/status of its first process."""
        completed = subprocess.run(
            [str(RUNC), "state", self.name], capture_output=True, text=True, check=True
        )
        lines = Path(f"/proc/{json.loads(completed.stdout)['pid']}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@contextmanager
def running(
    workload: Mapping[str, Any], folder: Path, files: Mapping[str, str], shared: Path
) -> Iterator[Container]:
    """The one container of a workload; ``files`` are its ConfigMap's, ``shared`` is a folder."""
    name, rootfs = f"reveal-test-{folder.name}", folder / "rootfs"
    rootfs.mkdir(parents=True)
    spec = config(workload, folder, files, shared)
    (folder / "config.json").write_text(json.dumps(spec))
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(RUNC), "run", "--bundle", str(folder), name], stdout=file, stderr=file
        )
    try:
        yield Container(name, log)
    finally:
        subprocess.run([str(RUNC), "delete", "--force", name], capture_output=True, check=False)
        process.kill()
        process.wait()


def config(
    workload: Mapping[str, Any], folder: Path, files: Mapping[str, str], shared: Path
) -> Json:
    """What the manifest says, this checkout, and a folder that is the same inside and outside."""
    pod = workload["spec"]["template"]["spec"]
    node = Node(
        fields=_FIELDS,
        volumes={
            "settings": _volume(folder / "settings", files),
            # nobody reviews it: no analyzer reads what the collector sends
            "origin": _volume(folder / "origin", {ORIGIN_TOKEN: "a token"}),
        },
        environment={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"},
        capabilities=bounding_set(Path("/proc/self/status").read_text()),
    )
    spec = specification(pod, {}, folder / "rootfs", node)
    paths = dict.fromkeys(path for path in (*_SYSTEM, *_IMAGE) if Path(path).exists())
    spec["mounts"] += [_bind(Path(path), "ro") for path in paths]
    spec["mounts"].append(_bind(shared, "rw"))
    if not pod.get("hostNetwork"):  # its port is its own
        spec["linux"]["namespaces"].append({"type": "network"})
    return spec


def _volume(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def _bind(path: Path, access: str) -> Json:
    options = ["rbind", "rprivate", access]
    return {"destination": str(path), "type": "bind", "source": str(path), "options": options}
