"""Names that are not UTF-8 pass through the whole collector: read, encoded, announced."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reveal_collector.collector import Collector
from reveal_collector.facts.inventory import FactsReader
from reveal_collector.readers.source import Roots
from reveal_collector.registry import probe_all, subject_tracker
from reveal_collector.subjects.pods.process_owner import ProcessOwner
from reveal_contract.facts import Facts
from reveal_contract.subjects import from_rows
from support.hosts import collector_run
from support.hosts.foreign_names import CGROUP, LINE_BREAK, PID, TWIN, add_foreign_names
from support.hosts.tree import Tree

FORM = "/jobs/caf\\xe9 {x}"


@pytest.fixture
def host(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    add_foreign_names(tree)
    return tree


def test_everything_is_read_and_encoded_under_a_printable_name(host: Tree) -> None:
    values = collector_run.run(host).values()
    assert all(label.isprintable() for label in values)
    # one interface, although one file lists its bytes and one folder its name
    assert values["network.nic.rx_bytes{eth\\xff0}"] == ["0?1", "0", "0"]
    assert values["network.nic.up{eth\\xff0}"] == ["1", "1", "1"]
    assert values["memory.swap.size{/swap\\xfe}"][0] == f"{1048572 * 1024:.6g}"
    assert values["memory.subject.usage{pgrp:job-\\xe5\\x90[200]}"]
    assert values["memory.subject.usage{/jobs/a\\u2028b (deleted)}"] == ["8193"] * 3


def test_cgroups_of_the_same_form_are_two_subjects(host: Tree) -> None:
    tracker = subject_tracker(host.roots, collector_run.settings_of(host))
    tracker.update(0.0)
    instances = {subject.path: subject.instance for subject in tracker.current}
    assert set(instances) == {CGROUP, LINE_BREAK, TWIN}
    assert len(set(instances.values())) == 3
    assert FORM in instances.values()
    assert {each.instance for each in tracker.identities} == set(instances.values())
    assert {each.cgroup for each in tracker.identities} == {FORM, "/jobs/a\\u2028b (deleted)"}


def test_a_process_is_found_in_its_cgroup_by_the_bytes_of_the_name(host: Tree) -> None:
    tracker = subject_tracker(host.roots, collector_run.settings_of(host))
    tracker.update(0.0)
    known = {subject.path: subject.instance for subject in tracker.current}
    (host.root / "proc/200/cgroup").write_bytes(b"0::" + os.fsencode(CGROUP) + b"\n")
    assert tracker.subject_of(PID, host.roots.proc) == known[CGROUP]
    assert ProcessOwner(host.roots.proc)(PID) == FORM


def test_facts_name_the_interface_as_the_channels_do(host: Tree) -> None:
    facts = Facts.from_json(FactsReader("n", host.roots).read().to_json())
    assert [nic.name for nic in facts.nics] == ["eth\\xff0"]


def test_the_status_of_the_node_is_json_with_printable_names(host: Tree) -> None:
    settings = collector_run.settings_of(host)
    collector = Collector(settings, [])
    collector.start()
    try:
        status = collector.status().to_node_status()
    finally:
        collector.stop()
    text = json.dumps(status, ensure_ascii=False)
    assert text.encode().decode().isprintable()
    assert FORM in {subject.instance for subject in from_rows(status["subjects"])}


def test_the_reason_of_a_missing_source_is_printable(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    roots = Roots(folder / "proc", folder / "sys", folder / "cgroup")
    settings = collector_run.settings_of(Tree(tmp_path), include=["loadavg"])
    (missing,) = probe_all(roots, settings).missing
    assert missing.reason == f"{tmp_path}/\\xff/proc/loadavg does not exist"
