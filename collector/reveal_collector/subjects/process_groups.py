"""Process groups: what each used, from readings of its processes; pure bookkeeping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

GROUPS = 24
LINGER_PASSES = 30
# A group enters the table when it matters or lasts: every change is a new channel table.
_ENTER_SCORE = 0.005
_ENTER_PASSES = 10
_LEAST_PASSES = 2
_OUTDO, _MARGIN = 2.0, 0.02
_SMOOTHING = 0.3
_BYTES_A_SECOND = 1e8  # disk traffic that weighs as much as one CPU

TOTALS = 4  # CPU ticks, major faults, bytes read, bytes written
Totals = Sequence[int]
_NOTHING: Totals = (0,) * TOTALS


@dataclass(frozen=True, slots=True)
class Reading:
    """One process as read now; ``totals`` include its waited-for children."""

    group: int
    parent: int
    start: int  # clock ticks since boot: with the pid, what makes a process
    name: str
    totals: Totals
    memory: int  # bytes resident
    threads: int
    has_io: bool = True


@dataclass(slots=True)
class Group:
    """One process group; ``totals`` only grow."""

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


class Ledger:
    """Adds up what groups use, over processes that come and go.

    What a parent's totals gain when it waits for a child is what the child used in its life.
    Had the child been followed, that is deducted (*credit*).  The parent may have been read
    just before it waited, so a credit not used up is good for one pass more.
    """

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}
        self.passes = 0
        self._last: dict[int, Reading] = {}
        self._carried: dict[int, list[int]] = {}

    def update(self, readings: Mapping[int, Reading], born_after: int) -> None:
        """One pass; a process that started at ``born_after`` or later (ticks) is new in full."""
        self.passes += 1
        credit = self._credits(readings)
        for group in self.groups.values():
            group.memory = group.threads = 0
            group.used = [0] * TOTALS
        for pid in sorted(readings):
            now = readings[pid]
            if self._last.get(pid) is now and now.group in self.groups:
                self._keep(self.groups[now.group], now)
                continue
            used = self._used(pid, now, born_after)
            for due in (self._carried.get(pid), credit.get(pid)):
                if due is not None:
                    used = _deduct(used, due)
            self._book(pid, now, used)
        self._carried = credit
        self._last = dict(readings)
        self._forget()

    def _credits(self, readings: Mapping[int, Reading]) -> dict[int, list[int]]:
        """By parent, the totals of the processes that are gone since the last pass."""
        gone = {
            pid: old for pid, old in self._last.items()
            if pid not in readings or readings[pid].start != old.start
        }  # fmt: skip
        credit: dict[int, list[int]] = {}
        for old in gone.values():
            parent = old.parent
            for _ in range(len(gone)):  # waited for by a parent that is gone as well
                if parent not in gone:
                    break
                parent = gone[parent].parent
            due = credit.setdefault(parent, [0] * TOTALS)
            for at, total in enumerate(old.totals):
                due[at] += total
        return credit

    def _used(self, pid: int, now: Reading, born_after: int) -> list[int]:
        old = self._last.get(pid)
        if old is not None and old.start == now.start:
            before = old.totals
        elif self.passes > 1 and now.start >= born_after:
            before = _NOTHING
        else:
            before = now.totals
        return [max(0, total - was) for total, was in zip(now.totals, before, strict=True)]

    def _book(self, pid: int, now: Reading, used: Sequence[int]) -> None:
        group = self.groups.get(now.group)
        if group is None or (group.last_pass < self.passes - 1 and pid == now.group):
            group = self.groups[now.group] = Group(now.group, now.name, self.passes)
        if pid == now.group and group.first_pass >= self.passes - 1:
            group.name = now.name  # the leader's, once it has executed what it was forked for
        for at, amount in enumerate(used):
            group.totals[at] += amount
            group.used[at] += amount
        self._keep(group, now)

    def _keep(self, group: Group, now: Reading) -> None:
        """What a member holds, whether it was read in this pass or is idle as before."""
        group.memory += now.memory
        group.threads += now.threads
        group.has_io = group.has_io or now.has_io
        group.last_pass = self.passes

    def _forget(self) -> None:
        dead = [
            number for number, group in self.groups.items()
            if self.passes - group.last_pass > LINGER_PASSES
        ]  # fmt: skip
        for number in dead:
            del self.groups[number]


def _deduct(used: Sequence[int], due: list[int]) -> list[int]:
    """``used`` less what is due, which shrinks by what was deducted."""
    left = []
    for at, amount in enumerate(used):
        taken = min(amount, due[at])
        due[at] -= taken
        left.append(amount - taken)
    return left


@dataclass(frozen=True)
class Weights:
    """What makes a group large: a CPU second, all memory, the disk's worth each weigh 1."""

    ticks_a_second: int
    memory: int

    def score(self, group: Group, seconds: float) -> float:
        cpu, _, read, written = group.used
        rate = cpu / self.ticks_a_second + (read + written) / _BYTES_A_SECOND
        return rate / max(seconds, 0.1) + group.memory / self.memory


def rescore(groups: Iterable[Group], weights: Weights, seconds: float) -> None:
    """Move each group's score towards what it used in the last pass."""
    for group in groups:
        now = weights.score(group, seconds)
        group.score += _SMOOTHING * (now - group.score) if group.score else now


def table(current: Sequence[Group], ledger: Ledger, takes: Sequence[Group]) -> list[Group]:
    """The groups to show: those shown already, others where they matter and there is room.

    ``takes`` are the groups that may be shown.  A group that ended stays until its place is
    wanted or it is forgotten, so that short-lived ones do not make the columns flap.
    """
    shown = [group for group in current if ledger.groups.get(group.id) is group]
    inside = {group.id for group in shown}
    waiting = [group for group in takes if group.id not in inside and _may_enter(group, ledger)]
    for group in sorted(waiting, key=lambda one: (-one.score, one.id)):
        if len(shown) < GROUPS:
            shown.append(group)
            continue
        weakest = min(shown, key=lambda one: (one.last_pass == ledger.passes, one.score))
        alive = weakest.last_pass == ledger.passes
        if alive and group.score <= _OUTDO * weakest.score + _MARGIN:
            break
        shown[shown.index(weakest)] = group
    return shown


def _may_enter(group: Group, ledger: Ledger) -> bool:
    if group.last_pass != ledger.passes:
        return False
    age = group.last_pass - group.first_pass + 1
    if group.first_pass == 1 or age >= _ENTER_PASSES:
        return True
    return age >= _LEAST_PASSES and group.score >= _ENTER_SCORE
