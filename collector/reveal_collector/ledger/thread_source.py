"""Source: the lost-time ledger where BPF programs cannot count, from times of each thread.

It knows how long the threads of the busiest subjects ran, waited for a CPU and were throttled, and
nothing of who ran meanwhile, of storage, of memory or of sleep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.accounts import METRICS, Names
from reveal_collector.ledger.channels import MOST_SUBJECTS, DisplayedSubjects
from reveal_collector.ledger.cpu_waits import CpuTimes
from reveal_collector.ledger.programs import SLOT_OTHER
from reveal_collector.ledger.slots import Slot
from reveal_collector.ledger.thread_times import MOST_THREADS, SubjectTimes, ThreadTimes
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker
from reveal_contract import ledger
from reveal_contract.channels import Channel
from reveal_contract.ledger import Tier
from reveal_contract.metric import Lane
from reveal_contract.subjects import Identity

_OWN = (ledger.TIER, ledger.FOLDED)


class ThreadInterval:
    """What happened between two passes, by the name of the subject."""

    def __init__(self, elapsed_ns: int, times: Mapping[str, ThreadTimes]) -> None:
        self.elapsed_ns, self._times = elapsed_ns, times

    def desired_cpus(self, slot: Slot) -> float:
        """Return the mean number of CPUs that a subject used, or would have used."""
        times = self._times.get(slot.name)
        total = 0 if times is None else times.ran + times.waited + times.throttled
        return total / max(self.elapsed_ns, 1)

    def counters(self, slot: Slot) -> list[int]:
        """Return the increments of a subject in the order of ``METRICS``."""
        times = self._times.get(slot.name)
        parts = {} if times is None else self._parts(times)
        return [parts.get(metric, 0) for metric in METRICS]

    def pairs(self, victim: Slot) -> dict[Names, tuple[int, int]]:
        """Return nothing: who ran while a thread waited is not known."""
        return {}

    def _parts(self, times: ThreadTimes) -> dict[str, int]:
        """Return the parts; waits of more threads than CPUs are those for each other.

        Their number is known only as an average, so in bursts some of these waits count as lost.
        """
        surplus = max(0, times.ran + times.waited - times.cpus * self.elapsed_ns)
        own = CpuTimes(times.ran, times.waited, surplus, 1.0).own_waits
        own = min(own, times.waited)
        return {
            ledger.RUN: times.ran,
            ledger.WAIT_OTHERS: times.waited - own,
            ledger.WAIT_SELF: own,
            ledger.THROTTLED: times.throttled,
            ledger.THREAD_TIME: times.ran + times.waited + times.throttled,
        }


class ThreadLedger:
    """Parts of the time of the busiest cgroups, once a second; ``is_counted``: by BPF programs."""

    name, lane = ledger.THREADS_SOURCE, Lane.SLOW
    keeps_lane = True  # its parts are those of a second

    def __init__(
        self, roots: Roots, tracker: SubjectTracker, is_counted: Callable[[], bool]
    ) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._roots, self._tracker, self._is_counted = roots, tracker, is_counted
        self._displayed = DisplayedSubjects()
        self._followed: dict[CgroupSubject, SubjectTimes] = {}
        self._passed_ns = 0
        self._folded = 0  # busiest subjects that were left out: too many threads
        self._is_open = self._has_unread_pass = False

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """The identities of subjects that only the ledger shows."""
        return self._tracker.unselected({column.instance for column in self.channels})

    def open(self) -> None:
        """Begin to follow the busiest cgroups; raises ``Unsupported`` where that is no use."""
        if self._is_counted():
            raise Unsupported("not needed: BPF programs count the lost time")
        if not self._roots.live:
            raise Unsupported("threads can be followed only on the running machine itself")
        if not (self._roots.proc / "self/schedstat").exists():
            raise Unsupported(
                "this kernel does not count how long threads wait for a CPU",
                "use a kernel with CONFIG_SCHED_INFO (CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT)",
            )
        if not self._tracker.selection.limit:
            raise Unsupported("maxSubjects is 0: no subject is counted separately")
        self._tracker.start()
        self._displayed, self._followed, self._is_open = DisplayedSubjects(), {}, True
        self._advance()
        self.channels = (*_own_channels(), *self._displayed.channels)

    def read(self) -> Sequence[int | None]:
        """Return the counters; raises ``LayoutChanged`` when the subjects are others."""
        if self._has_unread_pass:
            self._has_unread_pass = False
        elif self._is_counted():
            if self.channels:
                self.channels = ()
                raise LayoutChanged(self.name)
            return ()
        else:
            self._advance()
            if self.channels[len(_OWN) :] != self._displayed.channels:
                self.channels = (*_own_channels(), *self._displayed.channels)
                self._has_unread_pass = True
                raise LayoutChanged(self.name)
        return [Tier.SCHEDSTAT, self._folded, *self._displayed.values()]

    def close(self) -> None:
        """Stop to follow cgroups."""
        if self._is_open:
            self._tracker.stop()
        self._is_open = self._has_unread_pass = False
        self.channels, self._followed = (), {}

    def _advance(self) -> None:
        now_ns = time.monotonic_ns()
        elapsed_ns, self._passed_ns = now_ns - self._passed_ns, now_ns
        found = dict(self._pass(elapsed_ns))
        slots = [Slot(name, SLOT_OTHER, SLOT_OTHER, frozenset()) for name in found]
        self._displayed.update(ThreadInterval(elapsed_ns, found), slots, time.monotonic())

    def _pass(self, elapsed_ns: int) -> Iterator[tuple[str, ThreadTimes]]:
        """Yield the times of the busiest subjects, as far as their threads are not too many."""
        followed: dict[CgroupSubject, SubjectTimes] = {}
        left, self._folded = MOST_THREADS, 0
        for candidate in self._tracker.candidates[:MOST_SUBJECTS]:
            subject = candidate.subject
            known = self._followed.get(subject) or self._new(subject)
            if known.threads > left:
                self._folded += 1
                continue
            followed[subject] = known
            times = known.advance(elapsed_ns)
            left -= known.threads
            if times is not None:
                yield subject.instance, times
        self._followed = followed

    def _new(self, subject: CgroupSubject) -> SubjectTimes:
        return SubjectTimes(self._tracker.trees, self._roots.proc, subject.path)


def _own_channels() -> tuple[Channel, ...]:
    return tuple(channel(metric, "", 1.0) for metric in _OWN)
