"""What the collector can open with some rights and not with others: a child process tells.

Run as a program it is that child: it keeps the given capabilities and no other, opens
every source of the host as seen below a folder, and prints what opened and what it is missing.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# linux/capability.h
NUMBERS = {
    "DAC_READ_SEARCH": 2, "NET_BIND_SERVICE": 10, "SYS_PTRACE": 19, "SYS_NICE": 23, "PERFMON": 38,
    "BPF": 39,
}  # fmt: skip
ALL = "ALL"  # as root has it
_LAST = 63
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
# the host below a folder, as hostPath volumes are; read-only
_MOUNTS = """
mount -t tmpfs none "$1"
for each in proc sys; do
  mkdir "$1/$each"
  mount --rbind "/$each" "$1/$each"
  mount -o remount,bind,ro "$1/$each"
done
shift
exec "$@"
"""


@dataclass(frozen=True)
class ProbeReport:
    """Of one run: source -> its channels; source -> why it did not open; the rest by name."""

    channels: dict[str, list[str]]
    missing: dict[str, str]
    facts: dict[str, Any]


Probe = Callable[[tuple[str, ...]], "ProbeReport"]


def bounding_capabilities() -> set[str]:
    """Those of ``NUMBERS`` that this process may pass on."""
    status = Path("/proc/self/status").read_text()
    bounding = int(status.partition("CapBnd:")[2].split()[0], 16)
    return {name for name, number in NUMBERS.items() if bounding >> number & 1}


def probe(
    folder: Path, keep: Sequence[str], other: int, namespaces: Sequence[str] = ()
) -> ProbeReport:
    """The host as root with these capabilities sees it; ``other`` is another user's process."""
    command = [
        "unshare", "--mount", "--propagation", "private", *namespaces,
        "sh", "-ec", _MOUNTS, "sh", str(folder),
        sys.executable, __file__, str(folder), str(other), *keep,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return ProbeReport(**json.loads(done.stdout))


def _drop_all_but(keep: Sequence[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    kept = set(range(_LAST + 1)) if ALL in keep else {NUMBERS[name] for name in keep}
    for number in set(range(_LAST + 1)) - kept:
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # one that the kernel does not have: EINVAL
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")


def _probe(folder: Path, other: int) -> dict[str, Any]:
    from reveal_collector.kernel_interfaces.scheduling import prefer_real_time
    from reveal_collector.registry import probe_all, roots_of
    from reveal_contract.settings import CollectorSettings

    settings = CollectorSettings(
        "n", "", proc_root=str(folder / "proc"), sys_root=str(folder / "sys"),
        cgroup_root=str(folder / "sys/fs/cgroup"), perf_cgroups=True,
    )  # fmt: skip
    found = probe_all(roots_of(settings), settings)
    report = {
        "channels": {source.name: [each.label for each in source.channels]
                     for source in found.sources},
        "missing": {each.source: each.reason for each in found.missing},
        "facts": {
            "io": _opens(folder / f"proc/{other}/io"),
            "root": os.access(folder / f"proc/{other}/root", os.X_OK),
            "ns": _is_readable_link(folder / f"proc/{other}/ns/net"),
            "real_time": prefer_real_time() is None,
            "strangers": _strangers(folder / "sys/fs/cgroup"),
        },
    }  # fmt: skip
    for source in found.sources:
        source.close()
    return report


def _strangers(cgroups: Path) -> int:
    """Processes of cgroups whose numbers cannot be seen from here."""
    files = [*cgroups.glob("cgroup.procs"), *cgroups.glob("*/cgroup.procs")]
    return sum(file.read_text().split().count("0") for file in files)


def _is_readable_link(link: Path) -> bool:
    try:
        return bool(link.readlink())
    except OSError:
        return False


def _opens(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    root, process, *names = sys.argv[1:]
    if names and names[0] == "--now":
        sys.stdout.write(json.dumps(_probe(Path(root), int(process))))
    else:
        _drop_all_but(names)
        # at the next exec root loses the capabilities that are not in the bounding set
        os.execv(sys.executable, [sys.executable, __file__, root, process, "--now"])
