"""Facts of network cards: a speed that means "unknown" is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.facts.nics import NicSizes, nics
from reveal_collector.readers.source import Roots


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("25000", 25_000),
        ("10", 10),
        ("1600000", 1_600_000),
        ("-1", None),
        ("0", None),
        ("65535", None),
        ("4294967295", None),
        ("", None),
    ],
)
def test_the_speed_of_a_link(text: str, speed: int | None, tmp_path: Path) -> None:
    (tmp_path / "class/net/eth0/device").mkdir(parents=True)
    (tmp_path / "class/net/eth0/speed").write_text(f"{text}\n")
    [nic] = nics(Roots(sys=tmp_path), lambda _: NicSizes())
    assert nic.speed == speed
