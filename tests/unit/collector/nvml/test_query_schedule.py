"""The queries of one GPU: answers that are overdue are missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from reveal_collector.nvml.metric_queries import Query
from reveal_collector.nvml.query_budget import SLOW_NS, QueryBudget
from reveal_collector.nvml.query_schedule import QuerySchedule
from reveal_collector.nvml.snapshots import STALE_NS

NVML: Any = SimpleNamespace(NVMLError=OSError)
NOW = 1_000_000_000_000


def test_an_answer_is_missing_once_the_next_answer_is_overdue() -> None:
    query = Query("temperature", ("gpu.temperature",), SLOW_NS, lambda nvml, handle: (55,))
    schedule = QuerySchedule("0", object(), [query])
    budget = QueryBudget()
    budget.set_queries(schedule.periods)
    schedule.send(NVML, query, budget, lambda: NOW)
    schedule.expire(NOW + SLOW_NS + STALE_NS)
    assert schedule.values == {"gpu.temperature": 55}
    schedule.expire(NOW + SLOW_NS + STALE_NS + 1)
    assert schedule.values == {"gpu.temperature": None}
    schedule.send(NVML, query, budget, lambda: NOW + 10 * SLOW_NS)
    assert schedule.values == {"gpu.temperature": 55}
