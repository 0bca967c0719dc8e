"""What is known of one case apart from its values: its times, subsystems and signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract import severity
from reveal_contract.finding import Severity, finding_id
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

MOST_RATIO = 10.0  # one extreme second must not decide the weight of its subsystem alone
_PRESENT_S = 60  # seconds for which a signature counts as present harm


class SecondVerdict(NamedTuple):
    """Result of one second.

    ``score_ratios`` are scores divided by their thresholds: above 1 is anomalous.  ``sustained``
    signatures have matched long enough to open a case, ``present`` ones match in this second.
    ``has_ledger`` says that the ledger was read, so that what it does not show is not there.
    """

    start_ns: int
    score_ratios: Mapping[Subsystem, float]
    sustained: Sequence[SignatureMatch] = ()
    present: Sequence[SignatureMatch] = ()
    has_ledger: bool = False

    def above_threshold(self) -> set[Subsystem]:
        """Return the subsystems whose score is above its threshold."""
        return {s for s, ratio in self.score_ratios.items() if ratio > 1}

    @property
    def anomalous(self) -> bool:
        """Whether a score is above its threshold or a signature is present."""
        return bool(self.present) or max(self.score_ratios.values(), default=0.0) > 1


@dataclass
class Episode:
    """Times of a case, the subsystems that it affects, and the signatures that matched in it.

    ``subsystem`` is where it opened.  ``peak`` is the highest score of the last active minute as a
    multiple of the threshold; ``present_ns`` is when each signature was present last.
    """

    first_ns: int
    last_ns: int
    subsystem: Subsystem
    subsystems: list[Subsystem] = field(default_factory=list)
    weights: dict[Subsystem, float] = field(default_factory=dict)
    peak: float = 0.0
    matches: dict[str, SignatureMatch] = field(default_factory=dict)
    present_ns: dict[str, int] = field(default_factory=dict)
    opened_ns: int = 0
    salt: str = ""  # in the id, where another case began in the same second and subsystem

    def id_on(self, node: str) -> str:
        """Return the id of its finding: that of the subsystem in which it opened.

        It stays the same when a cause in another subsystem explains what was observed first.
        """
        seed = f"{node}\0{self.salt}" if self.salt else node
        return finding_id(seed, self.subsystem, self.first_ns)

    @property
    def severity(self) -> Severity:
        """Severity of the present harm: that of the last active minute."""
        return severity.of_episode(self.peak, self.certain_severities)

    def add(self, start_ns: int, ratios: Mapping[Subsystem, float]) -> None:
        """Count an active second with the score ratios of its anomalous subsystems."""
        # the clock may have been set back: a finding never ends before it began
        self.last_ns = max(self.last_ns, self.first_ns, start_ns + NS_PER_SECOND)
        for subsystem in sorted(ratios):
            ratio = min(ratios[subsystem], MOST_RATIO)
            self.weights[subsystem] = self.weights.get(subsystem, 0.0) + ratio
            if subsystem not in self.subsystems:
                self.subsystems.append(subsystem)

    def add_matches(self, matches: Iterable[SignatureMatch]) -> None:
        """Add signatures; of one rule the first instance stays, with its latest harm."""
        for match in matches:
            known = self.matches.setdefault(match.rule.name, match)
            if match.harmed and match.instance == known.instance:
                self.matches[match.rule.name] = match

    def absorb(self, other: Episode) -> None:
        """Take over the subsystems, weights and signatures of another episode."""
        self.subsystems += [s for s in other.subsystems if s not in self.subsystems]
        for subsystem, weight in other.weights.items():
            self.weights[subsystem] = self.weights.get(subsystem, 0.0) + weight
        self.peak = max(self.peak, other.peak)
        self.add_matches(other.matches.values())
        self.present_ns |= other.present_ns

    @property
    def current_matches(self) -> list[str]:
        """Names of the signatures that were present in the last minute in which one was.

        A signature that matched only while the fault began says nothing of what lasts.
        """
        present = {name: self.present_ns.get(name, self.last_ns) for name in self.matches}
        since_ns = max(present.values(), default=0) - _PRESENT_S * NS_PER_SECOND
        return [name for name, last_ns in present.items() if last_ns >= since_ns]

    @property
    def certain_severities(self) -> list[Severity]:
        """Severities of the signatures that were present in the last active minute."""
        since_ns = self.last_ns - _PRESENT_S * NS_PER_SECOND
        return [
            match.severity
            for name, match in self.matches.items()
            if match.rule.certain and self.present_ns.get(name, self.last_ns) >= since_ns
        ]

    @property
    def reported_state(self) -> tuple[object, ...]:
        """The part of its state whose change is worth an update."""
        return tuple(self.subsystems), tuple(self.current_matches)

    def primary_subsystem(self) -> Subsystem:
        """Return the subsystem of the first certain signature, else the one of most weight."""
        for match in self.matches.values():
            return match.rule.subsystem
        return max(self.subsystems, key=lambda s: self.weights.get(s, 0.0))
