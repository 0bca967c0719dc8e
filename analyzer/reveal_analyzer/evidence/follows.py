"""The findings whose samples are being kept, and when each is due: pure.

``now_s`` is monotonic.  A finding is read a moment after it opened, then every ``STEP_S``, when it
ends, and once more when the minute after its end is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from reveal_analyzer.evidence.timing import AROUND_S
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingKind,
    FindingUpdate,
    State,
)
from reveal_contract.time_units import NS_PER_SECOND

MOST_FOLLOWED = 64
FIRST_S = 3.0  # after the opening: what it names is clearer by then
STEP_S = 18.0  # streams keep 120 s, so several steps may fail
# A finding names others until it is a minute old, and until then the stream has its whole window:
# it is taken again with the channels of those that are named by now.
YOUNG_S = 58.0
SILENT_S = 30.0  # for the last slices of a node that may have stopped sending


@dataclass
class Follow:
    """One finding, as it was at ``updated_s``.

    ``opened_s`` is None if it opened before this analyzer followed it.
    """

    finding: Finding
    due_s: float
    updated_s: float
    opened_s: float | None = None
    complete_s: float | None = None  # when the minute after the end is over
    kept: bool = False
    announced: bool = field(default=False, repr=False)

    def young(self, now_s: float) -> bool:
        """Whether its window is still in the stream."""
        return self.opened_s is not None and now_s - self.opened_s <= YOUNG_S

    def update(self, finding: Finding, now_s: float) -> None:
        """Take a change of it."""
        self.finding, self.updated_s, self.complete_s = finding, now_s, None

    def end(self, finding: Finding, now_s: float) -> None:
        """Take its end."""
        self.update(finding, now_s)
        self.complete_s = now_s + AROUND_S
        self.due_s = now_s

    def observed(self, now_s: float) -> Finding:
        """Return the open finding as last observed now."""
        passed_ns = round((now_s - self.updated_s) * NS_PER_SECOND)
        return replace(self.finding, last_observed_ns=self.finding.last_observed_ns + passed_ns)

    def stepped(self, now_s: float) -> None:
        """Plan the next step."""
        self.due_s = now_s + STEP_S
        if self.complete_s is not None:
            # not earlier: one step reads the whole minute
            self.due_s = max(self.complete_s, now_s + 1.0)

    def late(self, now_s: float) -> bool:
        """Whether what did not come by now does not come any more."""
        return self.complete_s is not None and now_s >= self.complete_s + SILENT_S


class Follows:
    """All of them, by the id of the finding."""

    def __init__(self) -> None:
        self._follows: dict[str, Follow] = {}
        self.refused = 0

    def get(self, name: str) -> Follow | None:
        """Return one of them."""
        return self._follows.get(name)

    def update(self, update: FindingUpdate, now_s: float) -> None:
        """Take an update of a finding; a rule on the configuration has no samples.

        Over the limit of ``MOST_FOLLOWED`` it is ``refused``.
        """
        finding, change = update.finding, update.change
        is_new = change not in (FindingChange.SUSPECTED, FindingChange.VERIFIED)
        if not is_new or finding.kind is FindingKind.CONFIGURATION:
            return
        follow = self._follows.get(finding.id)
        if follow is None:
            if finding.state is State.OPEN:
                opened_s = now_s if change is FindingChange.OPENED else None
                self._add(Follow(finding, now_s + FIRST_S, now_s, opened_s))
        elif finding.state is State.RESOLVED:
            follow.end(finding, now_s)
        else:
            follow.update(finding, now_s)

    def resume(self, finding: Finding, now_s: float) -> None:
        """Follow a finding that another analyzer followed until its end."""
        if finding.id not in self._follows:
            follow = Follow(finding, now_s, now_s, kept=True, announced=True)
            follow.end(finding, now_s)
            self._add(follow)

    def forget(self, node: str) -> None:
        """Forget the findings of a node that another analyzer reads."""
        self._forget(lambda finding: _is_of(finding, node))

    def forget_cross_node(self) -> None:
        """Forget the findings across nodes: another analyzer compares the nodes."""
        self._forget(is_cross_node)

    def lose(self, node: str, now_s: float) -> None:
        """Take the last observation of a node's open findings as their end."""
        for follow in self._follows.values():
            finding = follow.finding
            if _is_of(finding, node) and finding.state is State.OPEN:
                follow.end(replace(finding, state=State.RESOLVED), now_s)

    def complete(self, name: str) -> None:
        """Forget a finding whose samples are complete."""
        self._follows.pop(name, None)

    def due(self, now_s: float) -> Follow | None:
        """Return the finding that is due for longest, new ones first; None if nothing is due."""
        due = (each for each in self._follows.values() if each.due_s <= now_s)
        return min(due, key=lambda each: (each.kept, each.due_s), default=None)

    def newly_kept(self, now_s: float) -> list[Finding]:
        """Return the open findings that are kept since the last call."""
        fresh = [each for each in self._follows.values() if each.kept and not each.announced]
        for each in fresh:
            each.announced = True
        return [each.observed(now_s) for each in fresh if each.finding.state is State.OPEN]

    def _forget(self, is_gone: Callable[[Finding], bool]) -> None:
        gone = [name for name, each in self._follows.items() if is_gone(each.finding)]
        for name in gone:
            del self._follows[name]

    def _add(self, follow: Follow) -> None:
        if len(self._follows) >= MOST_FOLLOWED:
            self.refused += 1
            return
        self._follows[follow.finding.id] = follow


def is_cross_node(finding: Finding) -> bool:
    """Return whether a finding is that of the analyzer that compares the nodes."""
    return finding.scope.is_across_nodes


def _is_of(finding: Finding, node: str) -> bool:
    """Return whether a finding is that of the analyzer that reads this node."""
    return finding.node_name == node and not is_cross_node(finding)
