"""The page of all metrics is current, and common names of other tools find their metric."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.metrics_page import page, table_row
from reveal_contract import catalogue
from reveal_contract.aliases import ALIASES
from reveal_contract.catalogue import find
from reveal_contract.metric import Capacity
from reveal_contract.search import known_names, search
from support.hosts.base import add_base
from support.hosts.tree import Tree

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def test_the_page_is_current() -> None:
    rendered = page(catalogue.rows()).splitlines()
    assert rendered == PAGE.read_text().splitlines(), "run `make docs`"


def test_every_row_stands_on_the_page_once() -> None:
    tables = page(catalogue.rows()).partition("## By names of other tools")[0].splitlines()
    for row in catalogue.rows():
        assert sum(line.startswith(f"| `{row.name}` |") for line in tables) == 1, row.name


@pytest.mark.parametrize(
    ("quantum", "unit", "capacity", "displayed"),
    [
        (3e7, "ns", Capacity.ABSOLUTE, "30 ms"),
        (1e3, "ns", Capacity.ABSOLUTE, "1 us"),
        (1 / 512, "bytes", Capacity.MEMORY, "1/512 of memory"),
        (102_400, "bytes", Capacity.ABSOLUTE, "102,400"),
        (0.5, "tasks", Capacity.ABSOLUTE, "0.5"),
        (1e8, "Hz", Capacity.ABSOLUTE, "1e+08"),
    ],
)
def test_amounts_are_written_with_their_unit(
    quantum: float, unit: str, capacity: Capacity, displayed: str
) -> None:
    row = replace(find("cpu.user"), quantum=quantum, unit=unit, capacity=capacity)
    assert f" | {displayed} | " in table_row(row)


def test_a_bar_in_a_text_does_not_end_its_cell() -> None:
    row = replace(find("cpu.user"), meaning="Either|or")
    assert table_row(row).replace("\\|", "").count("|") == table_row(find("cpu.user")).count("|")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("cpu.user", "cpu.user"),
        ("TcpRetransSegs", "network.tcp.retrans_segs"),
        ("tcpretranssegs", "network.tcp.retrans_segs"),
        ("sectors_read", "storage.disk.read_bytes"),
        ("Busy%", "cpu.busy"),
        ("await", "storage.disk.await"),
        ("r/s", "storage.disk.reads"),
        ("rkB/s", "storage.disk.read_bytes"),
        ("%iowait", "cpu.iowait"),
        ("IRQ", "cpu.interrupts.total"),
        ("Bzy_MHz", "cpu.busy_frequency"),
        ("PkgWatt", "cpu.energy.package"),
        ("CoreTmp", "cpu.temperature.core"),
        ("stalls_l3_miss", "memory.pmu.stalls"),
        ("power_draw", "gpu.power"),
        ("utilization.gpu", "gpu.utilization"),
        ("DCGM_FI_DEV_GPU_UTIL", "gpu.utilization"),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu.tensor.active"),
        ("node_load1", "cpu.load.1m"),
        ("HugePages_Total", "memory.huge_pages_total"),
        ("aqu-sz", "storage.disk.queue_time"),
        ("pgmajfault", "memory.vm.pgmajfault"),
        ("shootdowns", "memory.tlb_shootdowns"),
    ],
)
def test_a_common_name_finds_its_metric(query: str, found: str) -> None:
    names = [row.name for row in search(query, catalogue.rows())]
    assert found in names[:3]


def test_nearest_comes_first_and_nothing_fits_nothing() -> None:
    names = [row.name for row in search("load", catalogue.rows())]
    assert names.index("cpu.load.1m") < len(names)
    assert search("memory.mem_free", catalogue.rows())[0].name == "memory.mem_free"
    assert not search("  ", catalogue.rows())
    assert not search("no such thing", catalogue.rows())


def test_what_other_tools_call_it_is_of_metrics_there_are() -> None:
    known = {row.name for row in catalogue.rows()}
    assert set(ALIASES) <= known
    assert all(len(set(names)) == len(names) > 0 for names in ALIASES.values())


def test_an_origin_of_several_names_is_found_by_each() -> None:
    assert known_names(find("cpu.run_time")) == (
        "cpuacct.usage_percpu", "schedstat run time", "cpu.stat usage_usec",
    )  # fmt: skip
    assert known_names(find("cpu.pmu.cycles")) == ("cpu-cycles (cpu_clk_unhalted, cpu_cycles)",)


def catalog(tmp_path: Path, *arguments: str) -> list[str]:
    tree = Tree(tmp_path)
    add_base(tree)
    roots = [f"--{name}-root={tmp_path / name}" for name in ("proc", "sys", "cgroup")]
    return ["catalog", *roots, *arguments]


def test_search_lists_this_hosts_metrics_and_why_others_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(catalog(tmp_path, "--search", "TCPDSACKOfoRecv")) == 0
    assert "network.tcp_ext.tcpdsack_ofo_recv" in capsys.readouterr().out
    assert main(catalog(tmp_path, "--search", "RAMWatt")) == 0
    assert "Not available here: " in capsys.readouterr().out
    assert main(catalog(tmp_path, "--search", "Busy%")) == 0
    assert "Computed by the analyzer." in capsys.readouterr().out
    assert main(catalog(tmp_path, "--search", "qwertz")) == 0
    assert "No metric matches 'qwertz'" in capsys.readouterr().out


def test_markdown_is_the_page(capsys: pytest.CaptureFixture[str], own_signals: None) -> None:
    assert main(["catalog", "--markdown"]) == 0
    assert capsys.readouterr().out == page(catalogue.rows())
