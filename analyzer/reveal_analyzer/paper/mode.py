"""Paper mode (``--mode paper``): the agreement of the paper's three detectors decides.

The detectors are learned again when another process takes a node over: their reference is too
large to be saved.  An open episode is saved, and waits for them.  What they then mark continues it.
If they do not mark it, nobody knows whether it lasts, as their new reference may contain it: it is
resolved as unobserved.
"""

from __future__ import annotations

import math
from dataclasses import replace

from reveal_analyzer.formatting import decimal
from reveal_analyzer.paper.detector import PaperEpisode, PaperEpisodes, PaperVerdict
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, section, text
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
    """Reports the episodes of marked windows of one node as findings.

    ``learning_s`` is how long the detectors learn.
    """

    def __init__(self, node: str, learning_s: int = 60) -> None:
        self._node = node
        self._learning_ns = learning_s * NS_PER_SECOND
        self._episodes = PaperEpisodes()
        self._identity: tuple[str, Subsystem] | None = None
        self._judged_ns = 0  # end of the last window with a verdict
        self._is_resumed = False  # the detectors that saw the open episode are gone

    @property
    def any_open(self) -> bool:
        """Whether an episode is open, so that its clock must be kept."""
        return self._episodes.current is not None

    def update(self, start_ns: int, verdict: PaperVerdict | None) -> list[FindingUpdate]:
        """Add the verdict on the window that ends with the second beginning at ``start_ns``.

        None means that the window could not be judged: that says nothing about an open episode.
        """
        end = start_ns + NS_PER_SECOND
        updates = self._close_unobserved(end, verdict)
        if verdict is None:
            return updates
        self._is_resumed = False
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

    def save(self) -> StateTree:
        """Return the open episode."""
        current = self._episodes.current
        if current is None:
            return {}
        _, subsystem = self._identified(current)
        return {"episode": save_record(_portable(current)), "subsystem": subsystem.value}

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
        self._episodes.resume(episode)
        self._judged_ns, self._is_resumed = episode.last_ns, True

    def _first_ns(self, end: int) -> int:
        """Return the begin of a window; it touches the open episode if none between was judged."""
        current, first = self._episodes.current, end - _WINDOW_NS
        if current and end - self._judged_ns > NS_PER_SECOND:
            return min(first, current.last_ns)
        return first

    def _close_unobserved(self, now_ns: int, verdict: PaperVerdict | None) -> list[FindingUpdate]:
        """Close the open episode where nobody will know how it ended."""
        current = self._episodes.current
        if current is None:
            return []
        patience_ns = _UNOBSERVED_NS + (self._learning_ns if self._is_resumed else 0)
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

    def _finding(self, episode: PaperEpisode, state: State) -> Finding:
        peak = episode.peak
        name, subsystem = self._identified(episode)
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
            notes=(_resumed_note(episode),) if self._is_resumed else (),
        )


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
                unit=row.unit,
                direction=pair.direction,
                known_as=row.origin,
            )
        )
    return tuple(result)
