"""Who lost how much of the time that it desired, to what and to whom.

A subject wanted all the time in which it did not sleep.  What it lost is disjoint, so the shares of
one subject add up.  Waits for threads of its own, for its own I/O, and while a CPU woke up are no
loss to others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reveal_analyzer.ledger.totals import LEAST_DESIRED, Totals
from reveal_contract import ledger
from reveal_contract.time_units import NS_PER_SECOND

_LEAST_SHARE = 0.005  # of the wanted time; less is not named
# the parts that are lost, in words; those of pairs are followed by the culprit
_REASONS = {
    ledger.WAIT_OTHERS: "waiting for a CPU",
    ledger.THROTTLED: "held back by its CPU quota",
    ledger.IO_OTHERS: "waiting for storage",
    ledger.MEMORY: "waiting for memory",
    ledger.IRQ: "interrupted",
    ledger.STOPPED: "stopped",
    ledger.STOLEN: "stolen by the hypervisor",
}
# the same in a word, for columns, labels and JSON
REASONS = {
    ledger.WAIT_OTHERS: "cpu",
    ledger.THROTTLED: "quota",
    ledger.IO_OTHERS: "storage",
    ledger.MEMORY: "memory",
    ledger.IRQ: "interrupts",
    ledger.STOPPED: "stopped",
    ledger.STOLEN: "hypervisor",
}
_PAIR_OF = {ledger.WAIT_OTHERS: ledger.LOST_CPU, ledger.IO_OTHERS: ledger.LOST_DISK}


def reason_of(part: str) -> str:
    """Return why a part of the time is lost, in words; the part itself where it is not known."""
    return _REASONS.get(part, part)


@dataclass(frozen=True)
class Loss:
    """One part of the lost time; without ``culprit`` it is a limit, or nobody with a name."""

    part: str
    share: float
    culprit: str = ""

    @property
    def reason(self) -> str:
        """Return the reason in words, such as "waiting for a CPU"."""
        return reason_of(self.part)

    @property
    def word(self) -> str:
        """Return the reason in a word, such as "cpu"."""
        return REASONS[self.part]


@dataclass(frozen=True)
class LostTime:
    """What one subject desired (CPUs, mean) and the share of it that was lost, largest first."""

    subject: str
    desired: float
    share: float
    losses: tuple[Loss, ...]


def lost_time(totals: Totals) -> list[LostTime]:
    """Return the lost time of every busy subject; who lost the most time comes first."""
    found = [each for name in totals.times if (each := _of_subject(totals, name)) is not None]
    return sorted(found, key=lambda each: -each.share * each.desired)


def _of_subject(totals: Totals, name: str) -> LostTime | None:
    desired = totals.desired(name)
    mean = desired / NS_PER_SECOND / totals.seconds
    if name in ledger.NAMELESS or mean < LEAST_DESIRED:
        return None
    losses = sorted(_losses(totals, name, desired), key=lambda loss: -loss.share)
    share = sum(totals.time(name, part) for part in ledger.LOST) / desired
    return LostTime(name, mean, share, tuple(loss for loss in losses if loss.share >= _LEAST_SHARE))


def _losses(totals: Totals, name: str, desired: float) -> Iterator[Loss]:
    """Yield the lost parts, those with known culprits by culprit, and the rest of them."""
    for part in ledger.LOST:
        rest = totals.time(name, part)
        by_victim = totals.taken[_PAIR_OF[part]] if part in _PAIR_OF else {}
        for culprit, time in by_victim.get(name, {}).items():
            if culprit == ledger.OTHER:
                continue
            rest -= time
            yield Loss(part, time / desired, culprit)
        yield Loss(part, max(rest, 0.0) / desired)
