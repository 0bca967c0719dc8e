"""GPUs through the real pynvml and a scripted driver library."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.nvml.devices import gpus, sysfs_address
from reveal_collector.nvml.events import XidCounts, is_application_error
from reveal_collector.nvml.gpu_processes import mean_utilization
from reveal_collector.nvml.snapshots import QUICK, STALE_NS, STATE, SUBJECTS
from reveal_collector.readers.opening import SourceOpener
from reveal_collector.readers.source import HUNG_NS, Roots
from reveal_collector.sampling.feed import Feed
from reveal_collector.sources.nvml import sources
from reveal_contract.catalogue import find
from reveal_contract.time_units import NS_PER_SECOND
from support.fake_nvml import GIB, Script, old_card, partitioned
from support.nvml_poller import SteppedPoller, base_unit
from support.polling import wait_until


def test_what_a_card_uses_is_there_in_base_units(script: Script) -> None:
    watch = SteppedPoller()
    assert base_unit(watch, QUICK, "gpu.utilization", "1") == 91
    assert base_unit(watch, QUICK, "gpu.memory.used") == 60 * GIB
    assert base_unit(watch, QUICK, "gpu.power") == pytest.approx(412.0)
    assert base_unit(watch, STATE, "gpu.energy") == pytest.approx(9000.0)
    assert base_unit(watch, QUICK, "gpu.clock.sm") == pytest.approx(1.98e9)
    assert base_unit(watch, STATE, "gpu.power.limit") == pytest.approx(700.0)
    assert base_unit(watch, STATE, "gpu.temperature") == 55
    assert base_unit(watch, STATE, "gpu.nvlink.rx", "1") == 8193 * 1024
    assert base_unit(watch, STATE, "gpu.pcie.tx") == pytest.approx(1.2e6)
    assert base_unit(watch, STATE, "gpu.nvlink.crc_errors") == 1  # the sum over its links
    assert base_unit(watch, STATE, "gpu.nvlink.active_links") == 18
    assert base_unit(watch, STATE, "gpu.ecc.corrected.aggregate") == 2
    assert base_unit(watch, STATE, "gpu.count", "") == 2


def test_every_figure_is_of_the_catalogue_and_in_its_lane(script: Script) -> None:
    watch = SteppedPoller(profiling=True)
    for board, lane in ((QUICK, "fast"), (STATE, "slow"), (SUBJECTS, "slow")):
        for channel in watch.poller.snapshots[board].channels:
            assert channel.kind is find(channel.metric).kind
            assert channel.lane.value == find(channel.metric).lane.value == lane


def test_each_reason_to_throttle_is_a_state(script: Script) -> None:
    script.change({"0.reasons": "0xC8"})
    watch = SteppedPoller()
    states = {key: value for key, value in watch.figures().items() if key[0].startswith("gpu.thr")}
    on = {metric for (metric, gpu), value in states.items() if gpu == "0" and value == 1}
    assert on == {
        "gpu.throttle.hardware_slowdown", "gpu.throttle.thermal_hardware",
        "gpu.throttle.power_brake",
    }  # fmt: skip
    assert len(states) == 2 * 9 + 2 * 5  # states, and times by reason


def test_an_old_card_gives_what_it_has_by_older_calls(script: Script) -> None:
    script.answers = {}
    script.change(old_card())
    watch = SteppedPoller()
    assert base_unit(watch, QUICK, "gpu.power") == pytest.approx(61.0)
    assert base_unit(watch, QUICK, "gpu.memory.used") == GIB
    assert base_unit(watch, STATE, "gpu.fan") == 31
    metrics = {metric for metric, _ in (*watch.figures(QUICK), *watch.figures())}
    assert not metrics & {"gpu.energy", "gpu.ecc.corrected.volatile", "gpu.encoder.utilization"}
    assert "gpu.pcie.replays" in metrics


def test_values_follow_the_driver_each_with_its_period(script: Script) -> None:
    watch = SteppedPoller()
    script.change({"0.utilization": 7, "0.temperature.0": 80, "0.power.limit": 300_000})
    watch.run(0.1)
    assert watch.figures(QUICK)["gpu.utilization", "0"] == 7
    assert watch.figures()["gpu.temperature", "0"] == 55
    watch.run(2.2)
    assert watch.figures()["gpu.temperature", "0"] == 80
    assert watch.figures()["gpu.power.limit", "0"] == 700_000
    watch.run(20)
    assert watch.figures()["gpu.power.limit", "0"] == 300_000


def test_a_figure_that_fails_is_missing_and_comes_back(script: Script) -> None:
    watch = SteppedPoller()
    script.change({"0.call.nvmlDeviceGetUtilizationRates": 999})
    watch.run(0.2)
    assert watch.figures(QUICK)["gpu.utilization", "0"] is None
    assert watch.figures(QUICK)["gpu.utilization", "1"] == 91
    assert watch.figures(QUICK)["gpu.memory.used", "0"] == 60 * GIB
    script.change({"0.call.nvmlDeviceGetUtilizationRates": None})
    watch.run(0.2)
    assert watch.figures(QUICK)["gpu.utilization", "0"] == 90


def test_a_lost_gpu_is_reported_and_the_others_go_on(script: Script) -> None:
    watch = SteppedPoller()
    script.change({"0.call.*": 15})
    watch.run(1.5)
    state, quick = watch.figures(), watch.figures(QUICK)
    assert (state["gpu.lost", "0"], state["gpu.lost", "1"], state["gpu.count", ""]) == (1, 0, 1)
    assert {value for (_, gpu), value in quick.items() if gpu == "0"} == {None}
    assert quick["gpu.utilization", "1"] == 91
    watch.run(12)  # the driver does not list it any more: its columns stay
    assert watch.figures().keys() == state.keys()
    assert watch.figures()["gpu.lost", "0"] == 1
    script.change({"0.call.*": None})
    watch.run(12)
    assert watch.figures()["gpu.lost", "0"] == 0
    assert watch.figures(QUICK)["gpu.utilization", "0"] == 90


def test_a_gpu_that_fails_without_a_name_for_it_is_lost_too(script: Script) -> None:
    watch = SteppedPoller()
    script.change({"1.call.*": 999})
    watch.run(4)
    assert watch.figures()["gpu.lost", "1"] == 1


def test_xid_errors_are_counted_by_code_and_kind(script: Script) -> None:
    watch = SteppedPoller()
    assert watch.figures()["gpu.xid.hardware", "0"] == 0
    script.change({"xid.0": "0 79", "xid.1": "1 13", "xid.2": "0 79"})
    watch.run(1.1)
    state = watch.figures()
    assert (state["gpu.xid.hardware", "0"], state["gpu.xid.application", "0"]) == (2, 0)
    assert (state["gpu.xid.hardware", "1"], state["gpu.xid.application", "1"]) == (0, 1)
    assert state["gpu.xid.last", "0"] == 79
    assert state["gpu.xid", "0/79"] == 0  # a counter must be seen at 0 first
    watch.run(5)
    assert watch.figures()["gpu.xid", "0/79"] == 2
    assert watch.figures()["gpu.xid", "1/13"] == 1


def test_parts_of_a_gpu_are_known_by_their_uuid(script: Script) -> None:
    script.answers = {}
    script.change(partitioned(1, 2))
    watch = SteppedPoller(profiling=True)
    quick = watch.figures(QUICK)
    assert quick["gpu.memory.used", "0/MIG-0001"] == GIB
    assert quick["gpu.memory.used", "0"] == 60 * GIB
    assert ("gpu.utilization", "0") not in quick  # not available of the whole
    watch.run(2.5)
    assert watch.figures()["gpu.sm.active", "0/MIG-0002"] == 10_500
    (gpu,) = watch.poller.gpus
    assert [(part.gpu_instance, part.uuid) for part in gpu.mig] == [
        (1, "MIG-0001"),
        (2, "MIG-0002"),
    ]
    script.answers = {}
    script.change(partitioned(2, 5))  # recreated: position 0 is another instance
    watch.run(11)
    instances = {gpu for metric, gpu in watch.figures(QUICK) if metric == "gpu.memory.used"}
    assert instances == {"0", "0/MIG-0002", "0/MIG-0005"}


def test_profiling_is_off_unless_asked_for(script: Script) -> None:
    assert ("gpu.sm.active", "0") not in SteppedPoller().figures()
    watch = SteppedPoller(profiling=True)
    watch.run(2.5)
    assert base_unit(watch, STATE, "gpu.sm.occupancy") == pytest.approx(41.25)


def test_memory_and_time_are_booked_to_subjects(script: Script, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    for pid, cgroup in ((100, "/system.slice/train.service"), (101, "/system.slice/train.service")):
        write_process(proc, pid, pid, cgroup)
    write_process(proc, 300, 299, "/")
    script.change({
        "0.process.0": f"100 {GIB} c", "0.process.1": f"101 {2 * GIB} c",
        "0.process.2": f"100 {GIB} g", "1.process.0": f"100 {GIB} c",
        "1.process.1": f"300 {GIB} c", "1.process.2": f"999 {GIB} c",
        "0.busy.0": "100 5 40", "0.busy.1": "100 6 60", "1.busy.0": "100 6 25",
    })  # fmt: skip
    watch = SteppedPoller(Roots(proc=proc))
    found = watch.figures(SUBJECTS)
    train = "/system.slice/train.service"
    assert found["gpu.subject.memory_used", train] == 4 * GIB
    assert found["gpu.subject.sm_utilization", train] == 100 * (50 + 25)
    assert found["gpu.subject.memory_used", "pgrp:python[299]"] == GIB
    assert found["gpu.subject.memory_used", "unattributed"] == GIB
    assert watch.figures()["gpu.processes", "0"] == 2
    assert {each.pid for each in watch.poller.processes()[0]} == {100, 101}


def test_a_subject_that_left_has_zero_memory_for_a_while(script: Script) -> None:
    script.change({"0.process.0": f"{os.getpid()} {GIB} c"})
    watch = SteppedPoller(subject_of_pid=lambda pid: "default/train")
    assert watch.figures(SUBJECTS)["gpu.subject.memory_used", "default/train"] == GIB
    script.change({"0.process.0": None})
    watch.run(12)
    assert watch.figures(SUBJECTS)["gpu.subject.memory_used", "default/train"] == 0
    watch.run(60)
    assert watch.figures(SUBJECTS) == {}


def test_a_process_with_unknown_memory_makes_the_sum_missing(script: Script) -> None:
    script.change({"0.process.0": f"{os.getpid()} {GIB} c", "1.process.0": f"{os.getpid()} -1 c"})
    watch = SteppedPoller(subject_of_pid=lambda pid: "default/train")
    assert watch.figures(SUBJECTS)["gpu.subject.memory_used", "default/train"] is None


def test_facts_of_the_gpus(script: Script, tmp_path: Path) -> None:
    device = tmp_path / "bus/pci/devices/0000:2a:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    first, second = gpus(Roots(sys=tmp_path))
    assert (first.pci_bus_id, first.numa_node) == ("0000:19:00.0", None)
    assert (second.pci_bus_id, second.numa_node) == ("0000:2a:00.0", 1)
    assert second.uuid.startswith("GPU-00000001")
    assert sysfs_address("00010000:3B:00.0") == "10000:3b:00.0"


def test_a_list_of_answers_is_followed_over_errors(script: Script) -> None:
    script.change({"0.utilization": "5 ? 7", "at": 0})
    watch = SteppedPoller()
    found = []
    for index in range(4):
        script.change({"at": index})
        watch.run(0.1)
        found.append(watch.figures(QUICK)["gpu.utilization", "0"])
    assert found == [5, None, 7, 7]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 160)), max_size=40))
def test_no_xid_error_is_lost_or_counted_twice(errors: list[tuple[int, int]]) -> None:
    ledger = XidCounts()
    for time_ns, (gpu, code) in enumerate(errors):
        ledger.add(gpu, code, time_ns)
    by_code = ledger.by_code(len(errors) + 4 * NS_PER_SECOND)
    assert sum(by_code.values()) == len(errors)
    for gpu in range(4):
        programs, others, last = ledger.of_gpu(gpu)
        mine = [code for of, code in errors if of == gpu]
        assert (programs + others, last) == (len(mine), mine[-1] if mine else 0)
        assert programs == sum(map(is_application_error, mine))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**32 - 1)), max_size=30))
def test_the_use_of_a_process_is_a_share_whatever_the_ring_holds(
    samples: list[tuple[int, int]],
) -> None:
    shares = mean_utilization(SimpleNamespace(pid=pid, smUtil=use) for pid, use in samples)
    assert all(pid and 0 <= use <= 100 for pid, use in shares.items())
    assert shares.keys() == {pid for pid, use in samples if pid and use <= 100}


def test_the_tick_threads_read_never_waits_for_the_driver(script: Script) -> None:
    opened = sources(Roots())
    for source in opened:
        source.open()
    try:
        assert opened[0].read()
        script.change({"delay.nvmlDeviceGetUtilizationRates": 300_000})
        began, calls = time.monotonic(), 0
        while time.monotonic() - began < 0.2:
            for source in opened:
                read(source)
            calls += 1
        assert calls > 1000
    finally:
        script.change({"delay.nvmlDeviceGetUtilizationRates": None})
        for source in opened:
            source.close()


def test_a_hung_driver_makes_values_missing(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, *_ = sources(Roots())
    fast.open()
    fast.close()  # nobody renews the board now
    assert None not in fast.read()
    later = time.monotonic_ns() + STALE_NS
    monkeypatch.setattr("reveal_collector.sources.nvml.time.monotonic_ns", lambda: later)
    assert set(fast.read()) == {None}


def test_a_driver_that_hangs_is_an_outage_of_all_its_sources_stated_once(script: Script) -> None:
    opened = sources(Roots())
    for source in opened:
        source.open()
    feeds = [Feed(source) for source in opened]
    assert [feed.outage(time.monotonic_ns()) for feed in feeds] == [None] * 3
    script.change({"delay.nvmlDeviceGetUtilizationRates": 30_000_000})
    try:
        wait_until(lambda: all(feed.outage(time.monotonic_ns() + HUNG_NS) for feed in feeds))
        assert [set(feed.read()) for feed in feeds if feed.columns] == [{None}, {None}]
        assert {feed.driver for feed in feeds} == {"nvml"}
    finally:
        for source in opened:
            source.close()


@pytest.mark.parametrize(
    "call", ["nvmlInitWithFlags", "nvmlDeviceGetName", "nvmlDeviceGetTemperature"]
)
def test_a_driver_that_hangs_when_it_is_opened_gives_all_sources_once_it_answers(
    script: Script, call: str
) -> None:
    script.change({f"delay.{call}": 500_000})
    opened = sources(Roots())
    opener = SourceOpener(timeout_s=0.1)
    began = time.monotonic()
    openings = [opener.open(source) for source in opened]
    opener.close()
    assert time.monotonic() - began < 0.5
    assert not any(opening.ended.is_set() for opening in openings)
    try:
        assert all(opening.ended.wait(30) and opening.error is None for opening in openings)
    finally:
        for source in opened:
            source.close()


def test_a_driver_that_hangs_while_it_is_opened_is_not_opened_by_another_thread(
    script: Script,
) -> None:
    script.change({"delay.nvmlInitWithFlags": 500_000})
    first, second, _ = sources(Roots())
    hung = SourceOpener(timeout_s=0.1).open(first)
    assert not hung.ended.is_set()
    with pytest.raises(Unsupported, match="does not answer"):
        second.open()
    assert hung.ended.wait(30) and hung.error is None
    first.close()


@pytest.mark.parametrize(
    ("call", "metric"),
    [
        ("nvmlDeviceGetComputeRunningProcesses_v3", "gpu.subject.memory_used"),
        ("nvmlDeviceGetProcessUtilization", "gpu.subject.sm_utilization"),
    ],
)
def test_what_subjects_use_is_unknown_while_the_driver_does_not_list_it(
    script: Script, call: str, metric: str
) -> None:
    script.change({"0.process.0": f"{os.getpid()} {GIB} c", "0.busy.0": f"{os.getpid()} 5 40"})
    watch = SteppedPoller(subject_of_pid=lambda pid: "default/train")
    watch.run(6)
    assert watch.figures(SUBJECTS)[metric, "default/train"] is not None
    script.change({f"call.{call}": 999})
    watch.run(6)
    assert watch.figures(SUBJECTS)[metric, "default/train"] is None
    script.change({f"call.{call}": None})
    watch.run(12)
    assert watch.figures(SUBJECTS)[metric, "default/train"] is not None


def read(source: Any) -> None:
    try:
        source.read()
    except LayoutChanged:
        source.read()


def write_process(proc: Path, pid: int, group: int, cgroup: str) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    fields = [
        "S",
        "1",
        str(group),
        "1",
        "0",
        "-1",
        "4194304",
        *["0"] * 12,
        "1",
        "0",
        "77",
        "0",
        "0",
    ]
    (folder / "stat").write_text(f"{pid} (python) {' '.join(fields)}\n")
    (folder / "cgroup").write_text(f"0::{cgroup}\n")
