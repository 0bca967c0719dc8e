"""One set of columns made comparable: quanta, weights and votes, on a node of this size."""

from __future__ import annotations

from copy import copy

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import quanta
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import MetricGroups
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.weights import Votes, harm_weights
from reveal_contract.metric import Subsystem

_MEMORY_UNKNOWN = 16 << 30  # bytes


class Weighing:
    """How values of a second's columns are seen, weighed and pooled."""

    def __init__(self, second: Second, settings: LiveSettings) -> None:
        columns = second.plan.columns
        memory, self.cpus = _capacity(second)
        self._quantum = quanta(columns, memory, self.cpus)
        self.weights = harm_weights(columns, settings)
        self._votes = Votes(columns, settings.top)

    def only(self, places: Indices) -> Weighing:
        """Of these columns alone; the others' votes are those of columns within their past."""
        made = copy(self)
        made._quantum, made.weights = self._quantum[places], self.weights[:, places]
        made._votes = self._votes.only(places)
        return made

    def seen(self, values: Floats) -> Floats:
        """Linear below what matters, logarithmic above."""
        seen: Floats = np.arcsinh(values / self._quantum)
        return seen

    @property
    def families(self) -> MetricGroups:
        """Which columns are pooled."""
        return self._votes.families

    def base_units(self, seen: Floats32) -> Floats:
        """The values that are seen so."""
        values: Floats = np.sinh(seen.astype(np.float64)) * self._quantum
        return values

    def shown(self, excess: Floats32) -> Floats32:
        """Excess (2, columns) weighed by harm and direction; activity never passes a cut."""
        return live.weigh(excess, self.weights)

    def means(self, shown: Floats32) -> Floats:
        """Of every subsystem the mean of its worst families."""
        return live.subsystem_means(shown, self.families)

    def scores(self, shown: Floats32) -> dict[Subsystem, float]:
        """The same by subsystem."""
        return self._votes.scores(shown)


def _capacity(second: Second) -> tuple[float, int]:
    """Bytes of memory and number of CPUs, from the channels themselves.

    Large hosts have no channel for each CPU; recordings of older collectors no ``cpu.online``.
    """
    names = second.plan.channels
    levels = {
        c.metric: float(second.channels[at])
        for at, c in enumerate(names)
        if c.metric in ("memory.mem_total", "cpu.online")
    }
    memory, online = levels.get("memory.mem_total", 0.0), levels.get("cpu.online", 0.0)
    counted = sum(1 for c in names if c.metric == "cpu.user" and c.instance)
    cpus = int(online) if online > 0 else max(counted, 1)
    return memory if memory > 0 else float(_MEMORY_UNKNOWN), cpus
