"""Selection of jobs: which subjects of a node are tracked while there are more than can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

MOST_JOBS = 16  # tracked at the same time
_FORGOTTEN_S = 60  # of idleness, after which a subject loses its place
_PATIENCE_S = 10  # in which a subject must be busy before it may replace another
_TRIED_S = 180  # without a rhythm, after which any other may replace a subject
_AGAIN_S = 600  # until a subject that was tried in vain may replace another
# times the use of a subject that is being tried, and of a job that is read, that replaces it
_BUSIER, _BUSIER_READ = 1.5, 3.0


class JobSelection:
    """The selected subjects of one node: the busiest, and those that have a rhythm.

    At most one subject is replaced in ``_PATIENCE_S`` seconds: first an idle one, then one
    that was tried in vain, then the one that is least busy.
    """

    def __init__(self) -> None:
        self._clock = 0
        self._placed: dict[str, int] = {}  # subject -> since
        self._first: dict[str, int] = {}  # busy subject -> since
        self._last: dict[str, int] = {}  # subject -> last busy second
        self._tried: dict[str, int] = {}  # subject -> when it was replaced, having no rhythm
        self._changed = 0

    def __contains__(self, subject: str) -> bool:
        return subject in self._placed

    def __bool__(self) -> bool:
        return bool(self._last)

    @property
    def waiting(self) -> list[str]:
        """The busy subjects that have no place."""
        return sorted(subject for subject in self._first if subject not in self._placed)

    @classmethod
    def of(cls, subjects: Collection[str]) -> JobSelection:
        """Return a selection of these subjects."""
        selection = cls()
        selection._placed = dict.fromkeys(subjects, 0)
        selection._first, selection._last = dict(selection._placed), dict(selection._placed)
        return selection

    def update(self, uses: Mapping[str, float], is_read: Callable[[str], bool]) -> list[str]:
        """Add one second with the CPUs that busy subjects use; return those that get a place."""
        self._clock += 1
        for subject in uses:
            self._first.setdefault(subject, self._clock)
            self._last[subject] = self._clock
        self._forget()
        free = MOST_JOBS - len(self._placed)
        placed = _by_use(self.waiting, uses)[:free] if free > 0 else self._replacing(uses, is_read)
        self._placed |= dict.fromkeys(placed, self._clock)
        return placed

    def _forget(self) -> None:
        idle = [s for s, clock in self._last.items() if self._clock - clock > _FORGOTTEN_S]
        for subject in idle:
            for known in (self._last, self._first, self._placed, self._tried):
                known.pop(subject, None)

    def _replacing(self, uses: Mapping[str, float], is_read: Callable[[str], bool]) -> list[str]:
        """Return the subject that replaces another, if one waits that has more right."""
        patient = [subject for subject in self.waiting if self._may_replace(subject)]
        if not patient or self._clock - self._changed < _PATIENCE_S:
            return []
        busiest = _by_use(patient, uses)[0]
        claims = {s: self._claim(s, uses.get(s, 0.0), read=is_read(s)) for s in self._placed}
        weakest = min(claims, key=lambda subject: (claims[subject], subject))
        if claims[weakest] >= uses.get(busiest, 0.0):
            return []
        self._changed = self._clock
        del self._placed[weakest]
        if not is_read(weakest):
            self._tried[weakest] = self._clock
        return [busiest]

    def _may_replace(self, subject: str) -> bool:
        tried = self._tried.get(subject)
        if tried is not None and self._clock - tried < _AGAIN_S:
            return False
        return self._clock - self._first[subject] >= _PATIENCE_S

    def _claim(self, subject: str, use: float, *, read: bool) -> float:
        """Return the use that another must exceed to get the place of this subject."""
        if read:
            return _BUSIER_READ * use
        if self._clock - self._placed[subject] >= _TRIED_S:
            return 0.0
        return _BUSIER * use


def _by_use(subjects: Collection[str], uses: Mapping[str, float]) -> list[str]:
    """Return the subjects, the busiest first."""
    return sorted(subjects, key=lambda subject: (-uses.get(subject, 0.0), subject))
