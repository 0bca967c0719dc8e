"""Stressors of stress-ng that nothing in Reveal was chosen or tuned by: a menu to be judged by.

Whoever tunes anything to these takes their worth from them: add others then.
"""

from __future__ import annotations

from reveal_cli.faults import Fault
from reveal_cli.faults.base import Needs, stress
from reveal_contract.metric import Subsystem

_CPU, _MEMORY, _STORAGE, _NETWORK = (
    Subsystem.CPU, Subsystem.MEMORY, Subsystem.STORAGE, Subsystem.NETWORK,
)  # fmt: skip
_ON_DISK = " --temp-path /var/tmp"
# subsystems that may rightly be named -> arguments of the stressors
_MENU: dict[tuple[Subsystem, ...], tuple[str, ...]] = {
    (_CPU,): (
        "--futex 2", "--pipe 2", "--yield 2", "--pthread 2", "--exec 1", "--matrix 3",
        "--hrtimers 1", "--sigq 2", "--sigsegv 1", "--mq 2", "--poll 2", "--getrandom 2",
    ),
    (_CPU, _MEMORY): (
        "--clone 1", "--mmap 2 --mmap-bytes 256m", "--stream 2", "--madvise 2" + _ON_DISK,
        "--mremap 2", "--shm 2", "--vm 1 --vm-bytes 40%", "--bigheap 1 --bigheap-bytes 4g",
        "--tlb-shootdown 2", "--mlock 1",
    ),
    (_STORAGE, _CPU, _MEMORY): (
        "--hdd 1 --hdd-bytes 256m" + _ON_DISK, "--iomix 1 --iomix-bytes 128m" + _ON_DISK,
    ),
    (_STORAGE, _CPU): (
        "--seek 1" + _ON_DISK, "--sync-file 1" + _ON_DISK, "--fallocate 1" + _ON_DISK,
        "--dentry 1" + _ON_DISK, "--rename 1" + _ON_DISK, "--io 1", "--aio 1" + _ON_DISK,
    ),
    (_NETWORK, _CPU): (
        "--sock 1", "--udp 1", "--udp-flood 1", "--sockmany 1", "--epoll 1", "--sockpair 1",
    ),
}  # fmt: skip


def _fault(subsystems: tuple[Subsystem, ...], arguments: str) -> Fault:
    words = arguments.split()
    name = words[0].removeprefix("--")
    return Fault(
        f"stress_{name.replace('-', '_')}", f"stranger {name}", frozenset(subsystems),
        f"stress-ng {arguments}", stress(*words), needs=Needs(binaries=("stress-ng",)),
    )  # fmt: skip


STRANGERS = tuple(
    _fault(subsystems, arguments) for subsystems, several in _MENU.items() for arguments in several
)
