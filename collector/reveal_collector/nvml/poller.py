"""Thread that polls NVML and publishes snapshots of the values."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.nvml import library
from reveal_collector.nvml.bus import DRIVER_FOLDER
from reveal_collector.nvml.devices import Gpu
from reveal_collector.nvml.events import XidCounts
from reveal_collector.nvml.gpu_processes import GpuProcess, SubjectCache, SubjectGpuUsage
from reveal_collector.nvml.library import Library
from reveal_collector.nvml.metric_queries import SCALES
from reveal_collector.nvml.query_budget import QUICK_NS, RARE_NS
from reveal_collector.nvml.query_schedule import Clock
from reveal_collector.nvml.session import NvmlSession
from reveal_collector.nvml.snapshots import EMPTY, QUICK, STATE, SUBJECTS, GpuSnapshot
from reveal_collector.readers.source import Outage, Roots
from reveal_collector.subjects.pods.process_owner import SubjectOfPid
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.runtime.backoff import Backoff
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_MIN_RETRY_S, _MAX_RETRY_S = 5.0, 60.0
_STOP_TIMEOUT_S = 1.0  # how long ``stop`` waits for a call in the driver
_READ_MARGIN_NS = 3 * QUICK_NS  # that states keep from the moment in which a slice reads them

Values = dict[tuple[str, str], int | None]


class NvmlPoller:
    """Polls all GPUs on a grid of 100 ms, from the first ``start`` to the last ``stop``.

    ``subject_of_pid`` returns the subject of a process, by default from its cgroup.  ``degraded``
    lists the queries that are slowed.  ``outage`` says since when the driver has failed.  A driver
    that hangs cannot be seen here: the snapshots get old.
    """

    def __init__(
        self,
        roots: Roots,
        profiling: bool = False,
        subject_of_pid: SubjectOfPid | None = None,
        load: Callable[[], Library] = library.load,
        clock: Clock = time.monotonic_ns,
        driver_folder: Path = DRIVER_FOLDER,
    ) -> None:
        self.snapshots = dict.fromkeys((QUICK, STATE, SUBJECTS), EMPTY)
        self.degraded: tuple[str, ...] = ()
        self.outage: Outage | None = None
        self.state_read_ns = 0  # when a source read the states last
        self.cpu_ns = 0  # CPU time of the thread that asks the driver
        self._roots, self._profiling, self._load, self._clock = roots, profiling, load, clock
        self._driver_folder = driver_folder
        self._subject_usage = SubjectGpuUsage(SubjectCache(roots.proc, subject_of_pid))
        self._xids = XidCounts()
        self._numbers: dict[str, int] = {}
        self._session: NvmlSession | None = None
        self._spent_before = 0
        self._state_due_ns = self._enumerate_due_ns = self._retry_due_ns = 0
        self._backoff = Backoff(_MIN_RETRY_S, _MAX_RETRY_S)
        self._users = 0
        self._opening = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs at the last enumeration; ``index`` is the number in channel names."""
        return self._session.gpus if self._session else ()

    def processes(self) -> Mapping[int, tuple[GpuProcess, ...]]:
        """Return the processes of each GPU by its index."""
        session = self._session
        return {n: each.processes for n, each in session.processes.items()} if session else {}

    def start(self) -> None:
        """Register one more user; raises ``Unsupported`` without a driver or a GPU.

        While another thread hangs in the opening, it is refused: a second one would hang, too.
        """
        if self._opening:
            raise Unsupported(
                "the NVIDIA driver does not answer", "run nvidia-smi; see dmesg for the reason"
            )
        if self._users == 0:
            self._opening = True
            try:
                self.open()
            finally:
                self._opening = False
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="reveal-nvml", daemon=True)
            self._thread.start()
        self._users += 1

    def stop(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users or self._thread is None:
            return
        self._stopping.set()
        self._thread.join(_STOP_TIMEOUT_S)
        blocked = self._thread.is_alive()
        self._thread = None
        if not blocked:  # a call that hangs still uses the library: leave it open
            self._close()

    def open(self) -> None:
        """Start the library, enumerate the GPUs and run the first round."""
        self._connect()
        if self._session is None or not self._session.lost():
            self._close()
            raise Unsupported(
                "the NVIDIA driver finds no GPU", "check nvidia-smi -L and lspci -d 10de:"
            )
        self.run_round()

    def run_round(self, planned_ns: int | None = None) -> None:
        """Send the queries that are due and update the snapshots.

        Decisions are made at the planned time: a round that is a millisecond early or late must
        not move a query to another round, where a second has two values of it, and the next none.
        """
        now = self._clock() if planned_ns is None else planned_ns
        session = self._session
        if session is None:
            if now >= self._retry_due_ns:
                self._reconnect(now)
        else:
            try:
                self._query(session, now)
            except Exception as error:  # the driver was unloaded during the round
                self._disconnect(error, now)
        self._publish(now)

    def _run(self) -> None:
        due, before = self._clock(), self.cpu_ns
        while not self._stopping.is_set():
            try:
                self.run_round(due)
            except Exception:  # a defect must not end the thread: the next round may succeed
                log.exception("a round of GPU queries failed")
            self.cpu_ns = before + time.thread_time_ns()
            due = max(due + QUICK_NS, self._clock())
            self._stopping.wait((due - self._clock()) / NS_PER_SECOND)

    def _query(self, session: NvmlSession, now: int) -> None:
        if now >= self._enumerate_due_ns:
            session.enumerate()
            self._enumerate_due_ns = now + RARE_NS
        for gpu, code in session.round(now):
            self._xids.add(gpu, code, now)
            log.warning("GPU %d: XID %d", gpu, code)
        # Once a second: the periods follow the measured costs.
        if now >= self._state_due_ns and session.budget.review():
            for phrase in session.budget.slowed:
                log.warning("%s", phrase)

    def _connect(self) -> None:
        nvml = self._load()
        library.start(nvml)
        try:
            self._session = NvmlSession(
                nvml,
                self._roots.sys,
                self._numbers,
                self._profiling,
                self._clock,
                self._driver_folder,
            )
        except nvml.NVMLError as error:
            library.stop(nvml)
            raise Unsupported(f"NVML: {error}", "run nvidia-smi for details") from None
        self._enumerate_due_ns = self._clock() + RARE_NS

    def _reconnect(self, now: int) -> None:
        try:
            self._connect()
        except Unsupported as missing:
            self._note_outage(f"{missing.reason}; {missing.remedy}", now)
            self._retry_due_ns = now + round(self._backoff.next() * NS_PER_SECOND)
            return
        log.info("the NVIDIA driver answers again")
        self.outage = None
        self._backoff.reset()

    def _note_outage(self, reason: str, now: int) -> None:
        """Record why the driver fails, with the time of its first failure."""
        since_ns = self.outage.since_ns if self.outage else now
        self.outage = Outage(since_ns, reason)

    def _disconnect(self, error: Exception, now: int) -> None:
        self._note_outage(f"the NVIDIA driver does not answer: {error}", now)
        log.warning("nvml: the NVIDIA driver does not answer: %s", error)
        self._close()
        self._retry_due_ns = now + round(self._backoff.next() * NS_PER_SECOND)

    def _close(self) -> None:
        if self._session is not None:
            self._spent_before += self._session.spent_ns
            self._session.close()
            self._session = None

    def _publish(self, now: int) -> None:
        session = self._session
        if session is None:
            self.degraded = ()
            self._clear_values(now)
            return
        quick = {
            (metric, schedule.instance): schedule.values[metric]
            for schedule in session.schedules
            for metric in schedule.quick
        }
        self._store(QUICK, quick, now)
        if now < self._state_due_ns:
            return  # state and subjects change slowly: once a second is enough
        for schedule in session.schedules:
            schedule.expire(now)
        state = {
            (metric, schedule.instance): schedule.values[metric]
            for schedule in session.schedules
            for metric in schedule.others
        }
        self._state_due_ns = now + self._until_next_state(now)
        self.degraded = tuple(session.budget.slowed)
        self._store(STATE, state | self._gpu_values(session, now), now)
        self._store(SUBJECTS, self._subject_usage.values(session.processes.values(), now), now)

    def _until_next_state(self, now: int) -> int:
        """Return the time to the next states: once a second, away from the reads of slices.

        Otherwise a slice would have the counts of no second, and the next those of two.
        """
        since_read = (now - self.state_read_ns) % NS_PER_SECOND
        distance = min(since_read, NS_PER_SECOND - since_read)
        is_near = self.state_read_ns > 0 and distance < _READ_MARGIN_NS
        return NS_PER_SECOND // 2 if is_near else NS_PER_SECOND

    def _gpu_values(self, session: NvmlSession, now: int) -> Values:
        lost = session.lost()
        values: Values = {("gpu.lost", gpu): int(gone) for gpu, gone in lost.items()}
        values["gpu.count", ""] = len(lost) - sum(lost.values())
        values["gpu.expected", ""] = len(lost)
        values["gpu.driver.time", ""] = self._spent_before + session.spent_ns
        values["gpu.driver.slowed", ""] = len(self.degraded)
        for gpu, processes in session.processes.items():
            if processes.has_samples:
                values["gpu.contention", str(gpu)] = self._subject_usage.contention(processes)
        for gpu in sorted(session.event_gpus):
            application, others, last = self._xids.of_gpu(gpu)
            values["gpu.xid.application", str(gpu)] = application
            values["gpu.xid.hardware", str(gpu)] = others
            values["gpu.xid.last", str(gpu)] = last
        return values | {("gpu.xid", code): n for code, n in self._xids.by_code(now).items()}

    def _clear_values(self, now: int) -> None:
        """Keep the columns without values while the driver is gone; no GPU answers."""
        for name, snapshot in self.snapshots.items():
            values = tuple(
                0 if channel.metric == "gpu.count" else None for channel in snapshot.channels
            )
            self.snapshots[name] = snapshot._replace(values=values, taken_ns=now)

    def _store(self, name: str, by_key: Values, now: int) -> None:
        snapshot = self.snapshots[name]
        keys = tuple(by_key)
        values = tuple(by_key.values())
        if keys == snapshot.keys:  # keep the tuple of channels: readers compare it by identity
            self.snapshots[name] = snapshot._replace(values=values, taken_ns=now)
        else:
            self.snapshots[name] = GpuSnapshot(keys, tuple(map(_channel, keys)), values, now)


def _channel(key: tuple[str, str]) -> Channel:
    metric, instance = key
    row = find(metric)
    return Channel(metric, instance, row.kind, SCALES.get(metric, 1.0), row.lane)
