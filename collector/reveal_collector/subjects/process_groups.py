"""Accounting of process groups: what each one used, from samples of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reveal_collector.subjects.process_search import ProcessUse
from reveal_collector.subjects.stable_selection import StableSelection

MAX_GROUPS = 24
LINGER_PASSES = 30
# A group is selected once it is large or has lasted: every change costs a new channel table.
_ENTER_SCORE = 0.005
_ENTER_PASSES = 10
_MIN_PASSES = 2
_REPLACE_MARGIN = 0.02  # of the score
_SMOOTHING = 0.3
_DISK_BYTES_PER_CPU = 1e8  # bytes per second that weigh as much as one CPU

_SHORT_LIVED_TICKS = 20  # of children in a pass that are plausible without any before

TOTALS = 5  # CPU ticks, major faults, bytes read, bytes written, all page faults
IO = slice(2, 4)  # of these, the bytes
Totals = Sequence[int]
_ZERO: Totals = (0,) * TOTALS


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process as last read; ``totals`` include the children that it waited for.

    ``waited`` are the CPU ticks of these children alone.
    """

    group: int
    parent: int
    start: int  # clock ticks since boot; pid and start identify a process
    name: str
    totals: Totals
    memory: int  # bytes resident
    threads: int
    has_io: bool = True
    waited: int = 0


@dataclass(slots=True, eq=False)
class ProcessGroup:
    """One process group; its ``totals`` never decrease.

    A group of the same number may be a new one, so a group equals only itself.
    """

    id: int
    name: str
    first_pass: int
    last_pass: int = 0
    totals: list[int] = field(default_factory=lambda: [0] * TOTALS)
    memory: int = 0
    threads: int = 0
    has_io: bool = False
    score: float = 0.0
    used: list[int] = field(default_factory=lambda: [0] * TOTALS)

    @property
    def instance(self) -> str:
        return f"pgrp:{self.name}[{self.id}]"


class GroupAccounting:
    """Sums the use of process groups over processes that start and end.

    When a parent waits for a child, its totals grow by the totals of the child.  If the child was
    sampled, its use is counted already.  Therefore the totals of an ended child become a *credit*
    that is deducted from the increase of its parent.  The parent may have been read just before it
    waited, so a credit that is not used up is valid for one more pass.

    A child that was not sampled either lived for less than a pass, or belongs to another cgroup,
    whose own counters have its use already.  Short-lived children come again and again; the use of
    the whole life of a child elsewhere comes at once.  So what children without a credit add to a
    process can at most double from pass to pass.
    """

    def __init__(self) -> None:
        self.groups: dict[int, ProcessGroup] = {}
        self.passes = 0
        self._previous: dict[int, ProcessSample] = {}
        self._carried_credit: dict[int, list[int]] = {}
        self._short_lived: dict[int, int] = {}  # ticks of children without a credit, by parent

    def update(self, samples: Mapping[int, ProcessSample], born_after: int) -> None:
        """Account one pass over all processes.

        ``born_after`` is a time in ticks: everything that a process started since then used is new.
        """
        self.passes += 1
        credit = self._ended_credit(samples)
        for group in self.groups.values():
            group.memory = group.threads = 0
            group.has_io = False
            group.used = [0] * TOTALS
        for pid in sorted(samples):
            sample = samples[pid]
            # The same object means that the process was not read or did nothing.
            if self._previous.get(pid) is sample and sample.group in self.groups:
                self._add_current(self.groups[sample.group], sample)
                continue
            used = self._used(pid, sample, born_after)
            # The older credit first: it expires after this pass.
            before = used[0]
            for available in (self._carried_credit.get(pid), credit.get(pid)):
                if available is not None:
                    used = _deduct(used, available)
            self._add(pid, sample, self._own_use(pid, sample, used, before - used[0]))
        self._carried_credit = credit
        self._previous = dict(samples)
        self._short_lived = {
            pid: ticks for pid, ticks in self._short_lived.items() if pid in samples
        }
        self._remove_ended()

    def forget(self, pid: int) -> None:
        """Stop following a process that has not ended: nobody gets a credit for it."""
        self._previous.pop(pid, None)
        self._short_lived.pop(pid, None)

    def start_from(self, pid: int, sample: ProcessSample) -> None:
        """Count what a process uses from this sample on."""
        self._previous[pid] = sample

    def _ended_credit(self, samples: Mapping[int, ProcessSample]) -> dict[int, list[int]]:
        """Return the totals of processes that ended since the last pass, by parent."""
        # Another start time means that the kernel gave the pid to a new process.
        ended = {
            pid: old for pid, old in self._previous.items()
            if pid not in samples or samples[pid].start != old.start
        }  # fmt: skip
        credit: dict[int, list[int]] = {}
        for old in ended.values():
            parent = old.parent
            # A parent that ended in the same pass passed the use on to its own parent.  The
            # number of steps is limited, as reused pids could form a cycle.
            for _ in range(len(ended)):
                if parent not in ended:
                    break
                parent = ended[parent].parent
            available = credit.setdefault(parent, [0] * TOTALS)
            for index, total in enumerate(old.totals):
                available[index] += total
        return credit

    def _used(self, pid: int, sample: ProcessSample, born_after: int) -> list[int]:
        old = self._previous.get(pid)
        if old is not None and old.start == sample.start:
            base = old.totals
        elif self.passes > 1 and sample.start >= born_after:
            base = _ZERO  # started since the last pass: all its use is new
        else:
            base = sample.totals  # older than the first sample: its earlier use is unknown
        return [max(0, total - start) for total, start in zip(sample.totals, base, strict=True)]

    def _own_use(
        self, pid: int, sample: ProcessSample, used: list[int], credited: int
    ) -> list[int]:
        """Return the use without that of children of other cgroups; ``credited`` is deducted."""
        old = self._previous.get(pid)
        if old is None or old.start != sample.start:
            return used
        waited = max(0, sample.waited - old.waited - credited)
        accepted = min(waited, 2 * self._short_lived.get(pid, 0) + _SHORT_LIVED_TICKS)
        self._short_lived[pid] = accepted
        if accepted == waited:
            return used
        # reads, writes and faults of children cannot be separated from those of the process
        return [max(0, used[0] - waited + accepted)] + [0] * (TOTALS - 1)

    def _add(self, pid: int, sample: ProcessSample, used: Sequence[int]) -> None:
        is_leader = pid == sample.group
        group = self.groups.get(sample.group)
        # A leader after a pass without members: the kernel reused the number for a new group.
        if group is None or (group.last_pass < self.passes - 1 and is_leader):
            group = ProcessGroup(sample.group, sample.name, self.passes)
            self.groups[sample.group] = group
        # A young leader may have called exec since it was forked: take its new name.
        if is_leader and group.first_pass >= self.passes - 1:
            group.name = sample.name
        for index, amount in enumerate(used):
            group.totals[index] += amount
            group.used[index] += amount
        self._add_current(group, sample)

    def _add_current(self, group: ProcessGroup, sample: ProcessSample) -> None:
        """Add the current memory and threads of a process, read in this pass or idle."""
        group.memory += sample.memory
        group.threads += sample.threads
        group.has_io = group.has_io or sample.has_io
        group.last_pass = self.passes

    def _remove_ended(self) -> None:
        ended = [
            number for number, group in self.groups.items()
            if self.passes - group.last_pass > LINGER_PASSES
        ]  # fmt: skip
        for number in ended:
            del self.groups[number]


def _deduct(used: Sequence[int], credit: list[int]) -> list[int]:
    """Return ``used`` minus the credit, and reduce the credit by what was deducted."""
    remaining = []
    for index, amount in enumerate(used):
        deducted = min(amount, credit[index])
        credit[index] -= deducted
        remaining.append(amount - deducted)
    return remaining


@dataclass(frozen=True)
class ScoreWeights:
    """Weights of a group's score: one CPU, all memory or the disk rate of a CPU weigh 1."""

    ticks_per_second: int
    memory: float  # infinite where it is unknown

    def score(self, group: ProcessGroup, seconds: float) -> float:
        return self._work(group.used) / max(seconds, 0.1) + group.memory / self.memory

    def process_use(self, sample: ProcessSample) -> ProcessUse:
        """Return what a process used since its start, and its memory, in the unit of scores."""
        started = sample.start / self.ticks_per_second
        return ProcessUse(started, self._work(sample.totals), sample.memory / self.memory)

    def _work(self, totals: Totals) -> float:
        cpu, _, read, written, _ = totals
        return cpu / self.ticks_per_second + (read + written) / _DISK_BYTES_PER_CPU


def update_scores(groups: Iterable[ProcessGroup], weights: ScoreWeights, seconds: float) -> None:
    """Move the score of each group towards its use in the last pass."""
    for group in groups:
        latest = weights.score(group, seconds)
        group.score += _SMOOTHING * (latest - group.score) if group.score else latest


class GroupSelection:
    """The groups to show: the largest, chosen so that short-lived ones change no columns."""

    def __init__(self) -> None:
        self._selection: StableSelection[ProcessGroup] = StableSelection(
            MAX_GROUPS, _REPLACE_MARGIN, name=lambda group: group.id
        )

    def choose(
        self, accounting: GroupAccounting, allowed: Iterable[ProcessGroup], now: float
    ) -> list[ProcessGroup]:
        """Return the groups to show in the order of their numbers.

        ``allowed`` are the groups that the settings permit.  An ended group stays until its place
        is needed or it is removed.
        """
        scores = {group: group.score for group in allowed}
        chosen = self._selection.update(
            scores,
            now,
            entering=[group for group in scores if _may_enter(group, accounting)],
            ended={group for group in scores if group.last_pass != accounting.passes},
        )
        return sorted(chosen, key=lambda group: group.id)


def _may_enter(group: ProcessGroup, accounting: GroupAccounting) -> bool:
    if group.last_pass != accounting.passes:
        return False  # ended
    age = group.last_pass - group.first_pass + 1
    if group.first_pass == 1 or age >= _ENTER_PASSES:
        return True  # older than this collector, or it has lasted
    return age >= _MIN_PASSES and group.score >= _ENTER_SCORE
