"""The clock of the API server, as its responses tell it."""

from __future__ import annotations

from reveal_contract.kube.transport import ServerClock

DATE = "Thu, 01 Jan 1970 01:00:00 GMT"


def test_the_time_is_that_of_the_latest_response_and_what_passed_since() -> None:
    monotonic = 50.0
    clock = ServerClock(now=lambda: 7.0, monotonic=lambda: monotonic)
    assert clock.now() == 7.0  # nothing was heard of the server
    clock.update(DATE)
    monotonic += 30.0
    assert clock.now() == 3630.0
    for nonsense in ("", "soon", "Thu, 99 Jan 1970 01:00:00 GMT"):
        clock.update(nonsense)
    assert clock.now() == 3630.0
