"""Catalogue rows: block devices and I/O pressure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_OPERATIONS = partial(
    Metric, unit="operations", kind=Kind.COUNTER, subsystem=Subsystem.STORAGE, scope=Scope.DISK,
    source="diskstats", lane=Lane.FAST, quantum=5,
)  # fmt: skip
_BYTES = partial(_OPERATIONS, unit="bytes", quantum=1e5)
# 60 ms a second: a fault causes hundreds, the start of a job that reads 40.
_TIME = partial(_OPERATIONS, unit="ns", quantum=6e7, harm=Harm.HIGHER)
_REQUESTS = "storage.disk.queue_time"  # the family of times that are summed over requests
_RAID = partial(
    Metric, unit="state", kind=Kind.STATE, subsystem=Subsystem.STORAGE, scope=Scope.DISK,
    source="md", lane=Lane.SLOW, quantum=0.5,
)  # fmt: skip
_PRESSURE = partial(
    Metric, unit="ns", kind=Kind.COUNTER, subsystem=Subsystem.STORAGE, scope=Scope.NODE,
    source="psi", lane=Lane.FAST, quantum=1e7, harm=Harm.HIGHER, family="storage.pressure",
)  # fmt: skip

ROWS: tuple[Metric, ...] = (
    _OPERATIONS("storage.disk.reads", origin="rd_ios (r/s)", meaning="Reads completed"),
    _OPERATIONS(
        "storage.disk.read_merges", origin="rd_merges (rrqm/s)",
        meaning="Reads merged with an adjacent request",
    ),
    _BYTES("storage.disk.read_bytes", origin="sectors_read", meaning="Bytes read"),
    _TIME(
        "storage.disk.read_time", family=_REQUESTS, origin="rd_ticks",
        meaning="Time from queueing to completion, summed over reads",
    ),
    _OPERATIONS("storage.disk.writes", origin="wr_ios (w/s)", meaning="Writes completed"),
    _OPERATIONS(
        "storage.disk.write_merges", origin="wr_merges (wrqm/s)",
        meaning="Writes merged with an adjacent request",
    ),
    _BYTES("storage.disk.write_bytes", origin="sectors_written", meaning="Bytes written"),
    _TIME(
        "storage.disk.write_time", family=_REQUESTS, origin="wr_ticks",
        meaning="Time from queueing to completion, summed over writes",
    ),
    _OPERATIONS(
        "storage.disk.in_flight", unit="requests", kind=Kind.GAUGE, origin="in_flight",
        harm=Harm.HIGHER, meaning="Requests issued to the device and not completed",
    ),
    _TIME(
        "storage.disk.busy_time", origin="io_ticks (%util)",
        meaning="Time with at least one request in flight (reaches 100 % on a parallel device "
                "before it is saturated)",
    ),
    _TIME(
        "storage.disk.queue_time", family=_REQUESTS, origin="time_in_queue (aqu-sz)",
        meaning="Time queued or in service, summed over requests",
    ),
    _OPERATIONS("storage.disk.discards", origin="dc_ios (d/s)", meaning="Discards completed"),
    _OPERATIONS(
        "storage.disk.discard_merges", origin="dc_merges (drqm/s)",
        meaning="Discards merged with an adjacent request",
    ),
    _BYTES("storage.disk.discard_bytes", origin="sectors_discarded", meaning="Bytes discarded"),
    _TIME(
        "storage.disk.discard_time", origin="dc_ticks", harm=Harm.NEITHER,
        meaning="Time from queueing to completion, summed over discards",
    ),
    _OPERATIONS("storage.disk.flushes", origin="fl_ios (f/s)", meaning="Cache flushes completed"),
    _TIME(
        "storage.disk.flush_time", origin="fl_ticks",
        meaning="Time of cache flushes, summed over flushes",
    ),
    _RAID(
        "storage.raid.missing", unit="disks", kind=Kind.GAUGE, origin="md degraded",
        harm=Harm.HIGHER, meaning="Disks that are missing in a software RAID array",
    ),
    _RAID(
        "storage.raid.broken", origin="md array_state broken", harm=Harm.HIGHER,
        meaning="Whether a software RAID array has lost too many disks to serve requests",
    ),
    _RAID(
        "storage.raid.rebuilding", origin="md sync_action resync, recover, reshape",
        harm=Harm.HIGHER, meaning="Whether a software RAID array rebuilds or reshapes its disks",
    ),
    _RAID(
        "storage.raid.checking", origin="md sync_action check, repair", harm=Harm.HIGHER,
        meaning="Whether a software RAID array checks all of its disks",
    ),
    _RAID(
        "storage.raid.sync_speed", unit="bytes/s", kind=Kind.GAUGE, origin="md sync_speed",
        quantum=1e7, meaning="Speed of a rebuild or check on each disk of a software RAID array",
    ),
    _RAID(
        "storage.raid.mismatches", unit="bytes", kind=Kind.GAUGE, origin="md mismatch_cnt",
        quantum=1e6, meaning="Bytes that the last check of a software RAID array found different",
    ),
    _RAID(
        "storage.raid.disk_errors", unit="errors", kind=Kind.COUNTER, origin="md dev-*/errors",
        quantum=1, harm=Harm.HIGHER, role=Role.EVENT,
        meaning="Read errors of a disk that its software RAID array corrected",
    ),
    Metric(
        "storage.procs_blocked", "tasks", Kind.GAUGE, Subsystem.STORAGE, Scope.NODE, "stat",
        Lane.FAST, "procs_blocked", "Tasks that wait for block I/O", quantum=0.5, harm=Harm.HIGHER,
    ),
    _PRESSURE(
        "storage.pressure.some", origin="psi io some",
        meaning="Time in which at least one task waited for I/O",
    ),
    _PRESSURE(
        "storage.pressure.full", origin="psi io full",
        meaning="Time in which all tasks that were not idle waited for I/O",
    ),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
