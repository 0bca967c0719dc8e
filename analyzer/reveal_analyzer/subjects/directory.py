"""The subjects of a node as they are announced, and who was announced a while ago.

A collector that starts again, as after its node was lost, knows nobody who has gone meanwhile;
a finding that opened before has to name them until it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND

Subjects = Callable[[], Iterable[Identity]]
REMEMBERED_S = 150  # as long as what they did


def nobody() -> Iterable[Identity]:
    """No subject table is at hand."""
    return ()


class Acquainted:
    """Who is known by now, of those that were announced when somebody asked."""

    def __init__(self, subjects: Subjects = nobody) -> None:
        self._subjects = subjects
        self._known: dict[tuple[str, str], Identity] = {}

    def now(self, now_ns: int) -> tuple[Identity, ...]:
        """Those announced, and those that have gone without being said to have ended."""
        announced = {(one.instance, one.uid): one for one in self._subjects()}
        since_ns = now_ns - REMEMBERED_S * NS_PER_SECOND
        missing = {
            key: one if one.until_ns else replace(one, until_ns=now_ns)
            for key, one in self._known.items()
            if key not in announced and (not one.until_ns or one.until_ns > since_ns)
        }
        self._known = missing | announced
        return tuple(self._known.values())
