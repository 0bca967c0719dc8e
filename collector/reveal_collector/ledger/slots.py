"""Which subject counts in which slot, and which of them have an index of the matrix.

A slot, or an index, rests before another subject gets it: threads that waited or ran with it when
it was taken away have left it by then, so all that is counted in it later belongs to its new owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from reveal_collector.ledger.programs import BUSY, SLOT_FIRST, SLOT_OTHER, SLOTS
from reveal_collector.subjects.stable_selection import StableSelection

_REST_S = 3.0
_MARGIN = 0.02  # CPUs that a subject must use more than another to replace it in the matrix


@dataclass(frozen=True, slots=True)
class Slot:
    """The slot of a subject; ``busy`` is its index of the matrix, ``SLOT_OTHER`` without one."""

    name: str
    number: int
    busy: int
    keys: frozenset[int]

    @property
    def has_index(self) -> bool:
        """Whether the culprits of its waits are known."""
        return self.busy != SLOT_OTHER


@dataclass(frozen=True)
class Changes:
    """What to write to the map of subjects."""

    named: dict[int, tuple[int, int]] = field(default_factory=dict)  # key: slot and index
    forgotten: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.named or self.forgotten)


class _Numbers:
    """Numbers that are given out, the lowest first, and rest when they come back."""

    def __init__(self, count: int) -> None:
        self._free = set(range(SLOT_FIRST, count))
        self._resting: dict[int, float] = {}
        self.extent = SLOT_FIRST  # all that ever were in use are below

    def take(self, now: float) -> int | None:
        for number, since in list(self._resting.items()):
            if now - since >= _REST_S:
                del self._resting[number]
                self._free.add(number)
        if not self._free:
            return None
        number = min(self._free)
        self._free.remove(number)
        self.extent = max(self.extent, number + 1)
        return number

    def give_back(self, number: int, now: float) -> None:
        self._resting[number] = now


class SlotTable:
    """The slots; ``current`` is replaced as a whole, so that another thread may read it."""

    def __init__(self) -> None:
        self.current: tuple[Slot, ...] = ()
        self.refused: frozenset[str] = frozenset()  # of the last update: there was no slot
        self._slots, self._indices = _Numbers(SLOTS), _Numbers(BUSY)
        self._selection: StableSelection[str] = StableSelection(
            BUSY - SLOT_FIRST, _MARGIN, name=str
        )
        self._written: dict[int, tuple[int, int]] = {}

    @property
    def extent(self) -> tuple[int, int]:
        """The slots and the indices that are in use are below these."""
        return self._slots.extent, self._indices.extent

    def update(
        self,
        subjects: Mapping[str, frozenset[int]],
        uses: Mapping[str, float],
        occupied: Set[int],
        now: float,
    ) -> Changes:
        """Give slots to these subjects, by name with their keys, and return what to write.

        ``uses`` are the CPUs that each one used or waited for.  A subject that is gone keeps its
        slot while it is ``occupied``: has threads or requests.
        """
        slots = {slot.name: slot for slot in self.current}
        for name in slots.keys() - subjects.keys():
            slot = slots[name]
            if slot.number not in occupied:
                del slots[name]
                self._slots.give_back(slot.number, now)
                self._leave_matrix(slot, now)
        self.refused = frozenset(self._add(slots, subjects, now))
        for name in slots.keys() & subjects.keys():
            if slots[name].keys != subjects[name]:
                slots[name] = replace(slots[name], keys=subjects[name])
        self._choose_busy(slots, uses, now)
        self.current = tuple(slots.values())
        return self._changes()

    def _add(
        self, slots: dict[str, Slot], subjects: Mapping[str, frozenset[int]], now: float
    ) -> Iterable[str]:
        """Add the new subjects in their order; yield those that there is no slot for."""
        for name in subjects:
            if name in slots:
                continue
            slot = self._slots.take(now)
            if slot is None:
                yield name
            else:
                slots[name] = Slot(name, slot, SLOT_OTHER, subjects[name])

    def _choose_busy(self, slots: dict[str, Slot], uses: Mapping[str, float], now: float) -> None:
        chosen = self._selection.update({name: uses.get(name, 0.0) for name in slots}, now)
        for name, slot in slots.items():
            if slot.has_index and name not in chosen:
                self._leave_matrix(slot, now)
                slots[name] = replace(slot, busy=SLOT_OTHER)
        for name in sorted(chosen):
            if not slots[name].has_index and (index := self._indices.take(now)) is not None:
                slots[name] = replace(slots[name], busy=index)

    def _leave_matrix(self, slot: Slot, now: float) -> None:
        if slot.has_index:
            self._indices.give_back(slot.busy, now)

    def _changes(self) -> Changes:
        desired = {key: (slot.number, slot.busy) for slot in self.current for key in slot.keys}
        named = {key: value for key, value in desired.items() if self._written.get(key) != value}
        forgotten = frozenset(self._written.keys() - desired.keys())
        self._written = desired
        return Changes(named, forgotten)
