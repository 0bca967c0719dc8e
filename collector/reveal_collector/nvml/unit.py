"""One GPU, or one MIG instance of it: its queries, when each is due, what each gave last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reveal_collector.nvml import library
from reveal_collector.nvml.budget import QUICK_NS, Budget, Key
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.queries import Query
from reveal_contract.catalogue import find
from reveal_contract.metric import Lane

Clock = Callable[[], int]
# calls that fail one after the other, whatever the code: as deaf as a GPU that is lost
_DEAF = 12


class Unit:
    """What is asked by one handle.

    ``values`` holds the last answer by metric, ``None`` where it failed; ``quick`` are those
    of the fast lane.  A lost unit is asked
    nothing: it is another one that begins when its GPU answers again.
    """

    def __init__(self, instance: str, handle: Handle, queries: Sequence[Query]) -> None:
        self.instance = instance
        self.lost = False
        self.values: dict[str, int | None] = {
            metric: None for query in queries for metric in query.metrics
        }
        lanes = {metric: find(metric).lane for metric in self.values}
        self.quick = [metric for metric, lane in lanes.items() if lane is Lane.FAST]
        self.others = [metric for metric, lane in lanes.items() if lane is not Lane.FAST]
        self._handle = handle
        self._queries = tuple(queries)
        self._due = dict.fromkeys((query.name for query in queries), 0)
        self._failures = 0

    @property
    def wanted(self) -> Iterator[tuple[Key, int]]:
        """The queries and their periods, for the budget."""
        for query in self._queries:
            yield (self.instance, query.name), query.period_ns

    def due(self, now_ns: int, quick: bool) -> Iterator[Query]:
        """The queries to make now: those asked every tick, or all others."""
        if self.lost:
            return
        for query in self._queries:
            if (query.period_ns == QUICK_NS) is quick and now_ns >= self._due[query.name]:
                yield query

    def ask(self, nvml: Library, query: Query, budget: Budget, clock: Clock) -> int:
        """Make one call and keep what it gives; the time it took (ns).

        Raises ``NVMLError`` where the driver as a whole is gone.
        """
        began = clock()
        try:
            values = query.ask(nvml, self._handle)
        except nvml.NVMLError as error:
            self.values |= dict.fromkeys(query.metrics)
            self._failed(error.value)
            if library.is_gone(error.value):
                raise
        else:
            self.values |= zip(query.metrics, values, strict=True)
            self._failures = 0
        spent = clock() - began
        budget.spent((self.instance, query.name), spent)
        self._plan(query, began, budget.period_ns((self.instance, query.name)))
        return spent

    def lose(self) -> None:
        """It does not answer: nothing is known of it any more."""
        self.lost = True
        self.values = dict.fromkeys(self.values)

    def _failed(self, code: int) -> None:
        self._failures += 1
        if library.is_lost(code) or self._failures >= _DEAF:
            self.lose()

    def _plan(self, query: Query, now_ns: int, period_ns: int) -> None:
        """On the grid of its period; the first time, queries are spread over it."""
        due = self._due[query.name]
        if due == 0 and period_ns > QUICK_NS:
            place = self._queries.index(query)
            self._due[query.name] = now_ns + period_ns + period_ns * place // len(self._queries)
            return
        self._due[query.name] = max(due + period_ns, now_ns + period_ns // 2)
