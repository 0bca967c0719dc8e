"""Nodes are watched as long as somebody looks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from reveal_analyzer.node import Announced
from reveal_cli.errors import CliError
from reveal_cli.node_stream import Slice
from reveal_cli.ui import live_watches as module
from reveal_cli.ui.live_watches import IDLE_S, MOST_WATCHED, LiveWatches
from support.evidence_samples import slices
from support.fake_clock import FakeClock
from support.polling import wait_until


class ListedStream:
    """A stream with a minute of a node; ``problem`` is raised by reading it."""

    def __init__(self, node: str, problem: Exception | None = None) -> None:
        self.node, self.problem, self.closed = node, problem, False

    def since(self, start_ns: int) -> list[Slice]:
        if self.problem is not None:
            raise self.problem
        return [each for each in slices(60) if each[0].start_ns > start_ns]

    def announced(self) -> Announced:
        return Announced()

    def state(self) -> dict[str, Any]:
        return {}

    def why_empty(self) -> CliError:
        return CliError("nothing")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened() -> list[ListedStream]:
    return []


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watches(
    opened: list[ListedStream], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveWatches]:
    def open_stream(node: str) -> ListedStream:
        opened.append(ListedStream(node))
        return opened[-1]

    monkeypatch.setattr("reveal_cli.stream_session._POLL_S", 0.01)
    found = LiveWatches(open_stream, clock)
    yield found
    found.close()


def test_looks_share_a_stream(watches: LiveWatches, opened: list[ListedStream]) -> None:
    assert [watches.view("n1").slices for _ in range(3)] == [60] * 3
    assert watches.view("n2").node == "n2"
    assert [stream.node for stream in opened] == ["n1", "n2"]


def test_without_looks_a_watch_ends_and_begins_again(
    watches: LiveWatches, opened: list[ListedStream], clock: FakeClock
) -> None:
    watches.view("n1")
    clock.now += IDLE_S + 1
    wait_until(lambda: opened[0].closed)
    wait_until(lambda: watches.view("n1") and len(opened) == 2)


def test_too_many_nodes_are_refused(watches: LiveWatches) -> None:
    for number in range(MOST_WATCHED):
        watches.view(f"n{number}")
    with pytest.raises(CliError, match="are watched already"):
        watches.view("one-more")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [(CliError("the cluster is away"), "the cluster is away"), (ValueError("odd"), "ValueError")],
)
def test_what_cannot_be_watched_is_a_sentence(problem: Exception, sentence: str) -> None:
    watches = LiveWatches(lambda node: ListedStream(node, problem))
    for _ in range(2):
        with pytest.raises(CliError, match=sentence):
            watches.view("n1")


def test_a_stream_that_does_not_answer_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_S", 0.01)

    def slow(node: str) -> ListedStream:
        time.sleep(0.2)
        return ListedStream(node)

    with pytest.raises(CliError, match="has not answered"):
        LiveWatches(slow).view("n1")
