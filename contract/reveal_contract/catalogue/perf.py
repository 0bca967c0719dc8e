"""Catalogue rows: software events and tracepoints counted through perf_event_open."""

from __future__ import annotations

from collections.abc import Callable

from reveal_contract.metric import Metric

ROWS: tuple[Metric, ...] = ()
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
