"""``/proc/loadavg``: load averages (updated every 5 s), and current ready and existing tasks."""

from __future__ import annotations

from reveal_collector.readers.plan import TextForm
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    Layout,
    LayoutList,
    TokenSource,
    channel,
    is_number,
)
from reveal_contract.metric import Lane

_FIELDS = (
    ("cpu.load.1m", 0.01), ("cpu.load.5m", 0.01), ("cpu.load.15m", 0.01),
    ("cpu.load.running", 1.0), ("cpu.load.tasks", 1.0),
)  # fmt: skip
_FORM = TextForm(blanks=b"/", deleted=b".")


def sources(roots: Roots) -> list[Source]:
    return [TokenSource("loadavg", Lane.SLOW, roots.proc / "loadavg", learn, form=_FORM)]


def learn(text: str) -> Layout:
    """Map ``3 15 9 2 90 7993``: hundredths, running, tasks; the last process id is not a metric."""
    tokens = text.split()[: len(_FIELDS)]
    layout: LayoutList = [
        (index, channel(metric, scale=scale))
        for index, ((metric, scale), token) in enumerate(zip(_FIELDS, tokens, strict=False))
        if is_number(token)
    ]
    return layout if len(layout) == len(_FIELDS) or not tokens else [*layout, (0, UNFIT)]
