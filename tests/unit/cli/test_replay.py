"""What a pass over a recording counts."""

from reveal_cli.replay import Replay
from support.redis_streams import TABLE, message


def test_slices_missing_between_others_are_counted_as_lost() -> None:
    replay = Replay()
    for sequence in (7, 8, 11, 12):
        replay.count(message("n", sequence), TABLE)
    channels = len(TABLE.fast) + len(TABLE.slow)
    assert (replay.slices, replay.lost, replay.channels) == (4, 2, channels)
