"""The thread that asks NVML and leaves its answers on boards."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from reveal_collector.kernel.errors import Unsupported
from reveal_collector.nvml import library
from reveal_collector.nvml.boards import EMPTY, QUICK, STATE, SUBJECTS, Board
from reveal_collector.nvml.budget import QUICK_NS, RARE_NS
from reveal_collector.nvml.devices import Gpu
from reveal_collector.nvml.events import XidLedger
from reveal_collector.nvml.holders import Holder, Owners, SubjectUse
from reveal_collector.nvml.library import Library
from reveal_collector.nvml.queries import SCALES
from reveal_collector.nvml.session import Session
from reveal_collector.nvml.unit import Clock
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.pods.process_owner import SubjectOfPid
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.runtime.backoff import Backoff
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_FIRST_RETRY_S, _LAST_RETRY_S = 5.0, 60.0
_STUCK_SECONDS = 1.0  # how long stopping waits for a call in the driver

Figures = dict[tuple[str, str], int | None]


class Poller:
    """Asks all GPUs on a grid of 100 ms, from the first user's ``start`` to the last ``stop``.

    ``subject_of_pid`` names the subject a process belongs to; by default its cgroup does.
    ``degraded`` says what is asked less often than wanted, or that the driver left.
    """

    def __init__(
        self,
        roots: Roots,
        profiling: bool = False,
        subject_of_pid: SubjectOfPid | None = None,
        load: Callable[[], Library] = library.load,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        self.boards = dict.fromkeys((QUICK, STATE, SUBJECTS), EMPTY)
        self.degraded: tuple[str, ...] = ()
        self._trouble = ""
        self._roots, self._profiling, self._load, self._clock = roots, profiling, load, clock
        self._subjects = SubjectUse(Owners(roots.proc, subject_of_pid))
        self._ledger = XidLedger()
        self._numbers: dict[str, int] = {}
        self._session: Session | None = None
        self._spent_before = 0
        self._second_ns = self._rare_ns = self._retry_ns = 0
        self._backoff = Backoff(_FIRST_RETRY_S, _LAST_RETRY_S)
        self._users = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs as last seen; ``index`` is the number in channel names."""
        return self._session.gpus if self._session else ()

    def holders(self) -> Mapping[int, tuple[Holder, ...]]:
        """The processes of each GPU, by its number."""
        session = self._session
        return {n: each.processes for n, each in session.holders.items()} if session else {}

    def start(self) -> None:
        """Raises ``Unsupported`` where there is no driver or no GPU."""
        if self._users == 0:
            self.open()
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="reveal-nvml", daemon=True)
            self._thread.start()
        self._users += 1

    def stop(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users or self._thread is None:
            return
        self._stopping.set()
        self._thread.join(_STUCK_SECONDS)
        stuck = self._thread.is_alive()
        self._thread = None
        if not stuck:  # else the library is in use and stays open
            self._close()

    def open(self) -> None:
        """Start the library, see what there is, ask everything once."""
        self._connect()
        if not self.gpus:
            self._close()
            raise Unsupported("the NVIDIA driver knows no GPU", "nvidia-smi -L; lspci -d 10de:")
        self.step()

    def step(self) -> None:
        """One round: ask what is due and renew the boards."""
        now = self._clock()
        session = self._session
        if session is None:
            if now >= self._retry_ns:
                self._reconnect(now)
        else:
            try:
                self._ask(session, now)
            except Exception as error:  # the driver left in the middle of a round
                self._disconnect(error, now)
        self._publish(now)

    def _run(self) -> None:
        due = self._clock()
        while not self._stopping.is_set():
            self.step()
            due = max(due + QUICK_NS, self._clock())
            self._stopping.wait((due - self._clock()) / NS_PER_SECOND)

    def _ask(self, session: Session, now: int) -> None:
        if now >= self._rare_ns:
            session.enumerate()
            self._rare_ns = now + RARE_NS
        for gpu, code in session.round():
            self._ledger.add(gpu, code, now)
            log.warning("GPU %d: XID %d", gpu, code)
        if now >= self._second_ns and session.budget.review():
            for phrase in session.budget.slowed:
                log.warning("%s", phrase)

    def _connect(self) -> None:
        nvml = self._load()
        library.start(nvml)
        try:
            self._session = Session(
                nvml, self._roots.sys, self._numbers, self._profiling, self._clock
            )
        except nvml.NVMLError as error:
            library.stop(nvml)
            raise Unsupported(f"NVML: {error}", "nvidia-smi says more") from None
        self._rare_ns = self._clock() + RARE_NS

    def _reconnect(self, now: int) -> None:
        try:
            self._connect()
        except Unsupported as lacking:
            self._trouble = f"nvml: {lacking.reason}; {lacking.remedy}"
            self._retry_ns = now + round(self._backoff.next() * NS_PER_SECOND)
            return
        log.info("the NVIDIA driver is back")
        self._trouble = ""
        self._backoff.reset()

    def _disconnect(self, error: Exception, now: int) -> None:
        self._trouble = f"nvml: the NVIDIA driver left: {error}"
        log.warning("%s", self._trouble)
        self._close()
        self._retry_ns = now + round(self._backoff.next() * NS_PER_SECOND)

    def _close(self) -> None:
        if self._session is not None:
            self._spent_before += self._session.spent_ns
            self._session.close()
            self._session = None

    def _publish(self, now: int) -> None:
        session = self._session
        if session is None:
            self.degraded = (self._trouble,)
            self._blank(now)
            return
        quick = {
            (metric, unit.instance): unit.values[metric]
            for unit in session.units
            for metric in unit.quick
        }
        self._post(QUICK, quick, now)
        if now < self._second_ns:
            return
        state = {
            (metric, unit.instance): unit.values[metric]
            for unit in session.units
            for metric in unit.others
        }
        self._second_ns = now + NS_PER_SECOND
        self.degraded = tuple(session.budget.slowed)
        self._post(STATE, state | self._of_gpus(session, now), now)
        self._post(SUBJECTS, self._subjects.figures(session.holders.values(), now), now)

    def _of_gpus(self, session: Session, now: int) -> Figures:
        lost = session.lost()
        made: Figures = {("gpu.lost", str(n)): int(gone) for n, gone in lost.items()}
        made["gpu.count", ""] = len(lost) - sum(lost.values())
        made["gpu.driver.time", ""] = self._spent_before + session.spent_ns
        made["gpu.driver.slowed", ""] = len(self.degraded)
        for gpu in sorted(session.tell_events):
            programs, others, last = self._ledger.of_gpu(gpu)
            made["gpu.xid.application", str(gpu)] = programs
            made["gpu.xid.hardware", str(gpu)] = others
            made["gpu.xid.last", str(gpu)] = last
        return made | {("gpu.xid", code): n for code, n in self._ledger.by_code(now).items()}

    def _blank(self, now: int) -> None:
        """No driver: the columns stay, what they hold is not known, and no GPU answers."""
        for name, board in self.boards.items():
            values = tuple(
                0 if channel.metric == "gpu.count" else None for channel in board.channels
            )
            self.boards[name] = board._replace(values=values, at_ns=now)

    def _post(self, name: str, figures: Figures, now: int) -> None:
        board = self.boards[name]
        keys = tuple(figures)
        values = tuple(figures.values())
        if keys == board.keys:
            self.boards[name] = board._replace(values=values, at_ns=now)
        else:
            self.boards[name] = Board(keys, tuple(map(_channel, keys)), values, now)


def _channel(key: tuple[str, str]) -> Channel:
    metric, instance = key
    row = find(metric)
    return Channel(metric, instance, row.kind, SCALES.get(metric, 1.0), row.lane)
