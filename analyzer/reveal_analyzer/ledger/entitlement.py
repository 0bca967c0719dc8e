"""The share of the CPUs that each subject is entitled to: who got it is no victim.

Weighted max-min shares in the tree of the scheduler's groups: nobody gets more than it wants, and
what it leaves is divided among its siblings by their weights.  A subject that wants more than its
share and got it lost nothing, however long its threads waited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_contract import cpulist
from reveal_contract.cpu_shares import CpuGroup, CpuMember, CpuShares

_MOST_CPU_SETS = 64  # with their unions; more are possible only where many overlap partly
_LEAST_WEIGHT = 1.0
_CLOSE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class ShareTree:
    """Subjects (n,) in groups (g,) below a root.

    ``parents`` and ``weights`` (g + n,) are of all groups and then of all subjects; -1 is the root.
    ``under`` (g, n) marks the subjects in each group.  What the subjects of each row of ``limited``
    (k, n) get together is at most its ``limits`` (k,) in CPUs.
    """

    parents: Indices
    weights: Floats
    under: Bools
    limited: Floats
    limits: Floats

    @classmethod
    def of(cls, subjects: Sequence[str], shares: CpuShares) -> ShareTree:
        """Return the tree of these subjects; one that was not announced is below the root."""
        rows = {group.path: row for row, group in enumerate(shares.groups)}
        known = {member.subject: member for member in shares.members}
        members = [known.get(name, CpuMember(name)) for name in subjects]
        above = _parents_of(shares.groups, rows)
        homes = [rows.get(member.group, -1) for member in members]
        under = _under(above, homes)
        sets = _cpu_sets([_cpus(member) for member in members])
        quotas = [(under[row], group.limit) for row, group in enumerate(shares.groups)]
        limits = [*((marks, limit) for marks, limit in quotas if limit > 0), *sets]
        weights = [*(group.weight for group in shares.groups), *(each.weight for each in members)]
        return cls(
            np.array([*above, *homes], np.intp),
            np.maximum(np.array(weights, float), _LEAST_WEIGHT),
            under,
            np.array([marks for marks, _ in limits], float).reshape(len(limits), len(subjects)),
            np.array([limit for _, limit in limits], float),
        )

    def entitled(self, desired: Floats, cpus: float) -> Floats:
        """Return the shares (n,) of ``cpus`` of subjects that want so many CPUs (n,).

        All shares grow at once, each at the rate that its weights give it, until the subject has
        what it wants or a limit of its group, its CPUs or the host is reached.
        """
        sets = np.vstack((np.ones(desired.size), self.limited))
        limits = np.concatenate(([max(cpus, 0.0)], self.limits))
        shares, growing = np.zeros(desired.size), desired > 0
        while growing.any():
            rates = self._rates(growing)
            until_full = _quotients(limits - sets @ shares, sets @ rates)
            until_content = _quotients(desired - shares, rates)
            step = max(0.0, float(min(until_full.min(), until_content.min())))
            shares += step * rates
            is_full = (until_full <= step * _CLOSE).astype(float)
            growing &= (until_content > step * _CLOSE) & (is_full @ sets == 0)
        return shares

    def relative_weight(self, subject: int, other: int) -> float:
        """Return how many times a subject (its row) weighs another where their paths part."""
        mine, theirs = self._path(subject), self._path(other)
        pairs = zip(mine, theirs, strict=False)
        parted = next(((a, b) for a, b in pairs if a != b), None)
        return 1.0 if parted is None else float(self.weights[parted[0]] / self.weights[parted[1]])

    def _path(self, subject: int) -> list[int]:
        """Return the rows from below the root down to a subject, of groups and the subject."""
        path, row = [], len(self.under) + subject
        while row >= 0:
            path.append(row)
            row = int(self.parents[row])
        return path[::-1]

    def _rates(self, growing: Bools) -> Floats:
        """Return the part (n,) of each further CPU that every growing subject gets."""
        count = len(self.under)
        is_busy = np.concatenate(((self.under & growing).any(axis=1), growing))
        weights = np.where(is_busy, self.weights, 0.0)
        # the root comes first in the sums
        sums = np.bincount(self.parents + 1, weights, minlength=count + 1)[self.parents + 1]
        parts = np.divide(weights, sums, out=np.zeros(weights.size), where=sums > 0)
        of_groups = np.where(self.under, parts[:count, None], 1.0).prod(axis=0)
        result: Floats = parts[count:] * of_groups
        return result


def shortfall(shares: Floats, run: Floats) -> Floats:
    """Return the part (n,) of its entitlement that each subject did not run, 0 to 1."""
    missing = np.maximum(shares - run, 0.0)
    result: Floats = np.divide(missing, shares, out=np.zeros(shares.size), where=shares > 0)
    return result


def _quotients(amounts: Floats, rates: Floats) -> Floats:
    """Return after how much growth an amount is reached; infinite without growth."""
    result: Floats = np.divide(amounts, rates, out=np.full(rates.size, np.inf), where=rates > 0)
    return result


def _parents_of(groups: Sequence[CpuGroup], rows: Mapping[str, int]) -> list[int]:
    """Return the row of each group's parent: one before it, or -1 for the root."""
    found = (rows.get(group.parent, -1) for group in groups)
    return [parent if parent < row else -1 for row, parent in enumerate(found)]


def _under(above: Sequence[int], homes: Sequence[int]) -> Bools:
    """Return which subjects are in each group, at any depth."""
    under = np.zeros((len(above), len(homes)), np.bool_)
    for column, home in enumerate(homes):
        group = home
        while group >= 0:
            under[group, column] = True
            group = above[group]
    return under


def _cpus(member: CpuMember) -> frozenset[int]:
    """Return the CPUs of a member's cpuset; none stands for all."""
    try:
        return cpulist.parse(member.cpus)
    except ValueError:
        return frozenset()


def _cpu_sets(cpusets: Sequence[frozenset[int]]) -> list[tuple[list[bool], float]]:
    """Return the sets of CPUs that limit subjects: who has no other CPUs, and their number.

    Subjects with CPUs in common may fill the union of theirs, so unions are limits, too.
    """
    sets = dict.fromkeys(each for each in cpusets if each)
    while len(sets) < _MOST_CPU_SETS:
        unions = (a | b for a, b in product(sets, repeat=2) if a & b)
        new = next((union for union in unions if union not in sets), None)
        if new is None:
            break
        sets[new] = None
    return [([bool(each) and each <= cpus for each in cpusets], len(cpus)) for cpus in sets]
