"""Channel tables stay in the cache while they are used."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.stream import channel_tables
from reveal_analyzer.stream.channel_tables import UNUSED_SECONDS, ChannelTables
from reveal_contract.channels import Channel, ChannelTable
from support.fake_clock import FakeClock

TABLES = [ChannelTable((Channel("cpu.user", str(cpu)),), ()) for cpu in range(3)]


class Catalogue:
    """The tables that collectors announced."""

    def hmget(self, _: str, keys: list[str]) -> list[str | None]:
        announced = {table.key.hex(): table.to_json() for table in TABLES}
        return [announced.get(key) for key in keys]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    result = FakeClock()
    monkeypatch.setattr(channel_tables.time, "monotonic", result)
    return result


def test_a_table_that_nobody_uses_is_forgotten_and_fetched_again(clock: FakeClock) -> None:
    known, client = ChannelTables(), Catalogue()
    first, second, third = (table.key for table in TABLES)

    def fetch(key: bytes) -> Any:
        return known.fetch(client, [key])  # type: ignore[arg-type]

    assert fetch(first) and fetch(second)
    for _ in range(4):
        clock.now += UNUSED_SECONDS / 3
        assert known.get(second) is not None
    assert fetch(third)
    assert known.get(first) is None
    assert known.get(second) is not None
    assert fetch(first)
    assert known.get(first) is not None
