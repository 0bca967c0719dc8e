"""Stressors that nothing in Reveal was chosen or tuned by: menus to be judged by.

Whoever tunes anything to these takes their worth from them: add another menu then.
"""

from __future__ import annotations

from itertools import starmap

from reveal_cli.faults import Fault, Injection
from reveal_cli.faults.base import Needs, stress
from reveal_contract.metric import Subsystem

_CPU, _MEMORY, _STORAGE, _NETWORK = (
    Subsystem.CPU, Subsystem.MEMORY, Subsystem.STORAGE, Subsystem.NETWORK,
)  # fmt: skip
_ON_DISK = " --temp-path /var/tmp"
_Menu = dict[tuple[Subsystem, ...], tuple[str, ...]]
# subsystems that may rightly be named -> arguments of the stressors
_FIRST: _Menu = {
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


_SECOND: _Menu = {
    (_CPU,): (
        "--vfork 2", "--switch 2", "--sem 2", "--msg 2", "--fifo 2", "--eventfd 2", "--timerfd 1",
        "--affinity 2", "--procfs 2", "--ptrace 1", "--kill 1", "--urandom 2", "--lockbus 1",
        "--membarrier 1", "--inotify 1" + _ON_DISK, "--flock 2" + _ON_DISK,
    ),
    (_CPU, _MEMORY): (
        "--malloc 2 --malloc-bytes 512m", "--brk 2", "--cache 2", "--vm-rw 1", "--userfaultfd 1",
        "--memrate 1 --memrate-bytes 256m", "--splice 2", "--zero 2",
    ),
    (_STORAGE, _CPU, _MEMORY): (
        "--copy-file 1" + _ON_DISK, "--msync 1" + _ON_DISK, "--readahead 1" + _ON_DISK,
        "--sendfile 1" + _ON_DISK, "--getdent 1" + _ON_DISK,
    ),
    (_NETWORK, _CPU): ("--icmp-flood 1", "--netlink-proc 1"),
}  # fmt: skip
# what administrators and their tools do: name, subsystems, programs needed, a shell script in which
# $JOB is a process of the job and $SCRATCH a directory on a disk
_SCRIPTS: tuple[tuple[str, tuple[Subsystem, ...], str, str], ...] = (
    ("strace", (_CPU,), "strace", "exec strace -f -qq -o /dev/null -p $JOB"),
    ("backtraces", (_CPU,), "gdb",
     "while :; do gdb -p $JOB -batch -ex 'thread apply all bt'; done >/dev/null 2>&1"),
    ("perf_record", (_CPU,), "perf",
     "exec perf record -q -a -g -F 15000 -o $SCRATCH/perf.data sleep 60"),
    ("drop_caches", (_STORAGE, _MEMORY, _CPU), "",
     "while :; do echo 3 > /proc/sys/vm/drop_caches; sleep 0.1; done"),
    ("compact", (_MEMORY, _CPU), "", "while :; do echo 1 > /proc/sys/vm/compact_memory; done"),
    ("realtime", (_CPU,), "chrt", "exec chrt -f 50 sh -c 'while :; do :; done'"),
    ("mounts", (_CPU,), "unshare",
     "exec unshare -m sh -c 'while :; do mount -t tmpfs x /mnt && umount /mnt; done'"),
    ("namespaces", (_CPU, _NETWORK), "unshare", "while :; do unshare -n true; done"),
    ("log_lines", (_STORAGE, _CPU), "",
     "exec dd if=/dev/zero of=$SCRATCH/log bs=200 oflag=dsync status=none"),
    ("archive", (_STORAGE, _CPU, _MEMORY), "tar",
     "while :; do tar -cf $SCRATCH/usr.tar /usr/lib/python3* /usr/share; sync; done 2>/dev/null"),
    ("compress", (_CPU,), "xz", "exec xz -T2 -9 < /dev/urandom > /dev/null"),
    ("checksums", (_CPU, _STORAGE), "", "while :; do find /usr -xdev -type f -exec sha256sum {} + ;"
     " done > /dev/null 2>&1"),
)  # fmt: skip


def _script(name: str, subsystems: tuple[Subsystem, ...], program: str, script: str) -> Fault:
    def inject(injection: Injection) -> None:
        assert injection.target.workload is not None, "the job has a cgroup"
        job = min(injection.target.workload.processes())
        injection.run("sh", "-c", f"JOB={job}; SCRATCH={injection.directory()}; {script}")

    return Fault(
        f"script_{name}", f"script {name}", frozenset(subsystems), script, inject,
        needs=Needs(root=True, binaries=(program,) if program else (), workload=True),
    )  # fmt: skip


def _fault(subsystems: tuple[Subsystem, ...], arguments: str) -> Fault:
    words = arguments.split()
    name = words[0].removeprefix("--")
    return Fault(
        f"stress_{name.replace('-', '_')}", f"stranger {name}", frozenset(subsystems),
        f"stress-ng {arguments}", stress(*words), needs=Needs(binaries=("stress-ng",)),
    )  # fmt: skip


def _stressors(menu: _Menu) -> tuple[Fault, ...]:
    return tuple(
        _fault(subsystems, arguments)
        for subsystems, several in menu.items()
        for arguments in several
    )


MENUS = {1: _stressors(_FIRST), 2: (*_stressors(_SECOND), *starmap(_script, _SCRIPTS))}
