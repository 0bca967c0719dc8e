"""Every made-up host through the whole collector, against what it gave before.

``make goldens`` rewrites the goldens; their difference shows the effect of a change.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_analyzer.configuration.evaluate import evaluate
from reveal_collector.facts.inventory import FactsReader
from reveal_contract.facts import Facts
from support.hosts import collector_run
from support.hosts.complete_hosts import HOSTS
from support.hosts.pods import LAYOUTS, host_with_pods
from support.hosts.tree import Tree

GOLDENS = Path(__file__).parents[1] / "fixtures/hosts/goldens"
LARGEST = 300_000
# of hosts that differ in their cgroups only
SUBJECTS = ("cgroup-cpu", "cgroups", "process-groups", "subject-network")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is a place for that: a host of 224 CPUs has 15,000 files."""
    memory = "/dev/shm"
    location = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="reveal-host-", dir=location) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def ports_are_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their lane follows the time a read takes, which is this machine's, not the host's."""
    monkeypatch.setattr("reveal_collector.sources.infiniband.read_cost_ns", lambda read, pause_s: 0)
    monkeypatch.setattr("reveal_collector.sources.cpufreq._MAX_PASS_S", 60.0)


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_gives_its_golden_values(name: str, folder: Path) -> None:
    tree = Tree(folder)
    HOSTS[name](tree)
    compare(f"{name}.txt", collector_run.run(tree).text(str(folder)))
    compare(f"{name}.facts.json", facts(tree))


def facts(tree: Tree) -> str:
    """What is known of the host, and the hints that follow."""
    known = FactsReader(collector_run.NODE, tree.roots).read()
    assert Facts.from_json(known.to_json()) == known
    hints = [
        f"{hint.hypothesis.name}: {hint.claim}" for hint in evaluate(known, 0) if hint.hypothesis
    ]
    result = {"facts": json.loads(known.to_json()), "hints": hints}
    return json.dumps(result, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", LAYOUTS)
def test_pods_are_the_same_under_every_runtime_and_driver(name: str, folder: Path) -> None:
    """One golden a version of cgroups: who runs the containers must make no difference."""
    tree = Tree(folder)
    host_with_pods(tree, LAYOUTS[name])
    settings = collector_run.settings_of(tree, include=SUBJECTS)
    compare(
        f"pods_{LAYOUTS[name].version}.txt", collector_run.run(tree, settings).text(str(folder))
    )


def compare(name: str, text: str) -> None:
    golden = GOLDENS / name
    if os.environ.get("REVEAL_GOLDENS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert len(text.encode()) < LARGEST
    assert text.splitlines() == golden.read_text().splitlines(), "`make goldens` writes them anew"


def test_every_golden_has_a_host() -> None:
    pods = {f"pods_{layout.version}.txt" for layout in LAYOUTS.values()}
    hosts = {f"{name}.{end}" for name in HOSTS for end in ("txt", "facts.json")}
    assert {path.name for path in GOLDENS.iterdir()} == hosts | pods
