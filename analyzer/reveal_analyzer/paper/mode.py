"""Paper mode (``--mode paper``): the agreement of the paper's three detectors decides.

A certain signature that holds opens an episode too, and keeps it open: it is known to be harm, and
what shows in few of thousands of features gets no vote.  ``cause`` names the cause of both.

The detectors are learned again when another process takes a node over: their reference is too
large to be saved.  An open episode is saved, and waits for them.  What they then mark continues it.
If they do not mark it, nobody knows whether it lasts, as their new reference may contain it: it is
resolved as unobserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.formatting import decimal
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, Matches
from reveal_analyzer.paper.cause import EpisodeCause, KnownCause
from reveal_analyzer.paper.detector import PaperVerdict
from reveal_analyzer.paper.episodes import PaperEpisode, PaperEpisodes
from reveal_analyzer.paper.methods import WindowSettings
from reveal_analyzer.state.records import restore_optional, restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, integer, section, sections, text
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import catalogue, severity
from reveal_contract.finding import (
    Evidence,
    Finding,
    FindingChange,
    FindingUpdate,
    Resolution,
    Severity,
    State,
    finding_id,
    rfc3339,
)
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_UNOBSERVED_NS = 60 * NS_PER_SECOND  # an open episode that no window was judged for so long
_CALM_NS = 10 * NS_PER_SECOND  # without a certain signature, after which it no longer holds
_SEVERITY_HOLDS_S = 10  # before a lower severity is reported
_NO_MATCHES, _NO_LEVELS = Matches([], []), np.zeros(0)


class PaperMode:
    """Reports the episodes of marked windows of one node as findings.

    ``windows`` are length and distance of the windows, and how long the detectors learn.
    """

    def __init__(
        self,
        node: str,
        windows: WindowSettings | None = None,
        rules: Sequence[HypothesisRule] = (),
        history: SubjectHistory | None = None,
    ) -> None:
        windows = windows or WindowSettings()
        self._node, self._rules = node, rules
        self._history = SubjectHistory() if history is None else history
        self._window_ns = windows.window_s * NS_PER_SECOND
        self._stride_ns = windows.stride_s * NS_PER_SECOND
        self._learning_ns = windows.warmup_s * NS_PER_SECOND
        self._episodes = PaperEpisodes()
        self._identity: tuple[str, Subsystem] | None = None
        self._cause: EpisodeCause | None = None
        self._judged_ns = 0  # end of the last window with a verdict
        self._certain_ns = 0  # end of the last second in which a signature held
        self._is_resumed = False  # the detectors that saw the open episode are gone
        self._may_be_learned = False  # by detectors that learned while the episode was open
        self._reported: Severity | None = None
        self._other_s = 0  # for so long its severity has been another

    @property
    def any_open(self) -> bool:
        """Whether an episode is open, so that its clock must be kept."""
        return self._episodes.current is not None

    def kept_highest(self, plan: ColumnPlan, highest: Floats) -> dict[CaseKey, Floats]:
        """Return, by signature of the open episode, the highest values from before it."""
        return self._cause.kept_highest(plan, highest) if self._cause else {}

    def update(
        self,
        start_ns: int,
        verdict: PaperVerdict | None,
        matches: Matches = _NO_MATCHES,
        second: ObservedSecond | None = None,
        highest: Floats = _NO_LEVELS,
    ) -> list[FindingUpdate]:
        """Add the verdict on the window that ends with the second beginning at ``start_ns``.

        None means that no window ends there, or that it could not be judged: that says nothing
        about an open episode.  ``matches`` are the certain signatures of the second, ``highest``
        the highest levels that are normal for its columns.
        """
        end = start_ns + NS_PER_SECOND
        decided = self._decided(end, verdict, matches)
        updates = self._close_unobserved(end, decided)
        if decided is None:
            return updates
        self._is_resumed = False
        self._may_be_learned &= verdict is None or not verdict.marked
        before = self._episodes.current
        ended = self._episodes.push(self._first_ns(end, verdict), end, decided)
        self._judged_ns = end
        if ended:
            hidden = self._may_be_learned and verdict is not None
            updates.append(
                self._resolved(ended, Resolution.UNOBSERVED if hidden else Resolution.ENDED)
            )
            self._may_be_learned = False
        current = self._episodes.current
        if current is None:
            return updates
        opened = before is None or ended is not None
        if opened:
            self._begin(current)
        if second is not None and self._cause is not None:
            self._cause.add(second, matches, highest)
        return updates + self._reports(current, opened=opened)

    def _decided(
        self, end: int, verdict: PaperVerdict | None, matches: Matches
    ) -> PaperVerdict | None:
        """Return the verdict of the detectors and of the signatures together."""
        if matches.sustained or (self.any_open and matches.present):
            self._certain_ns = end
        if self._certain_ns and 0 <= end - self._certain_ns < _CALM_NS:
            subsystems = [match.rule.subsystem for match in matches.sustained]
            if verdict is not None:
                subsystems += verdict.subsystems
            unique = tuple(dict.fromkeys(subsystems))
            return replace(verdict or PaperVerdict((), True), marked=True, subsystems=unique)
        current = self._episodes.current
        if verdict is None and current and not current.peak.methods and not self._is_resumed:
            return PaperVerdict((), False)  # signatures alone opened it, and none holds any more
        return verdict

    def _begin(self, episode: PaperEpisode) -> None:
        self._identity, self._may_be_learned = None, False
        _, subsystem = self._identified(episode)
        self._cause = EpisodeCause(subsystem, episode.first_ns, self._rules, self._history)

    def _reports(self, episode: PaperEpisode, *, opened: bool) -> list[FindingUpdate]:
        """Return the finding if it is new, if it is worse, or if it has been less for a while."""
        now = self._severity(episode)
        self._other_s = 0 if opened or now is self._reported else self._other_s + 1
        is_worse = self._reported is not None and now.rank > self._reported.rank
        if not opened and not is_worse and self._other_s < _SEVERITY_HOLDS_S:
            return []
        self._reported, self._other_s = now, 0
        change = FindingChange.OPENED if opened else FindingChange.CHANGED
        return [FindingUpdate(change, self._finding(episode, State.OPEN))]

    def finish(self) -> list[FindingUpdate]:
        """Return the open episode when the analysis ends."""
        current = self._episodes.current
        if not current:
            return []
        return [FindingUpdate(FindingChange.CHANGED, self._finding(current, State.OPEN))]

    def save(self) -> StateTree:
        """Return the open episode."""
        current = self._episodes.current
        if current is None:
            return {}
        _, subsystem = self._identified(current)
        finding = self._finding(current, State.OPEN)
        known = self._cause.known(finding) if self._cause else None
        return {
            "episode": save_record(_portable(current)),
            "subsystem": subsystem.value,
            "certain_ns": self._certain_ns,
            "cause": save_record(known) if known else None,
            "kept": self._cause.save() if self._cause else [],
        }

    def restore(self, tree: StateTree) -> None:
        """Continue with the open episode of another process; raises ``StateError``."""
        if "episode" not in tree:
            return
        episode = restore_record(PaperEpisode, section(tree, "episode"))
        try:
            subsystem = Subsystem(text(tree, "subsystem"))
        except ValueError as error:
            raise StateError(str(error)) from None
        self._identity = finding_id(self._node, subsystem, episode.first_ns), subsystem
        known = restore_optional(KnownCause, tree, "cause")
        self._certain_ns = integer(tree, "certain_ns") if "certain_ns" in tree else 0
        self._episodes.resume(episode)
        self._cause = EpisodeCause(subsystem, episode.first_ns, self._rules, self._history, known)
        self._cause.restore(sections(tree, "kept") if "kept" in tree else ())
        self._judged_ns, self._is_resumed = episode.last_ns, True
        self._may_be_learned = True
        self._reported = self._severity(episode)

    def _first_ns(self, end: int, verdict: PaperVerdict | None) -> int:
        """Return the begin of a window; it touches the open episode if none between was judged."""
        is_window = verdict is not None and verdict.marked  # else a second of a signature
        length = self._window_ns if is_window else NS_PER_SECOND
        current, first = self._episodes.current, end - length
        if current and end - self._judged_ns > self._stride_ns:
            return min(first, current.last_ns)
        return first

    def _close_unobserved(self, now_ns: int, verdict: PaperVerdict | None) -> list[FindingUpdate]:
        """Close the open episode where nobody will know how it ended."""
        current = self._episodes.current
        if current is None:
            return []
        patience_ns = _UNOBSERVED_NS + self._stride_ns
        patience_ns += self._learning_ns if self._is_resumed else 0
        unseen = self._is_resumed and verdict is not None and not verdict.marked
        if not unseen and now_ns - current.last_ns < patience_ns:
            return []
        self._episodes.close()
        return [self._resolved(current, Resolution.UNOBSERVED)]

    def _resolved(self, episode: PaperEpisode, resolution: Resolution) -> FindingUpdate:
        finding = self._finding(episode, State.RESOLVED)
        if resolution is Resolution.UNOBSERVED and not self._is_resumed:
            finding = replace(finding, notes=(*finding.notes, _unobserved_note(episode)))
        return FindingUpdate(FindingChange.RESOLVED, replace(finding, resolution=resolution))

    def _identified(self, episode: PaperEpisode) -> tuple[str, Subsystem]:
        """Return id and subsystem of the finding, which the first verdict decides."""
        if self._identity is None:
            subsystem = episode.peak.subsystem or Subsystem.CPU
            self._identity = finding_id(self._node, subsystem, episode.first_ns), subsystem
        return self._identity

    def _severity(self, episode: PaperEpisode) -> Severity:
        """Return the severity: of the vote, or of a certain signature that is worse."""
        certain = self._cause.severities if self._cause else []
        return severity.of_agreement(episode.peak.agreeing, certain)

    def _finding(self, episode: PaperEpisode, state: State) -> Finding:
        peak = episode.peak
        name, subsystem = self._identified(episode)
        finding = Finding(
            id=name,
            node_name=self._node,
            subsystem=subsystem,
            subsystems=peak.subsystems or (subsystem,),
            severity=self._severity(episode),
            state=state,
            first_observed_ns=episode.first_ns,
            last_observed_ns=episode.last_ns,
            resolved_ns=episode.last_ns if state is State.RESOLVED else None,
            claim=peak.claim or f"{peak.agreeing} of 3 detectors agree",
            methods=peak.as_methods(),
            evidence=_evidence(peak),
            score_percent=max((m.score_percent for m in peak.methods), default=0),
            confidence_percent=round(100 * peak.agreeing / 3),
            notes=(_resumed_note(episode),) if self._is_resumed else (),
        )
        if self._cause is None:
            return finding
        return self._cause.applied(finding, self._node, episode)


def _unobserved_note(episode: PaperEpisode) -> str:
    moment = rfc3339(episode.last_ns)[11:19]
    return f"its evidence has not been read since {moment}Z; whether it lasts is unknown"


def _resumed_note(episode: PaperEpisode) -> str:
    moment = rfc3339(episode.last_ns)[11:19]
    return (
        f"not observed since {moment}Z, when its analyzer was replaced: the detectors were learned"
        " again, which may hide it; whether it lasts is unknown"
    )


def _portable(episode: PaperEpisode) -> PaperEpisode:
    """Return the episode without what only its detectors can read, and without numbers like NaN."""
    peak = episode.peak
    methods = tuple(
        replace(m, score=0.0, threshold=0.0, agrees=bool(m.agrees), top=()) for m in peak.methods
    )
    pairs = tuple(p for p in peak.pairs if math.isfinite(p.value) and math.isfinite(p.baseline))
    return replace(episode, peak=replace(peak, marked=True, methods=methods, pairs=pairs))


def _evidence(verdict: PaperVerdict) -> tuple[Evidence, ...]:
    result = []
    for pair in verdict.pairs:
        metric, _, instance = pair.channel.rstrip("}").partition("{")
        row = catalogue.find(metric)
        result.append(
            Evidence(
                metric=metric,
                feature=pair.feature,
                instance=instance,
                value=decimal(pair.value),
                baseline=decimal(pair.baseline),
                unit=pair.unit,
                direction=pair.direction,
                known_as=row.origin,
            )
        )
    return tuple(result)
