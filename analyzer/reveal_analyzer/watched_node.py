"""A node as the loop of an analyzer watches it, and what the loop needs of its analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_analyzer.fleet.minute import MinuteRecorder
from reveal_analyzer.gangs.recorder import RankRecorder
from reveal_analyzer.state.codec import Position
from reveal_analyzer.state.tree import StateTree, section
from reveal_analyzer.verification.fact_changes import fact_changes
from reveal_contract.channels import ChannelTable
from reveal_contract.facts import Facts
from reveal_contract.finding import FindingUpdate
from reveal_contract.wire import Message


class Analysis(Protocol):
    """The analysis of one node; ``analyze`` takes its slices in order."""

    @property
    def minutes(self) -> MinuteRecorder:
        """Its finished minutes, for the comparison of nodes."""

    @property
    def ranks(self) -> RankRecorder:
        """The windows of its busy subjects, for the comparison of ranks."""

    @property
    def learning(self) -> bool:
        """Whether the node is in warm-up."""

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> Sequence[FindingUpdate]:
        """Analyze one slice; a ``silent`` one only fills the windows."""

    def note_changes(self, changes: Sequence[str]) -> None:
        """Note facts of the node that changed lately."""

    def finish(self) -> Sequence[FindingUpdate]:
        """Return the last state of each open finding."""

    def save(self) -> StateTree:
        """Return what was learned."""

    def restore(self, tree: StateTree) -> None:
        """Continue with what was learned; raises ``StateError``."""


@dataclass
class WatchedNode:
    """A node whose slices an analyzer receives; times are seconds of the monotonic clock."""

    analysis: Analysis
    last_slice_s: float
    since_s: float
    save_due_s: float
    position: Position | None = None  # its last slice
    lost: bool = False  # it is silent, and its findings were given up
    replaying: bool = False  # what is open was reported by another analyzer, not yet by this one
    configuration: ConfigurationTracker = field(default_factory=ConfigurationTracker)
    facts: Facts | None = None  # the last ones

    def take_facts(self, facts: Facts, time_ns: int) -> list[FindingUpdate]:
        """Evaluate the rules on new facts; what changed in them may help a job, or slow it."""
        before, self.facts = self.facts, facts
        if before is not None:
            self.analysis.note_changes(fact_changes(before, facts))
        return self.configuration.update(facts, time_ns)

    def save(self) -> StateTree:
        return {**self.analysis.save(), "configuration": self.configuration.save()}

    def restore(self, tree: StateTree) -> None:
        self.analysis.restore(tree)
        if "configuration" in tree:
            self.configuration.restore(section(tree, "configuration"))
