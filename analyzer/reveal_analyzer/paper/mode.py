"""Paper mode (``--mode paper``): the agreement of the paper's three detectors decides."""

from __future__ import annotations

from dataclasses import replace

from reveal_analyzer.formatting import decimal
from reveal_analyzer.paper.detector import PaperEpisode, PaperEpisodes, PaperVerdict
from reveal_contract import catalogue, severity
from reveal_contract.finding import (
    Evidence,
    Finding,
    FindingChange,
    FindingUpdate,
    Resolution,
    State,
    finding_id,
    rfc3339,
)
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_WINDOW_NS = 3 * NS_PER_SECOND
_UNOBSERVED_NS = 60 * NS_PER_SECOND  # an open episode that no window was judged for so long


class PaperMode:
    """Reports the episodes of marked windows of one node as findings."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._episodes = PaperEpisodes()
        self._identity: tuple[str, Subsystem] | None = None
        self._judged_ns = 0  # end of the last window with a verdict

    @property
    def any_open(self) -> bool:
        """Whether an episode is open, so that its clock must be kept."""
        return self._episodes.current is not None

    def update(self, start_ns: int, verdict: PaperVerdict | None) -> list[FindingUpdate]:
        """Add the verdict on the window that ends with the second beginning at ``start_ns``.

        None means that the window could not be judged: that says nothing about an open episode.
        """
        end = start_ns + NS_PER_SECOND
        updates = self._close_unobserved(end)
        if verdict is None:
            return updates
        ended = self._episodes.push(self._first_ns(end), end, verdict)
        self._judged_ns = end
        if ended:
            updates.append(self._resolved(ended, Resolution.ENDED))
        current = self._episodes.current
        if current and current.windows == 1:
            self._identity = None
            opened = self._finding(current, State.OPEN)
            updates.append(FindingUpdate(FindingChange.OPENED, opened))
        return updates

    def finish(self) -> list[FindingUpdate]:
        """Return the open episode when the analysis ends."""
        current = self._episodes.current
        if not current:
            return []
        return [FindingUpdate(FindingChange.CHANGED, self._finding(current, State.OPEN))]

    def _first_ns(self, end: int) -> int:
        """Return the begin of a window; it touches the open episode if none between was judged."""
        current, first = self._episodes.current, end - _WINDOW_NS
        if current and end - self._judged_ns > NS_PER_SECOND:
            return min(first, current.last_ns)
        return first

    def _close_unobserved(self, now_ns: int) -> list[FindingUpdate]:
        current = self._episodes.current
        if current is None or now_ns - current.last_ns < _UNOBSERVED_NS:
            return []
        self._episodes.close()
        return [self._resolved(current, Resolution.UNOBSERVED)]

    def _resolved(self, episode: PaperEpisode, resolution: Resolution) -> FindingUpdate:
        finding = self._finding(episode, State.RESOLVED)
        notes = [_unobserved_note(episode)] if resolution is Resolution.UNOBSERVED else []
        finding = replace(finding, resolution=resolution, notes=(*finding.notes, *notes))
        return FindingUpdate(FindingChange.RESOLVED, finding)

    def _finding(self, episode: PaperEpisode, state: State) -> Finding:
        peak = episode.peak
        if self._identity is None:
            subsystem = peak.subsystem or Subsystem.CPU
            self._identity = finding_id(self._node, subsystem, episode.first_ns), subsystem
        name, subsystem = self._identity
        return Finding(
            id=name,
            node_name=self._node,
            subsystem=subsystem,
            subsystems=peak.subsystems or (subsystem,),
            severity=severity.of_detectors(peak.agreeing),
            state=state,
            first_observed_ns=episode.first_ns,
            last_observed_ns=episode.last_ns,
            resolved_ns=episode.last_ns if state is State.RESOLVED else None,
            claim=peak.claim or f"{peak.agreeing} of 3 detectors agree",
            methods=peak.as_methods(),
            evidence=_evidence(peak),
            score_percent=max((m.score_percent for m in peak.methods), default=0),
            confidence_percent=round(100 * peak.agreeing / 3),
        )


def _unobserved_note(episode: PaperEpisode) -> str:
    moment = rfc3339(episode.last_ns)[11:19]
    return f"its evidence has not been read since {moment}Z; whether it lasts is unknown"


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
                unit=row.unit,
                direction=pair.direction,
                known_as=row.origin,
            )
        )
    return tuple(result)
