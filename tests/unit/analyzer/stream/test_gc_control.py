"""Living objects are frozen; released ones are still collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from reveal_analyzer.stream.gc_control import DROPPED_SECONDS, FULL_SECONDS, GarbageControl

MOMENT = 0.1  # seconds


class Node:
    """Knows itself, as a node's analysis does."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def garbage() -> Iterator[GarbageControl]:
    control = GarbageControl(0.0)
    yield control
    control.close()


def test_living_objects_are_not_scanned_again(garbage: GarbageControl) -> None:
    node = Node()
    garbage.collect_when_due(0.0)
    assert gc.get_freeze_count() > 0
    assert not any(each is node for each in gc.get_objects())
    later, gone = Node(), weakref.ref(Node())
    assert gone() is not None
    garbage.freeze_survivors()
    assert not any(each is later for each in gc.get_objects())
    assert gone() is None


def test_released_nodes_are_freed_on_request(garbage: GarbageControl) -> None:
    node = Node()
    garbage.collect_when_due(0.0)
    gone = weakref.ref(node)
    del node
    garbage.collect_when_due(DROPPED_SECONDS)
    assert gone() is not None
    garbage.note_dropped()
    garbage.collect_when_due(DROPPED_SECONDS + MOMENT)
    assert gone() is None


def test_frozen_garbage_is_collected_once_an_hour(
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


def test_automatic_collection_is_restored_afterwards() -> None:
    previous = 700, 10, 10
    gc.set_threshold(*previous)
    garbage = GarbageControl(0.0)
    garbage.collect_when_due(0.0)
    assert gc.get_threshold() != previous
    garbage.close()
    assert gc.get_threshold() == previous
    assert gc.get_freeze_count() == 0


def test_a_full_collection_runs_no_more_than_every_five_minutes(garbage: GarbageControl) -> None:
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
