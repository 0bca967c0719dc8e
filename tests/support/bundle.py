"""A container of a manifest as runc runs it, as a kubelet and its runtime would have it set up.

OCI runtime specification, config.md.  The image is this checkout with the Python that runs the
tests, bind-mounted read-only; everything else is what the manifest says.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
RUNC = shutil.which("runc")
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc/ld.so.cache")
_IMAGE = (str(ROOT), sys.prefix, sys.base_prefix)
_NAMES = ("n1", "pod-1", "reveal-system")  # of spec.nodeName, metadata.name and .namespace


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
        told = subprocess.run(
            [str(RUNC), "state", self.name], capture_output=True, text=True, check=True
        )
        lines = Path(f"/proc/{json.loads(told.stdout)['pid']}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@contextmanager
def running(
    workload: Mapping[str, Any], folder: Path, files: Mapping[str, str], redis: Path
) -> Iterator[Container]:
    """The one container of a workload; ``files`` are its ConfigMap's, ``redis`` a socket."""
    name, rootfs = f"reveal-test-{folder.name}", folder / "rootfs"
    rootfs.mkdir(parents=True)
    made = config(workload, folder, files, redis)
    (folder / "config.json").write_text(json.dumps(made))
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(RUNC), "run", "--bundle", str(folder), name], stdout=file, stderr=file
        )
    try:
        yield Container(name, log)
    finally:
        subprocess.run([str(RUNC), "kill", name, "KILL"], capture_output=True, check=False)
        process.wait(20)
        subprocess.run([str(RUNC), "delete", "-f", name], capture_output=True, check=False)


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def config(
    workload: Mapping[str, Any], folder: Path, files: Mapping[str, str], redis: Path
) -> Json:
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = {**pod.get("securityContext", {}), **container["securityContext"]}
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": context["readOnlyRootFilesystem"]},
        "process": {
            "user": {"uid": context["runAsUser"], "gid": context["runAsGroup"]},
            "cwd": "/",
            "args": [_program(container["command"][0]), *map(_expanded, container["args"])],
            "env": _environment(container, redis),
            "noNewPrivileges": not context["allowPrivilegeEscalation"],
            "capabilities": dict.fromkeys(
                ("bounding", "effective", "permitted"), _capabilities(context)
            ),
        },
        "mounts": [*_image(), *_mounts(pod, container, folder, files), _bind(redis.parent, "rw")],
        "linux": {"namespaces": [{"type": kind} for kind in _namespaces(pod)]},
    }


def _program(name: str) -> str:
    return str(Path(sys.prefix) / "bin" / name)


def _expanded(argument: str) -> str:
    return argument.replace("$(REVEAL_POD_NAME)", _NAMES[1])


def _environment(container: Mapping[str, Any], redis: Path) -> list[str]:
    by_field = dict(
        zip(("spec.nodeName", "metadata.name", "metadata.namespace"), _NAMES, strict=True)
    )
    known = {"PATH": "/usr/bin:/bin"}
    for each in container["env"]:
        field = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if field or "value" in each:
            known[each["name"]] = by_field.get(field, each.get("value", ""))
    known["REVEAL_REDIS_URL"] = f"unix://{redis}"
    return [f"{name}={value}" for name, value in known.items()]


def _capabilities(context: Mapping[str, Any]) -> list[str]:
    """Those asked for; of a privileged container all that this process has to give."""
    if context.get("privileged"):
        told = Path("/proc/self/status").read_text().partition("CapBnd:")[2].split()[0]
        return [name for at, name in enumerate(capability_names()) if int(told, 16) >> at & 1]
    return [f"CAP_{name}" for name in context["capabilities"].get("add", ())]


def capability_names() -> list[str]:
    """Names by number, linux/capability.h."""
    names = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
    LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE
    SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME
    SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
    WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"""
    return [f"CAP_{name}" for name in names.split()]


def _namespaces(pod: Mapping[str, Any]) -> list[str]:
    own = {"pid": "hostPID", "network": "hostNetwork", "ipc": "hostIPC"}
    return ["mount", *(kind for kind, field in own.items() if not pod.get(field))]


def _image() -> list[Json]:
    places = dict.fromkeys(place for place in (*_SYSTEM, *_IMAGE) if Path(place).exists())
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
        *(_bind(Path(place), "ro") for place in places),
    ]


def _mounts(
    pod: Mapping[str, Any], container: Mapping[str, Any], folder: Path, files: Mapping[str, str]
) -> Iterator[Json]:
    volumes = {each["name"]: each for each in pod["volumes"]}
    for each in container["volumeMounts"]:
        place, volume = each["mountPath"], volumes[each["name"]]
        if "hostPath" in volume:
            recursive = "recursiveReadOnly" in each
            yield _bind(Path(volume["hostPath"]["path"]), "rro" if recursive else "ro", place)
        elif "emptyDir" in volume:
            size = f"size={volume['emptyDir']['sizeLimit'].removesuffix('i').lower()}"
            options = [size, "mode=1777"]  # as the kubelet makes it
            yield {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options}
        elif "configMap" in volume:
            source = folder / each["name"]
            source.mkdir()
            for item in volume["configMap"]["items"]:
                (source / item["path"]).write_text(files[item["key"]])
            yield _bind(source, "ro", place)


def _bind(source: Path, access: str, destination: str = "") -> Json:
    return {
        "destination": destination or str(source),
        "type": "bind",
        "source": str(source),
        "options": ["rbind", "rprivate", access],
    }
