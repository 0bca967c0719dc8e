"""Whose requests a wait for storage is behind: those on the disks that the waiting subject uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import mul

_LEAST_NS = 100_000  # requests under way for less do not say whose the disk is


class DiskUse:
    """The time in ns that requests were under way, by subject and disk."""

    def __init__(self, requests: Mapping[str, Sequence[int]]) -> None:
        self._requests = requests
        self._all = [sum(times) for times in zip(*requests.values(), strict=True)]
        self._shares: dict[str, dict[str, float]] = {}

    def shares(self, victim: str) -> dict[str, float]:
        """Return the share of each subject, itself included, in what one subject waits for.

        It waits for each disk in proportion to its own requests there.  Without requests of its
        own, as for a page that others read or write, it waits for all disks alike.
        """
        known = self._shares.get(victim)
        if known is None:
            known = self._shares[victim] = self._computed(victim)
        return known

    def _computed(self, victim: str) -> dict[str, float]:
        own: Sequence[int] = self._requests.get(victim, ())
        weights = own if sum(own) >= _LEAST_NS else self._all
        total = sum(weights)
        if total < _LEAST_NS:
            return {victim: 1.0}
        # in proportion to requests on a disk, where somebody has some
        factors = [
            weight / total / everybody if everybody > 0 else 0.0
            for weight, everybody in zip(weights, self._all, strict=True)
        ]
        return {
            name: share
            for name, times in self._requests.items()
            if (share := sum(map(mul, factors, times))) > 0.0
        }
