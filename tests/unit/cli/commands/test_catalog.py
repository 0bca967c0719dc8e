"""``reveal catalog``: every metric once, and what is missing."""

import json
import sys
from dataclasses import replace

import pytest

from reveal_cli.__main__ import main
from reveal_cli.commands.catalog import listing
from reveal_cli.terminal import plain_text
from reveal_collector.doctor import ChannelRow, Diagnosis
from reveal_collector.registry import MissingSource


def test_a_metric_is_listed_once_with_its_instances() -> None:
    row = ChannelRow(
        "a.b{0}", "a.b", "0", "ns", "counter", "fast", "CPU", "stat", "user", "M", "higher"
    )
    rows = tuple(replace(row, channel=f"a.b{{{n}}}", instance=str(n)) for n in range(9))
    diagnosis = Diagnosis(rows, (MissingSource("perf", "needs root", "run as root"),), ())
    text = plain_text(*listing(diagnosis))
    assert text.count("a.b") == 1
    for part in ("0, 1, 2", "9 in all", "M. Hurts when higher.", "9 channels of 1 metrics",
                 "  perf  needs root\n"):  # fmt: skip
        assert part in text


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel")
def test_the_catalog_of_this_host_as_json(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["catalog", "--json"]) == 0
    channels = json.loads(capsys.readouterr().out)["channels"]
    assert len(channels) > 200
    assert {"channel", "unit", "kind", "lane", "source", "origin", "meaning"} <= set(channels[0])


def test_a_search_without_a_match_names_the_command_that_lists_all(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["catalog", "--search", "gremlins"]) == 0
    assert capsys.readouterr().out == (
        "No metric matches 'gremlins': `reveal catalog` lists all metrics of this host.\n"
    )
