"""A few timelines through a real Redis and real analyzer processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from reveal_cli.broker import Broker
from scenario_detection import CLIPS
from scenariobench.analyzers import Checkout
from scenariobench.judge import judge
from scenariobench.library import Library
from scenariobench.player import Player
from scenariobench.rows import planned
from scenariobench.summary import Result, misses

TIMELINES = (
    "disturbed/gap-20s-loss_5",
    "two/same-memcg_thrash+hugepages-over-its-end",
    "analyzer/roll-open-hugepages",
)


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    folder = tmp_path_factory.mktemp("analyzers")
    with Broker() as broker:
        client = redis.Redis(unix_socket_path=str(broker.socket))
        playing = Player(client, broker.url, Path(folder), [Checkout.here()], start_s=2)
        yield playing
        playing.close()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("label", TIMELINES)
def test_a_timeline_is_reported_right(player: Player, label: str) -> None:
    plan = next(plan for plan in planned(Library(CLIPS)) if plan.label == label)
    timeline = plan.make()
    played = player.play(timeline)
    (heard,) = played.played
    result = Result.of(timeline, heard.checkout, judge(timeline, heard, played.values))
    assert result.right, "\n".join(misses([result], heard.checkout))
