"""A container of a pod as the runtime specification has it (OCI, config.md).

What kubelet and containerd make of a pod between them, as far as the pods of Reveal go: no pod
network, no scheduling, no seccomp filter. So images run under the very manifests that the
operator applies, with nothing but runc or crun.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# linux/capability.h
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
_SYSTEM_MOUNTS: tuple[Json, ...] = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {
        "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
        "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
    },
    {
        "destination": "/dev/shm", "type": "tmpfs", "source": "shm",
        "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
    },
    {
        "destination": "/sys", "type": "sysfs", "source": "sysfs",
        "options": ["nosuid", "noexec", "nodev", "ro"],
    },
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """What a kubelet knows apart from the pod.

    ``fields``: values of the downward API (``spec.nodeName``). ``volumes``: folders that stand
    for ConfigMaps and Secrets, by the name of the volume; ``account`` for the service account's.
    ``environment``: variables that the cluster adds. ``capabilities``: what root has here at all.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, Path] = field(default_factory=dict)
    account: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = CAPABILITIES


def specification(pod: Json, image: Json, root: Path, node: Node) -> dict[str, Any]:
    """The bundle's config.json of the pod's only container; ``image`` is its OCI config."""
    (container,) = pod["containers"]
    context = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
    private = ["mount", "ipc", "uts", *(() if pod.get("hostPID") else ("pid",))]
    process = _process(container, image, context, node)
    return {
        "ociVersion": "1.0.2",
        "process": process,
        "root": {"path": str(root), "readonly": bool(context.get("readOnlyRootFilesystem"))},
        "mounts": [*_SYSTEM_MOUNTS, *_mounts(pod, container, node, process["user"])],
        # the network is the machine's: Redis and the API server of a test are on its loopback
        "linux": {"namespaces": [{"type": name} for name in private]},
    }


def bounding_set(status: str) -> tuple[str, ...]:
    """The names in ``CapEff`` of a /proc/PID/status."""
    mask = int(re.search(r"^CapEff:\s*(\w+)$", status, re.MULTILINE)[1], 16)  # type: ignore[index]
    return tuple(name for index, name in enumerate(CAPABILITIES) if mask >> index & 1)


def _process(container: Json, image: Json, context: Json, node: Node) -> dict[str, Any]:
    variables = dict(pair.split("=", 1) for pair in image.get("Env", ()))
    variables |= node.environment
    for item in container.get("env", ()):
        variables[item["name"]] = _value(item, node)
    user, _, group = image.get("User", "0:0").partition(":")
    capabilities = [f"CAP_{name}" for name in _capabilities(context, node)]
    words = [*container.get("command", image.get("Entrypoint", ())), *container.get("args", ())]
    return {
        "terminal": False,
        "user": {
            "uid": context.get("runAsUser", int(user)),
            "gid": context.get("runAsGroup", int(group or 0)),
        },
        "args": [_expanded(word, variables) for word in words],
        "env": [f"{name}={value}" for name, value in variables.items()],
        "cwd": image.get("WorkingDir") or "/",
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
        "noNewPrivileges": not context.get("allowPrivilegeEscalation", True),
    }


def _value(variable: Json, node: Node) -> str:
    if "value" in variable:
        return str(variable["value"])
    return node.fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """``$(NAME)`` of variables that are there, as the kubelet has it."""
    return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), word)


def _capabilities(context: Json, node: Node) -> Iterable[str]:
    if context.get("runAsUser", 0) != 0:
        return ()  # added ones would need ambient capabilities, which Kubernetes does not set
    if context.get("privileged"):
        return node.capabilities
    return [
        name for name in context.get("capabilities", {}).get("add", ()) if name in node.capabilities
    ]


def _mounts(pod: Json, container: Json, node: Node, user: Json) -> list[dict[str, Any]]:
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    mounts = [
        _memory(mount, volumes[mount["name"]]["emptyDir"], user)
        if "emptyDir" in volumes[mount["name"]]
        else _mount(mount, volumes[mount["name"]], node)
        for mount in container.get("volumeMounts", ())
    ]
    if node.account is not None:
        mounts.append(_bound(ACCOUNT_FOLDER, node.account, read_only=True))
    return mounts


def _mount(mount: Json, volume: Json, node: Node) -> dict[str, Any]:
    target, read_only = mount["mountPath"], bool(mount.get("readOnly"))
    if "hostPath" in volume:
        bound = _bound(target, Path(volume["hostPath"]["path"]), read_only)
        if mount.get("recursiveReadOnly"):
            bound["options"].append("rro")
        return bound
    return _bound(target, node.volumes[volume["name"]], read_only)


def _memory(mount: Json, volume: Json, user: Json) -> dict[str, Any]:
    """The kubelet lets anyone write there; runc gives it the mode of the folder in the image."""
    options = ["nosuid", "nodev", f"uid={user['uid']}", f"gid={user['gid']}"]
    if limit := volume.get("sizeLimit"):
        options.append(f"size={limit.replace('Mi', 'm')}")
    entry = {"destination": mount["mountPath"], "type": "tmpfs", "source": "tmpfs"}
    return {**entry, "options": options}


def _bound(target: str, source: Path, read_only: bool) -> dict[str, Any]:
    options = ["rbind", "rslave", "ro" if read_only else "rw"]
    return {"destination": target, "type": "bind", "source": str(source), "options": options}
