"""Slots and indices: given out, kept while occupied, and rested before the next subject."""

from __future__ import annotations

from reveal_collector.ledger.programs import BUSY, SLOT_FIRST, SLOT_OTHER, SLOTS
from reveal_collector.ledger.slots import SlotTable

NOBODY: frozenset[int] = frozenset()


def keys(*names: str) -> dict[str, frozenset[int]]:
    return {name: frozenset({hash(name) & 0xFFFF}) for name in names}


def test_a_subject_gets_a_slot_and_an_index() -> None:
    table = SlotTable()
    changes = table.update(keys("a", "b"), {}, NOBODY, 0.0)
    assert [(each.name, each.number, each.busy) for each in table.current] == [
        ("a", SLOT_FIRST, SLOT_FIRST), ("b", SLOT_FIRST + 1, SLOT_FIRST + 1),
    ]  # fmt: skip
    assert sorted(changes.named.values()) == [(3, 3), (4, 4)]
    assert table.extent == (SLOT_FIRST + 2, SLOT_FIRST + 2)


def test_nothing_is_written_when_nothing_changes() -> None:
    table = SlotTable()
    table.update(keys("a"), {}, NOBODY, 0.0)
    assert not table.update(keys("a"), {"a": 1.0}, {SLOT_FIRST}, 1.0)


def test_a_subject_that_is_gone_keeps_its_slot_while_it_has_threads() -> None:
    table = SlotTable()
    table.update(keys("a"), {}, NOBODY, 0.0)
    table.update({}, {}, frozenset({SLOT_FIRST}), 1.0)
    assert [each.name for each in table.current] == ["a"]
    changes = table.update({}, {}, NOBODY, 2.0)
    assert table.current == ()
    assert changes.forgotten == keys("a")["a"]


def test_a_slot_rests_before_another_subject_gets_it() -> None:
    table = SlotTable()
    table.update(keys("a"), {}, NOBODY, 0.0)
    table.update({}, {}, NOBODY, 1.0)
    table.update(keys("b"), {}, NOBODY, 1.5)
    table.update(keys("b", "c"), {}, NOBODY, 9.0)
    assert {each.name: each.number for each in table.current} == {
        "b": SLOT_FIRST + 1, "c": SLOT_FIRST,
    }  # fmt: skip


def test_subjects_beyond_all_slots_are_refused_and_come_in_later() -> None:
    table = SlotTable()
    names = [f"{n:03}" for n in range(SLOTS)]
    table.update(keys(*names), {}, NOBODY, 0.0)
    assert len(table.current) == SLOTS - SLOT_FIRST
    assert len(table.refused) == SLOT_FIRST
    kept = names[5:]
    table.update(keys(*kept), {}, NOBODY, 1.0)
    table.update(keys(*kept), {}, NOBODY, 9.0)
    assert {each.name for each in table.current} == set(kept)
    assert table.refused == NOBODY


def test_the_busiest_have_the_indices_of_the_matrix() -> None:
    table = SlotTable()
    names = [f"{n:03}" for n in range(100)]
    uses = {name: (0.9 if name >= "040" else 0.0) for name in names}
    table.update(keys(*names), uses, NOBODY, 0.0)
    indexed = {each.name for each in table.current if each.has_index}
    assert len(indexed) == BUSY - SLOT_FIRST
    assert indexed > {name for name in names if name >= "040"}


def test_a_hog_replaces_an_idle_subject_in_the_matrix_after_a_rest() -> None:
    table = SlotTable()
    names = [f"{n:03}" for n in range(BUSY - SLOT_FIRST)]
    table.update(keys(*names), dict.fromkeys(names, 0.01), NOBODY, 0.0)
    everybody = keys(*names, "hog")
    index: list[int] = []
    for second in range(1, 20):
        table.update(everybody, dict.fromkeys(names, 0.01) | {"hog": 2.0}, NOBODY, float(second))
        index.append(next(each.busy for each in table.current if each.name == "hog"))
    waited = index.index(max(index))
    assert SLOT_OTHER in index[:waited]
    assert index[-1] >= SLOT_FIRST
    indices = [each.busy for each in table.current if each.has_index]
    assert len(indices) == len(set(indices)) == BUSY - SLOT_FIRST


def test_other_keys_of_a_subject_are_written() -> None:
    table = SlotTable()
    table.update({"pod": frozenset({1})}, {}, NOBODY, 0.0)
    changes = table.update({"pod": frozenset({1, 2})}, {}, NOBODY, 1.0)
    assert changes.named == {2: (SLOT_FIRST, SLOT_FIRST)}
