"""Made-up counters of subjects, second by second, as the analyzer of a node receives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

USAGE = "cpu.subject.usage"
CPU = 1e9  # ns of CPU time in a second
START_S = 1_700_000_000
Values = Mapping[tuple[str, str], float]  # by metric and instance; NaN: not read


def ns(second: float) -> int:
    """Return the time of a second of a timeline, in ns."""
    return int((START_S + second) * NS_PER_SECOND)


def pod(name: str, uid: str = "", **more: object) -> Identity:
    """Return the identity of a pod of the namespace "ml"."""
    return Identity(f"ml/{name}", SubjectKind.POD, uid or f"u-{name}", "ml", name, **more)  # type: ignore[arg-type]


def cpus(**used: float) -> dict[tuple[str, str], float]:
    """Return CPU time of pods of the namespace "ml", in CPUs, and that of the host as their sum."""
    values = {(USAGE, f"ml/{name}"): each * CPU for name, each in used.items()}
    return {**values, ("cpu.run_time", ""): sum(used.values()) * CPU}


class SubjectTimeline:
    """Plays seconds into a history; ``announced`` is the subject table as it is now."""

    def __init__(self, *announced: Identity) -> None:
        self.announced = list(announced)
        self.now = 0
        self.history = SubjectHistory(lambda: tuple(self.announced))
        self._plans: dict[tuple[tuple[str, str], ...], Second] = {}

    def play(self, seconds: int, values: Values) -> None:
        """Add seconds with the same values; the channels are those of ``values``."""
        keys = tuple(values)
        if keys not in self._plans:
            channels = tuple(
                Channel(metric, instance, catalogue.find(metric).kind) for metric, instance in keys
            )
            plan = column_plan(ChannelTable((), channels))
            self._plans[keys] = Second(plan, 0, np.zeros(0), np.zeros(0))
        for _ in range(seconds):
            observed = np.array(list(values.values()), float)
            self.history.push(self._plans[keys]._replace(start_ns=ns(self.now), channels=observed))
            self.now += 1

    def case(self, first_s: int, excluded: frozenset[int] = frozenset()) -> CaseSubjects:
        """Return the subjects of a case that began at a second."""
        return CaseSubjects.begin(self.history, ns(first_s), excluded)

    def look(self, case: CaseSubjects, query: CulpritQuery) -> NamedSubjects:
        """Return the culprits of a case that has been active since it began."""
        active = range(case.first_ns, ns(self.now), NS_PER_SECOND)[-60:]
        return case.culprits(self.history, query, active)
