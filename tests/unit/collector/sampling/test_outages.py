"""What the status says of sources that do not answer."""

from __future__ import annotations

import re
import time

from reveal_collector.readers.source import HUNG_NS, Outage
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.outages import OutageTexts
from reveal_contract.metric import Lane

NOW = time.monotonic_ns()


class Silent:
    """A source of a driver that hangs since the time given, or answers (0)."""

    lane, channels = Lane.SLOW, ()

    def __init__(self, name: str, since_ns: int, reason: str = "", driver: str = "") -> None:
        self.name, self._since_ns, self._reason = name, since_ns, reason
        if driver:
            self.driver = driver

    def outage(self) -> Outage | None:
        if not self._since_ns:
            return None
        return Outage(self._since_ns, self._reason) if self._reason else Outage(self._since_ns)

    def open(self) -> None: ...

    def read(self) -> tuple[int, ...]:
        return ()

    def close(self) -> None: ...


def test_a_source_that_hangs_is_failing_with_the_time_of_day_of_its_begin() -> None:
    texts = OutageTexts()
    [failing] = texts.failing([Feed(Silent("hangs", NOW - HUNG_NS)), Feed(Silent("answers", 0))])
    assert re.fullmatch(r"hangs: has not answered since \d\d:\d\d:\d\dZ", str(failing))
    [again] = texts.failing([Feed(Silent("hangs", NOW - HUNG_NS))])
    assert again == failing


def test_a_moment_without_an_answer_is_no_outage() -> None:
    assert not OutageTexts().failing([Feed(Silent("slow", time.monotonic_ns()))])


def test_an_outage_has_the_reason_of_its_source() -> None:
    [failing] = OutageTexts().failing([Feed(Silent("nvml", NOW - HUNG_NS, "the driver is gone"))])
    assert failing.reason.startswith("the driver is gone since ")


def test_the_sources_of_a_driver_fail_together_and_are_stated_once() -> None:
    feeds = [Feed(Silent(name, NOW - HUNG_NS, driver="nvml")) for name in ("nvml", "nvml-state")]
    [failing] = OutageTexts().failing(feeds)
    assert failing.source == "nvml"


def test_a_broken_source_is_failing_and_an_absent_source_is_not() -> None:
    broken = Feed(Silent("broken", 0))
    broken.broken = True
    found = OutageTexts().failing([broken, Feed(Silent("absent", 0), absent=True)])
    assert list(map(str, found)) == ["broken: cannot be read, retrying"]


def test_a_thread_whose_work_does_not_end_is_failing() -> None:
    texts = OutageTexts()
    assert not texts.of_thread("facts", 0)
    assert not texts.of_thread("facts", time.monotonic_ns())
    [failing] = texts.of_thread("facts", time.monotonic_ns() - HUNG_NS)
    assert str(failing).startswith("facts: has not answered since ")
