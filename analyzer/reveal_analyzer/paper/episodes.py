"""Episodes of Paper mode: adjacent marked windows of one node (paper, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from reveal_analyzer.paper.detector import PaperVerdict


@dataclass(frozen=True, slots=True)
class PaperEpisode:
    """Adjacent marked windows of one node; ``peak`` is the verdict with the most agreement."""

    first_ns: int
    last_ns: int
    windows: int
    peak: PaperVerdict


class PaperEpisodes:
    """Merges adjacent marked windows."""

    def __init__(self) -> None:
        self._open: PaperEpisode | None = None

    @property
    def current(self) -> PaperEpisode | None:
        """Return the open episode."""
        return self._open

    def push(
        self, first_ns: int, last_ns: int, verdict: PaperVerdict | None
    ) -> PaperEpisode | None:
        """Add the next window; return the episode that it ended, if any."""
        current = self._open
        if verdict is None or not verdict.marked:
            return self.close()
        if current is not None and first_ns <= current.last_ns:
            peak = max(current.peak, verdict, key=_strength)
            # a clock that was set back must not put the end before the beginning
            last_ns = max(current.last_ns, last_ns)
            self._open = PaperEpisode(current.first_ns, last_ns, current.windows + 1, peak)
            return None
        self._open = PaperEpisode(first_ns, last_ns, 1, verdict)
        return current

    def resume(self, episode: PaperEpisode) -> None:
        """Continue an episode that another process opened."""
        self._open = episode

    def close(self) -> PaperEpisode | None:
        """End the open episode at the end of data or of a node."""
        ended, self._open = self._open, None
        return ended


def _strength(verdict: PaperVerdict) -> tuple[int, int]:
    return verdict.agreeing, sum(method.score_percent for method in verdict.methods)
