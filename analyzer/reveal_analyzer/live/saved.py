"""What the live score saves, checked, until the first second after a restart needs it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Floats32
from reveal_analyzer.live.constant_columns import SavedColumns
from reveal_analyzer.live.learner import Learner
from reveal_analyzer.live.packing import unpack
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.views import SustainedViews
from reveal_analyzer.state.tree import StateTree, array, finite_array, integer, section


@dataclass(frozen=True)
class SavedScore:
    """A restored learner, in the columns of the saved table, and the tree that it comes from."""

    tree: StateTree
    age: int
    columns: SavedColumns
    learner: Learner
    recent: Floats32  # (seconds, columns): scaled values of the last seconds

    @classmethod
    def of(cls, tree: StateTree, settings: LiveSettings) -> SavedScore:
        """Return what a tree holds; raises ``StateError``."""
        columns = SavedColumns.of(section(tree, "columns"))
        active = len(columns.active)
        learner = Learner(settings)
        learner.load(section(tree, "learned"), len(columns.labels), active)
        middle = finite_array(tree, "middle", np.float32, (active,))
        recent = unpack(array(tree, "recent", np.int16, (None, active)), middle)
        return cls(tree, integer(tree, "age"), columns, learner, recent)

    def without_recent(self) -> SavedScore:
        """Return the same without the last seconds, as no view may span a gap."""
        recent = array(self.tree, "recent", np.int16, (None, None))
        tree = {**self.tree, "recent": recent[:0]}
        return replace(self, tree=tree, recent=self.recent[:0])

    def views(self, settings: LiveSettings) -> SustainedViews:
        """Return the views that go on from the last seconds."""
        views = SustainedViews(settings.views)
        for values in self.recent:
            views.push(values.astype(np.float64))
        return views
