"""qemu: its command line, and whether this machine's processor helps it."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster.rootfs import LABEL, RootFs

_QEMU = "qemu-system-x86_64"
_KVM = ("-accel", "kvm", "-cpu", "host")
_EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max")
_TRIAL_S = 20.0
_QUIET = ("-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot")


@dataclass(frozen=True)
class Shape:
    """How large a machine is."""

    cpus: int = 2
    memory_mib: int = 2048


@dataclass(frozen=True)
class Cable:
    """A tap interface of this machine, and the machine's address at its end."""

    interface: str
    mac: str


def command(
    system: RootFs, disks: tuple[Path, ...], cable: Cable, name: str, shape: Shape = Shape()
) -> list[str]:
    """A machine of that name, which starts from the first disk."""
    drives = [("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe") for disk in disks]
    words = (f"root=LABEL={LABEL}", f"systemd.hostname={name}", "net.ifnames=0", "quiet")
    ends = f"tap,id=cable,ifname={cable.interface},script=no,downscript=no"
    return [
        _QEMU, *accelerator(system), *_QUIET, "-nodefaults",
        "-smp", str(shape.cpus), "-m", str(shape.memory_mib),
        *_start(system, words),
        *(word for drive in drives for word in drive),
        "-netdev", ends, "-device", f"virtio-net-pci,netdev=cable,mac={cable.mac},romfile=",
    ]  # fmt: skip


@functools.cache
def accelerator(system: RootFs) -> tuple[str, ...]:
    """KVM where a kernel really starts under it: a virtual machine may show it and not have it."""
    return _KVM if Path("/dev/kvm").exists() and _starts(system) else _EMULATED


def _starts(system: RootFs) -> bool:
    """Without a disk the kernel panics, restarts, and so ends: that is as far as it need come."""
    trial = [_QEMU, *_KVM, *_QUIET, "-nodefaults", "-m", "512", *_start(system, ())]
    try:
        done = subprocess.run(
            trial, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S
        )
    except (subprocess.TimeoutExpired, FileNotFoundError):  # no qemu: nothing starts
        return False
    return done.returncode == 0 and b"Linux version" in done.stdout


def _start(system: RootFs, words: tuple[str, ...]) -> tuple[str, ...]:
    kernel_arguments = ("console=ttyS0", "panic=-1", *words)
    return (
        "-kernel", str(system.kernel), "-initrd", str(system.initrd),
        "-append", " ".join(kernel_arguments)
    )  # fmt: skip
