"""What lives is set aside; what was let go is found all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from reveal_analyzer.gc_control import DROPPED_SECONDS, FULL_SECONDS, GarbageControl

MOMENT = 0.1  # seconds


class Node:
    """Knows itself, as a node's analysis does."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def garbage() -> Iterator[GarbageControl]:
    made = GarbageControl(0.0)
    yield made
    made.close()


def test_what_lives_is_not_looked_at_again(garbage: GarbageControl) -> None:
    node = Node()
    garbage.collect_when_due(0.0)
    assert gc.get_freeze_count() > 0
    assert not any(one is node for one in gc.get_objects())
    later, gone = Node(), weakref.ref(Node())
    assert gone() is not None
    garbage.freeze_survivors()
    assert not any(one is later for one in gc.get_objects())
    assert gone() is None


def test_nodes_that_were_let_go_are_freed_once_somebody_says_so(garbage: GarbageControl) -> None:
    node = Node()
    garbage.collect_when_due(0.0)
    gone = weakref.ref(node)
    del node
    garbage.collect_when_due(DROPPED_SECONDS)
    assert gone() is not None
    garbage.note_dropped()
    garbage.collect_when_due(DROPPED_SECONDS + MOMENT)
    assert gone() is None


def test_what_was_in_use_when_it_was_set_aside_is_found_once_an_hour(
    garbage: GarbageControl,
) -> None:
    node = Node()
    garbage.collect_when_due(0.0)
    gone = weakref.ref(node)
    del node
    garbage.collect_when_due(FULL_SECONDS - MOMENT)
    assert gone() is not None
    garbage.collect_when_due(FULL_SECONDS)
    assert gone() is None


def test_python_looks_by_itself_again_afterwards() -> None:
    usual = 700, 10, 10
    gc.set_threshold(*usual)
    garbage = GarbageControl(0.0)
    garbage.collect_when_due(0.0)
    assert gc.get_threshold() != usual
    garbage.close()
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() == 0


def test_everything_is_looked_at_every_five_minutes_at_most(garbage: GarbageControl) -> None:
    garbage.note_dropped()
    garbage.collect_when_due(DROPPED_SECONDS)
    node = Node()
    garbage.collect_when_due(DROPPED_SECONDS + MOMENT)
    gone = weakref.ref(node)
    del node
    garbage.note_dropped()
    garbage.collect_when_due(2 * DROPPED_SECONDS - MOMENT)
    assert gone() is not None
    garbage.collect_when_due(2 * DROPPED_SECONDS)
    assert gone() is None
