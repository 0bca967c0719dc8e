"""What lives is set aside; what was let go is found all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from reveal_analyzer.garbage import ASIDE_SECONDS, FULL_SECONDS, Garbage


class Node:
    """Knows itself, as a node's analysis does."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_lives_is_not_looked_at_again() -> None:
    garbage, node = Garbage(), Node()
    garbage.turn(0.0)
    assert gc.get_freeze_count() > 0
    assert not any(one is node for one in gc.get_objects())
    before = gc.get_freeze_count()
    later = [Node() for _ in range(100)]
    garbage.turn(ASIDE_SECONDS / 2)
    assert gc.get_freeze_count() <= before
    garbage.turn(ASIDE_SECONDS)
    assert not any(one is later[0] for one in gc.get_objects())


def test_nodes_that_were_let_go_are_freed_once_somebody_says_so() -> None:
    garbage, node = Garbage(), Node()
    garbage.turn(0.0)
    gone = weakref.ref(node)
    del node
    garbage.turn(ASIDE_SECONDS)
    assert gone() is not None
    garbage.dropped()
    garbage.turn(2 * ASIDE_SECONDS)
    assert gone() is None


def test_everything_is_looked_at_every_five_minutes_at_most() -> None:
    garbage = Garbage()
    garbage.dropped()
    garbage.turn(0.0)
    node = Node()
    garbage.turn(ASIDE_SECONDS)
    gone = weakref.ref(node)
    del node
    garbage.dropped()
    garbage.turn(2 * ASIDE_SECONDS)
    assert gone() is not None
    garbage.turn(FULL_SECONDS)
    assert gone() is None
