"""Faults of storage: bursts of reads and writes, throttled and slow devices."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from reveal_cli.faults.base import LIMIT_S, Fault, FaultError, FaultTarget, Injection, Needs
from reveal_cli.faults.disk import data_file, disk_of, no_disk
from reveal_cli.faults.ledger import Undo
from reveal_contract.metric import Subsystem

_STORAGE = frozenset({Subsystem.STORAGE})
_MIB = 1 << 20
_SLOW_READ, _SLOW_WRITE = 2 * _MIB, 4 * _MIB  # bytes a second


def _on_disk(target: FaultTarget) -> str:
    return no_disk(target.scratch)


def _data(target: FaultTarget) -> object:
    return data_file(target.scratch)


def _dirty(size: int, rate: float) -> Callable[[Injection], None]:
    def inject(injection: Injection) -> None:
        injection.program("write", injection.directory() / "dirty", size, rate)

    return inject


def _direct(block: int, count: int) -> Callable[[Injection], None]:
    def inject(injection: Injection) -> None:
        injection.program("direct", data_file(injection.target.scratch), "read", block, count)

    return inject


def _fio(*engine: str) -> Callable[[Injection], None]:
    def inject(injection: Injection) -> None:
        injection.run(
            "fio", "--name=reveal", f"--filename={data_file(injection.target.scratch)}",
            "--readonly", "--rw=randread", "--direct=1", "--bs=4k", "--time_based", "--thread",
            f"--runtime={LIMIT_S}", *engine,
        )  # fmt: skip

    return inject


def _throttle(injection: Injection) -> None:
    """Limit the I/O of the fault's cgroup: only its own readers wait."""
    device = disk_of(injection.target.scratch)
    if injection.group is None or device is None:
        raise FaultError("throttling needs a cgroup and a disk")
    injection.group.limit_io(device, _SLOW_READ, _SLOW_WRITE)


def _slow_reads(injection: Injection) -> None:
    _throttle(injection)
    injection.program("direct", data_file(injection.target.scratch), "read", _MIB, 1)


def _slow_disk(injection: Injection) -> None:
    """Write to a loop device behind a throttle: a disk with 100 ms and more for each request."""
    image = injection.directory() / "slow.img"
    with image.open("wb") as file:
        file.truncate(256 * _MIB)
    _throttle(injection)
    device = _loop_device(injection, str(image))
    injection.program("direct", device, "write", 1 << 16, 8)


def _loop_device(injection: Injection, image: str) -> str:
    injection.ledger.add(Undo("loop", (image,)))
    done = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", image],
        capture_output=True, text=True, timeout=10, check=False,
    )  # fmt: skip
    if done.returncode:
        raise FaultError(f"no loop device: {done.stderr.strip()}")
    return done.stdout.strip()


_FIO = Needs(binaries=("fio",), check=_on_disk)
_BLKIO = Needs(root=True, controllers=("blkio",), check=_on_disk)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "dirty", "writeback burst", _STORAGE | {Subsystem.MEMORY},
        "600 MB written and synced repeatedly",
        _dirty(600 * _MIB, 0), needs=Needs(check=_on_disk),
    ),
    Fault(
        "dirty_weak", "writeback burst", _STORAGE | {Subsystem.MEMORY}, "20 MB written a second",
        _dirty(100 * _MIB, 20e6), weak=True, needs=Needs(check=_on_disk),
    ),
    Fault(
        "sync_storm", "sync storm", _STORAGE, "1 MiB written and synced, as often as possible",
        _dirty(_MIB, 0), needs=Needs(check=_on_disk),
    ),
    Fault(
        "read_burst", "storage read burst", _STORAGE, "4 readers of random 256 KiB blocks, direct",
        _direct(1 << 18, 4), needs=Needs(check=_on_disk), prepare=_data,
    ),
    Fault(
        "fio_sync", "storage read burst", _STORAGE, "fio: 4 blocking readers of 4 KiB blocks",
        _fio("--ioengine=psync", "--numjobs=4"), needs=_FIO, prepare=_data,
    ),
    Fault(
        "fio_libaio", "asynchronous storage reads", _STORAGE, "fio: libaio, 32 reads in flight",
        _fio("--ioengine=libaio", "--iodepth=32"), needs=_FIO, prepare=_data,
    ),
    Fault(
        "fio_weak", "storage read burst", _STORAGE, "fio: 300 random reads a second",
        _fio("--ioengine=psync", "--rate_iops=300"), weak=True, needs=_FIO, prepare=_data,
    ),
    Fault(
        "slow_reads", "slow storage for one container", _STORAGE,
        "a container that may read 2 MiB a second", _slow_reads, needs=_BLKIO, prepare=_data,
    ),
    Fault(
        "slow_disk", "slow device", _STORAGE, "a loop device whose writes take 100 ms and more",
        _slow_disk, needs=Needs(root=True, binaries=("losetup",), controllers=("blkio",),
                                check=_on_disk),
    ),
)  # fmt: skip
