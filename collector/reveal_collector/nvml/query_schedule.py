"""Queries of one GPU or MIG instance: when each is due, and its last values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reveal_collector.nvml import library
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.metric_queries import Query
from reveal_collector.nvml.query_budget import QUICK_NS, Key, QueryBudget
from reveal_collector.nvml.snapshots import STALE_NS
from reveal_contract.catalogue import find
from reveal_contract.metric import Lane

Clock = Callable[[], int]
# After so many failures in a row, whatever their codes, the GPU counts as lost.
_MAX_FAILURES = 12


class QuerySchedule:
    """The queries of one handle.

    ``values`` holds the last answer by metric, ``None`` after a failure and where the next answer
    is overdue (``expire``); ``quick`` are the metrics of the fast lane.  A lost GPU gets no queries
    any more.  When it answers again, a new schedule replaces this one.
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
    def periods(self) -> Iterator[tuple[Key, int]]:
        """The queries and their desired periods, for the budget."""
        for query in self._queries:
            yield (self.instance, query.name), query.period_ns

    def due(self, now_ns: int, quick: bool) -> Iterator[Query]:
        """Yield the queries that are due: those of every tick, or all others."""
        if self.lost:
            return
        for query in self._queries:
            if (query.period_ns == QUICK_NS) is quick and now_ns >= self._due[query.name]:
                yield query

    def send(self, nvml: Library, query: Query, budget: QueryBudget, clock: Clock) -> int:
        """Send one query, keep its values, and return the time it took in ns.

        Raises ``NVMLError`` if the whole driver is gone.
        """
        began = clock()
        try:
            values = query.read(nvml, self._handle)
        except nvml.NVMLError as error:
            self.values |= dict.fromkeys(query.metrics)
            self._note_failure(error.value)
            if library.is_driver_gone(error.value):
                raise
        else:
            self.values |= zip(query.metrics, values, strict=True)
            self._failures = 0
        spent = clock() - began
        budget.record((self.instance, query.name), spent)
        self._plan(query, began, budget.period_ns((self.instance, query.name)))
        return spent

    def expire(self, now_ns: int) -> None:
        """Drop the answers of overdue queries: rounds that take long leave no time for them."""
        for query in self._queries:
            if now_ns - self._due[query.name] > STALE_NS:
                self.values |= dict.fromkeys(query.metrics)

    def mark_lost(self) -> None:
        """Mark the GPU as lost: all its values are unknown."""
        self.lost = True
        self.values = dict.fromkeys(self.values)

    def _note_failure(self, code: int) -> None:
        self._failures += 1
        if library.is_gpu_lost(code) or self._failures >= _MAX_FAILURES:
            self.mark_lost()

    def _plan(self, query: Query, now_ns: int, period_ns: int) -> None:
        due = self._due[query.name]
        # After the first call, spread the slow queries over their period.
        if due == 0 and period_ns > QUICK_NS:
            index = self._queries.index(query)
            self._due[query.name] = now_ns + period_ns + period_ns * index // len(self._queries)
            return
        # Keep the grid of the period; after a long delay, skip the missed calls.
        self._due[query.name] = max(due + period_ns, now_ns + period_ns // 2)
