"""Culprits and victims of a case as the ledger measured them, over its last active seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import MOST_ACTIVE_S, SubjectHistory

_LEAST_PERCENT = 1.0  # of the time that was taken, or of the wanted time that was lost
_MOST_CULPRITS, _MOST_VICTIMS = 5, 5


class MeasuredLosses:
    """Who took time from whom in the last active seconds of one case.

    Empty on a node without a ledger, and for causes that take no time from anybody.
    """

    def __init__(self) -> None:
        self._seconds: deque[tuple[SignatureMatch, ...]] = deque(maxlen=MOST_ACTIVE_S)

    def __bool__(self) -> bool:
        return bool(self._seconds)

    def add(self, matches: Iterable[SignatureMatch]) -> None:
        """Add the matches of the ledger in one second, if there are any."""
        if measured := tuple(match for match in matches if match.harmed):
            self._seconds.append(measured)

    def absorb(self, other: MeasuredLosses) -> None:
        """Add what was taken in the same seconds by the culprit of another case."""
        ours, theirs = list(self._seconds), list(other._seconds)
        earlier = max(len(ours), len(theirs))
        padded = [[()] * (earlier - len(each)) + each for each in (ours, theirs)]
        self._seconds.clear()
        self._seconds.extend((*own, *added) for own, added in zip(*padded, strict=True))

    def culprits(self, history: SubjectHistory, time_ns: int) -> NamedSubjects:
        """Return those who took time, with their parts of all that was taken, most first.

        Newcomers come before all others, whom they may have displaced.
        """
        taken: dict[str, float] = {}
        for match in self._matches():
            taken[match.instance] = taken.get(match.instance, 0.0) + match.value
        total = sum(taken.values())
        new = {match.instance for match in self._matches() if match.newcomer}
        names = sorted(_largest(taken), key=lambda name: name not in new)
        shares = [(name, 100 * taken[name] / total) for name in names[:_MOST_CULPRITS]]
        column = self._seconds[-1][0].columns[0]
        named = [each for each in shares if each[1] >= _LEAST_PERCENT]
        return history.measured(column.metric.name, named, time_ns)

    def victims(self, history: SubjectHistory, time_ns: int) -> tuple[str, ...]:
        """Return the names of those who lost time, the largest share first."""
        return tuple(history.name(victim, time_ns) for victim in self._ranked_victims())

    def notes(self, history: SubjectHistory, time_ns: int) -> tuple[str, ...]:
        """Return a sentence for each victim: how much of its wanted time it lost, and to whom."""
        lost = self._lost()
        return tuple(
            f"{history.name(victim, time_ns)} lost {sum(lost[victim].values()):.0f} % of the time"
            f" that it wanted: {_parts(lost[victim], history, time_ns)}"
            for victim in self._ranked_victims()
        )

    def _ranked_victims(self) -> list[str]:
        totals = {victim: sum(parts.values()) for victim, parts in self._lost().items()}
        known = {victim: percent for victim, percent in totals.items() if percent >= _LEAST_PERCENT}
        return _largest(known)[:_MOST_VICTIMS]

    def _matches(self) -> Iterable[SignatureMatch]:
        return (match for second in self._seconds for match in second)

    def _lost(self) -> dict[str, dict[str, float]]:
        """Return the mean percent of the wanted time that each victim lost, by culprit."""
        lost: dict[str, dict[str, float]] = {}
        for match in self._matches():
            for each in match.harmed:
                if each.subject == match.instance:  # what it loses by itself is its lost time
                    continue
                parts = lost.setdefault(each.subject, {})
                percent = 100 * each.share / len(self._seconds)
                parts[match.instance] = parts.get(match.instance, 0.0) + percent
        return lost


def _parts(lost: dict[str, float], history: SubjectHistory, time_ns: int) -> str:
    return ", ".join(
        f"{lost[culprit]:.0f} % to {history.name(culprit, time_ns)}"
        for culprit in _largest(lost)[:_MOST_CULPRITS]
        if lost[culprit] >= _LEAST_PERCENT
    )


def _largest(amounts: dict[str, float]) -> list[str]:
    """Return the names, the largest amount first."""
    return sorted(amounts, key=lambda name: (-amounts[name], name))
