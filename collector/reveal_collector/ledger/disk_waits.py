"""Whose requests a wait for storage is behind: those on the disks that the waiting subject uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

_LEAST_NS = 100_000  # requests under way for less do not say whose the disk is


def _unknown(subject: str, disk: int) -> float:
    """Return that it is not known what the requests of a subject would take alone."""
    return 0.0


class DiskUse:
    """The time in ns that requests were under way, by subject and disk.

    ``own_part`` returns which part of its time on a disk a subject's requests would take alone.
    ``waits`` are the ns that the threads of a subject waited for storage.
    """

    def __init__(
        self,
        requests: Mapping[str, Sequence[int]],
        own_part: Callable[[str, int], float] = _unknown,
        waits: Mapping[str, int] | None = None,
    ) -> None:
        self._requests, self._own_part, self._waits = requests, own_part, waits or {}
        self._all = [sum(times) for times in zip(*requests.values(), strict=True)]
        self._shares: dict[str, dict[str, float]] = {}

    def shares(self, victim: str) -> dict[str, float]:
        """Return the share of each subject, itself included, in what one subject waits for.

        It waits for each disk in proportion to its own requests there.  Without requests of its
        own, as for a page that others read or write, it waits for all disks alike.  Of each wait
        its own part is what its requests would take alone, at least its part of all requests, and
        no more than that where none of its own is under way, as before they are issued.
        """
        known = self._shares.get(victim)
        if known is None:
            known = self._shares[victim] = self._computed(victim)
        return known

    def _computed(self, victim: str) -> dict[str, float]:
        own: Sequence[int] = self._requests.get(victim, ())
        is_own = sum(own) >= _LEAST_NS
        weights = own if is_own else self._all
        total = sum(weights)
        if total < _LEAST_NS:
            return {victim: 1.0}
        # the part of its waits in which requests of its own are under way
        covered = min(1.0, total / max(self._waits.get(victim, 0), 1)) if is_own else 0.0
        result: dict[str, float] = {}
        for disk, weight in enumerate(weights):
            if weight > 0:
                for name, part in self._parts(victim, disk, covered).items():
                    result[name] = result.get(name, 0.0) + part * weight / total
        return result

    def _parts(self, victim: str, disk: int, covered: float) -> dict[str, float]:
        """Return the parts of all subjects in a wait for one disk, which has requests."""
        times = {name: row[disk] for name, row in self._requests.items() if row[disk] > 0}
        own = times.pop(victim, 0)
        others = self._all[disk] - own
        own_part = own / self._all[disk]
        if covered > 0.0 and others > 0:
            own_part += covered * max(0.0, self._own_part(victim, disk) - own_part)
        parts = {name: (1.0 - own_part) * time / others for name, time in times.items()}
        return parts if own == 0 else {victim: own_part, **parts}
