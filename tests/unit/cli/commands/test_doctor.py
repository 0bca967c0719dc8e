"""``reveal doctor`` and ``reveal analyze`` on how hosts are set up: text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.errors import DONE, FOUND
from reveal_contract.facts import Cpu, Facts, Kernel
from reveal_contract.recording import Writer
from reveal_contract.wire import encode, gauges
from support.hosts import complete_hosts
from support.hosts.configuration import Setup, add_huge_pages, add_setup
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
    roots = tree.roots
    return [
        "--proc-root", str(roots.proc), "--sys-root", str(roots.sys),
        "--cgroup-root", str(roots.cgroup), "--node", "dgx",
    ]  # fmt: skip


def test_doctor_prints_facts_and_problems_of_a_host(
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
    assert max(map(len, text.splitlines())) <= 200


def test_doctor_prints_the_same_as_json(
    host: list[str], capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["doctor", "--json", *host]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert document["facts"]["node"] == "dgx"
    assert document["facts"]["cpu"]["online"] == "0-223"
    assert [hint["hypothesis"]["name"] for hint in document["configuration"]] == [
        "IdleHugePages", "ZoneReclaim", "NarrowPCIeLink",
    ]  # fmt: skip
    assert all({"lacking", "gives", "remedy"} <= set(advice) for advice in document["advice"])


def test_analyze_lists_configuration_hints_of_a_recording_separately(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    with Writer(tmp_path / "r") as writer:
        writer.facts(SLOW_CLOCK.to_json())
        for sequence in range(3):
            writer.message(encode(message("n", sequence), gauges(TABLE)), TABLE)
    assert main(["analyze", str(tmp_path / "r"), "--fail-on", "medium"]) == DONE
    text = capsys.readouterr().out
    assert "Nothing was judged" in text
    assert "Configuration: 1 hint\n  Medium: The kernel keeps time with hpet" in text
    assert main(["analyze", str(tmp_path / "r"), "--fail-on", "low", "--json"]) == FOUND
    [row] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["kind"], row["state"]) == ("Configuration", "Open")
