"""What the BPF programs of the ledger need, and what this host does not have of it."""

from __future__ import annotations

import ctypes
import errno
import re
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.ledger.programs import is_built
from reveal_collector.readers.source import Roots
from reveal_collector.readers.sysfs_attributes import parse_fields, read_text

OLDEST = 5, 18  # before, sched_switch does not say in which state a thread leaves the CPU
# bits of CapEff, capabilities(7)
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO
_RIGHTS = "run as root, or grant CAP_BPF and CAP_PERFMON"


def kernel_release(text: str) -> tuple[int, int]:
    """Return the version in a release such as ``6.1.0-13-amd64``; (0, 0) for other text."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def is_capable(status: str) -> bool:
    """Return whether ``/proc/PID/status`` shows the rights to load the programs."""
    granted = int(parse_fields(status).get("CapEff", "0"), 16)
    return bool(granted >> _CAP_SYS_ADMIN & 1 or granted >> _CAP_BPF & granted >> _CAP_PERFMON & 1)


def check_host(roots: Roots, library: ctypes.CDLL | None) -> ctypes.CDLL:
    """Return the library if nothing prevents loading the programs; else raise ``Unsupported``."""
    if not roots.live:
        raise Unsupported("threads can be followed only on the running machine itself")
    if library is None or not is_built(library):
        raise Unsupported(
            "the C part of the collector has no ledger",
            "install a C compiler (Debian, Ubuntu: apt install gcc libc6-dev) and reinstall",
        )
    release = kernel_release(read_text(roots.proc / "sys/kernel/osrelease"))
    if release < OLDEST:
        raise Unsupported(f"Linux {release[0]}.{release[1]} is older than 5.18", "use a newer one")
    if not (roots.sys / "kernel/btf/vmlinux").exists():
        raise Unsupported(
            f"this kernel does not describe its types: {roots.sys}/kernel/btf/vmlinux is missing",
            "use a kernel with CONFIG_DEBUG_INFO_BTF",
        )
    if not is_capable(read_text(roots.proc / "self/status")):
        raise Unsupported("loading BPF programs needs CAP_BPF and CAP_PERFMON", _RIGHTS)
    return library


def refusal(error: OSError) -> Unsupported:
    """Return why the kernel refused the programs."""
    if error.errno in (errno.EPERM, errno.EACCES):
        return Unsupported(
            "the kernel refuses BPF programs although the process has the rights",
            "check lockdown, the security module and the seccomp profile; in a container use the "
            "host's user namespace",
        )
    if error.errno == errno.ENOSYS:
        return Unsupported("this kernel has no bpf()", "use a kernel with CONFIG_BPF_SYSCALL")
    if error.errno == errno.ENOENT:
        return Unsupported("this kernel lacks one of the tracepoints or types that are read")
    return Unsupported(f"BPF programs cannot be loaded: {error.strerror or error}")


def sees_host_pids(proc: Path) -> bool:
    """Return whether numbers of processes are those of the host, so that groups have names."""
    try:
        return str((proc / "self/ns/pid").readlink()) == _INITIAL_PID_NAMESPACE
    except OSError:
        return False
