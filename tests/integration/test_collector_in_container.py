"""The collector in a container's mount namespace and rights: it sees what it sees outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reveal_collector.readers.boot_id import boot_id
from reveal_collector.readers.source import Roots
from reveal_contract.catalogue import find
from reveal_contract.runtime.liveness import ALIVE_FILE, READY_FILE
from support.cgroup_pods import Recorded
from support.collector_container import ROOTS, RUN, in_container

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(120),
]
# what `privilege: Capabilities` grants (reveal_operator.manifests.privileges)
LEAST = ("PERFMON", "BPF", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE")
COLLECTOR = (sys.executable, "-m", "reveal_collector")
DOCTOR = (sys.executable, "-m", "reveal_cli", "doctor", "--json")
CATALOG = (sys.executable, "-m", "reveal_cli", "catalog", "--json")


def record(folder: Path, *flags: str, rights: tuple[str, ...] | None = None) -> Recorded:
    """Some seconds of a collector in a container; it must neither fail nor complain."""
    command = [
        *COLLECTOR, *ROOTS, "--node", "n1", "--record", f"{RUN}/r", "--run-folder", RUN,
        "--duration", "3.6", "--log-format", "json", *flags,
    ]  # fmt: skip
    done = in_container(folder, command, rights)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    assert [row for row in rows if row["severity"] in ("error", "critical")] == []
    assert not any("error" in row for row in rows)
    return Recorded(folder / "run/r")


def sources(recorded: Recorded) -> set[str]:
    _, table = recorded.slices[-1]
    return {find(channel.metric).source for channel in (*table.fast, *table.slow)}


def run_json(command: tuple[str, ...], folder: Path, rights: tuple[str, ...] | None = None) -> Any:
    done = in_container(folder, [*command, *ROOTS], rights)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def outside() -> set[tuple[str, str]]:
    """Source and metric of every channel that this host gives without a container."""
    done = subprocess.run(CATALOG, capture_output=True, text=True, check=True)
    return {(row["source"], row["metric"]) for row in json.loads(done.stdout)["channels"]}


def test_every_source_of_the_host_is_available_in_a_container(
    outside: set[tuple[str, str]], tmp_path: Path
) -> None:
    found = run_json(CATALOG, tmp_path)
    rows, missing = found["channels"], {row["source"]: row["reason"] for row in found["missing"]}
    inside = {(row["source"], row["metric"]) for row in rows}
    gone = {source for source, metric in outside - inside if "subject" not in metric}
    if not os.access("/proc/1/root", os.X_OK):  # guarded more than others: our own is not taken
        gone.discard("filesystems")
        assert (
            missing["filesystems"] == "this process is not permitted to enter the root of the host"
        )
    assert gone == set()
    assert len({row["metric"] for row in rows}) > 100


def test_the_container_samples_the_host_and_writes_only_to_its_run_folder(tmp_path: Path) -> None:
    recorded = record(tmp_path)
    assert len(recorded.slices) >= 2
    message, _ = recorded.slices[0]
    assert message.boot == boot_id(Roots())
    assert {"stat", "meminfo", "netdev", "diskstats"} <= sources(recorded)
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"r", ALIVE_FILE, READY_FILE}
    assert 0 < recorded.total("own.cpu_time") < 4e9
    assert recorded.total("own.dropped_slices") == 0


@pytest.mark.parametrize("rights", [LEAST, ()], ids=["least", "none"])
def test_root_with_few_capabilities_samples_permitted_sources(
    rights: tuple[str, ...], tmp_path: Path
) -> None:
    recorded = record(tmp_path, rights=rights)
    assert recorded.slices  # how many, a busy host decides where there is no real-time priority
    assert {"stat", "meminfo", "netdev", "diskstats"} <= sources(recorded)


def test_the_doctor_lists_what_is_missing_without_rights(tmp_path: Path) -> None:
    (tmp_path / "least").mkdir()
    (tmp_path / "none").mkdir()
    least = {row["lacking"] for row in run_json(DOCTOR, tmp_path / "least", LEAST)["advice"]}
    none = {row["lacking"] for row in run_json(DOCTOR, tmp_path / "none", ())["advice"]}
    lost = none - least
    for words in ("CAP_SYS_PTRACE is not held", "CAP_DAC_READ_SEARCH is not held",
                  "SCHED_FIFO is not permitted"):  # fmt: skip
        assert words in lost
    assert not any("CAP_" in message for message in least)


def test_the_network_is_the_hosts_even_from_another_namespace(tmp_path: Path) -> None:
    """Through process 1, whose namespace is the host's; what asks by socket sees its own."""
    (tmp_path / "other").mkdir()
    host = run_json(CATALOG, tmp_path)["channels"]
    other = run_json(("unshare", "--net", *CATALOG), tmp_path / "other")["channels"]
    cards = {row["channel"] for row in host if row["source"] in ("netdev", "netstat", "snmp")}
    assert cards
    assert cards <= {row["channel"] for row in other}
