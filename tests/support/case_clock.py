"""Feeds a case tracker with seconds that a test describes, and what there is to feed it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.case import Case
from reveal_analyzer.episodes.case_scores import CaseScores
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.relations import Relations
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.episodes.tracker import CaseChange, CaseTracker
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, State
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND

CPU, MEMORY, GPU = Subsystem.CPU, Subsystem.MEMORY, Subsystem.GPU
NETWORK, STORAGE = Subsystem.NETWORK, Subsystem.STORAGE
RULES = {rule.name: rule for rule in load()}
OOM_KILL = SignatureMatch(RULES["OOMKill"], ())
STEAL, DELAY, DEFICIT = "cpu.steal", "cpu.run_delay", "gpu.clock_deficit"
PRESSED = "memory.pressure.some"
DROPS, RETRANSMITTED = "network.softnet.dropped", "network.tcp.retransmit_share"
OF = {CPU: STEAL, GPU: DEFICIT}
METRICS = (STEAL, DELAY, DEFICIT, DROPS, "network.tcp.retrans_segs", "network.tcp.out_segs",
           PRESSED)  # fmt: skip
PLAN = column_plan(ChannelTable(tuple(Channel(name, "", Kind.COUNTER) for name in METRICS), ()))
WIDTH = len(PLAN.columns)
CALM: dict[Subsystem, float] = {}


def weights(moved: Mapping[str, float]) -> Floats:
    return np.array([moved.get(column.metric.name, 0.0) for column in PLAN.columns])


class Learned:
    """A live score that has learned the present level: cases see ``deviations`` from before."""

    plan = PLAN

    def __init__(self) -> None:
        self.deviations: Floats = np.zeros(WIDTH)

    def reference(self, columns: Indices) -> ColumnReference:
        none = np.zeros(columns.size)
        labels = tuple(PLAN.labels[index] for index in columns)
        bounds = np.zeros((3, 4, columns.size), np.float32)
        own = np.zeros((2, columns.size), np.float32)
        return ColumnReference(labels, bounds, own, none, none, np.full(len(Subsystem), 10.0))

    def deviation(self, reference: ColumnReference) -> Floats32:
        indices = [PLAN.labels.index(label) for label in reference.labels]
        return self.deviations[indices].astype(np.float32)

    def placed(self, reference: ColumnReference, weighted: Floats32) -> Floats32:
        whole = np.zeros(WIDTH, np.float32)
        whole[[PLAN.labels.index(label) for label in reference.labels]] = weighted
        return whole

    def over(self, weighted: Floats32, thresholds: Floats | None = None) -> dict[Subsystem, float]:
        worst = dict.fromkeys(Subsystem, 0.0)
        for column, value in zip(PLAN.columns, weighted.tolist(), strict=True):
            subsystem = column.metric.subsystem
            worst[subsystem] = max(worst[subsystem], value / 10.0)
        return worst


class Clock:
    """Feeds a tracker second by second; ``log`` is (second, change, subsystem)."""

    def __init__(
        self,
        rules: Iterable[HypothesisRule] = (),
        baselines: Learned | None = None,
        kind: type[Relations] = Relations,
    ) -> None:
        relations = kind(list(rules), SubjectHistory(), record)
        self.tracker = CaseTracker(CaseScores(baselines), relations)
        self.second = 0
        self.log: list[tuple[int, str, Subsystem]] = []

    def run(
        self,
        seconds: int,
        ratios: Mapping[Subsystem, float] = CALM,
        sustained: Iterable[SignatureMatch] = (),
        moved: Mapping[str, float] | None = None,
        unobserved: bool = False,
        present: Iterable[SignatureMatch] = (),
    ) -> list[CaseChange]:
        """Run seconds; without ``moved`` one column of each subsystem explains its ratio.

        ``present`` match, but not for long enough yet.
        """
        if moved is None:
            moved = {OF[subsystem]: 10 * ratio for subsystem, ratio in ratios.items()}
        changes: list[CaseChange] = []
        for _ in range(seconds):
            matches = list(sustained), [*sustained, *present]
            found = self._push(ratios, matches, weights(moved), unobserved)
            self.log += [(self.second, change.value, c.episode.subsystem) for change, c in found]
            changes += found
            self.second += 1
        return changes

    def _push(
        self,
        ratios: Mapping[Subsystem, float],
        matches: tuple[list[SignatureMatch], list[SignatureMatch]],
        weighted: Floats,
        unobserved: bool,
    ) -> list[CaseChange]:
        start_ns = self.second * NS_PER_SECOND
        excess = np.stack([weighted, np.zeros(WIDTH)])
        missing = np.full(WIDTH, unobserved)
        observed = ObservedSecond(
            start_ns, PLAN, np.ones(WIDTH), excess, weighted, np.zeros(WIDTH), missing
        )
        return self.tracker.update(SecondVerdict(start_ns, ratios, *matches), observed)

    def changes_of(self, change: FindingChange) -> list[tuple[int, Subsystem]]:
        return [(second, where) for second, name, where in self.log if name == change.value]


def record(case: Case) -> EpisodeRecord:
    return EpisodeRecord("n1", case.episode, case.trace, (), State.OPEN)


def match_of(rule: str, metric: str, instance: str = "") -> SignatureMatch:
    columns = tuple(column for column in PLAN.columns if column.metric.name == metric)
    return SignatureMatch(RULES[rule], columns, instance, 1.0)


PRESSURE = match_of("MemoryPressure", PRESSED)
BLOCKED = SignatureMatch(RULES["BlockedOnIO"], (), "", 5e8)  # explained by pressure
LOSS = match_of("PacketLoss", RETRANSMITTED)
