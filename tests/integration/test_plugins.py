"""A metric of a site's own, from a module of under 20 lines to the wire and the features."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.hosts.base import add_base
from support.hosts.tree import Tree, rising

TESTS = Path(__file__).parents[1]
# the example of the documentation is the one that is tried
DOCUMENT = Path(__file__).parents[2] / "docs/extending.md"
METRIC = DOCUMENT.read_text().partition("```python\n")[2].partition("```")[0]
PLATFORM = '''\
"""Ampere's own cores: the architecture's common events, and what waits for memory."""
from reveal_collector.sources.pmu.platform import Count, Platform

PLATFORMS = (
    Platform("AmpereOne", "0xc0", frozenset((0,)), frozenset((0xAC3,)), 6, {
        "cpu.pmu.cycles": Count("cpu-cycles"),
        "cpu.pmu.instructions": Count("instructions"),
        "cpu.pmu.branch_misses": Count("event=0x22"),
        "memory.pmu.stalls": Count("event=0x4005"),
    }, frozenset(("cpu.pmu.cycles",))),
)
'''
MOST_LINES = 20
# the same process would have read the catalogue before: a collector, a CLI of its own
LABEL = "storage.lustre.requests{scratch}"
# in a process of its own, as this one may have read the catalogue before
TO_THE_FEATURES = f"""\
import json, sys
from pathlib import Path
import numpy as np
from support.hosts import collector_run
from support.hosts.tree import Tree, rising
from reveal_analyzer.derive.columns import plan
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import column_names, columns
from reveal_contract.metric import Kind, Role

tree = Tree(Path(sys.argv[1]))
tree.write("sys/kernel/lustre/scratch/requests", rising(70, start=1000))
outcome = collector_run.run(tree, slices=4)
table = outcome.messages[-1][0]
at = [channel.label for channel in table.fast].index({LABEL!r})
window = np.concatenate([message.fast[:, [at]] for _, message in outcome.messages[1:]])
mask = columns([Role.DYNAMIC], [Kind.COUNTER])
found = features(np.ascontiguousarray(window, np.float64))[mask]
print(json.dumps({{
    "wire": outcome.values()[{LABEL!r}],
    "columns": [column.label for column in plan(table).columns],
    "features": dict(zip(column_names([{LABEL!r}], mask), found)),
}}))
"""


# which event counts what on such a host, and what the host gives then
TO_THE_EVENTS = """\
import json, sys
from pathlib import Path
from support.hosts import cpuinfo, collector_run
from support.hosts.base import add_base
from support.hosts.pmu import add_arm_pmus
from support.hosts.tree import Tree
from reveal_collector.sources import hardware

tree = Tree(Path(sys.argv[1]))
machine = add_base(tree, cpus=2)
cpuinfo.add_cpuinfo(tree, machine, cpuinfo.AMPERE_ONE)
add_arm_pmus(tree, machine, fabric=False)
plan = hardware.plan(tree.roots)
print(json.dumps({
    channel.metric: sorted({event.config for _, event in places})
    for channel, places in plan.columns.items()
}))
"""


@pytest.fixture
def plugged(tmp_path: Path) -> dict[str, str]:
    """The environment of a process with the plugin."""
    (tmp_path / "site_lustre.py").write_text(METRIC)
    (tmp_path / "site_ampere.py").write_text(PLATFORM)
    path = os.pathsep.join([str(tmp_path), str(TESTS)])
    return os.environ | {"REVEAL_PLUGINS": "site_lustre, site_ampere", "PYTHONPATH": path}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    tree = Tree(tmp_path / "host")
    add_base(tree)
    tree.write("sys/kernel/lustre/scratch/requests", rising(70, start=1000))
    return tree.root


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("module", [METRIC, PLATFORM])
def test_a_metric_and_a_platform_take_under_twenty_lines(module: str) -> None:
    assert len(module.strip().splitlines()) < MOST_LINES


def test_the_catalogue_and_the_command_line_know_it(plugged: dict[str, str], host: Path) -> None:
    roots = [f"--{name}-root={host / name}" for name in ("proc", "sys", "cgroup")]
    told = python(plugged, "-m", "reveal_cli", "catalog", "--json", *roots)
    channels = {row["channel"]: row for row in json.loads(told.stdout)["channels"]}
    row = channels["storage.lustre.requests{scratch}"]
    assert (row["source"], row["lane"], row["unit"]) == ("lustre", "fast", "operations")
    found = python(plugged, "-m", "reveal_cli", "catalog", *roots, "--search", "req_waittime")
    assert "storage.lustre.requests {scratch}" in found.stdout


def test_it_goes_over_the_wire_and_into_the_features(
    plugged: dict[str, str], tmp_path: Path
) -> None:
    told = python(plugged, "-c", TO_THE_FEATURES, str(tmp_path / "host"))
    found = json.loads(told.stdout)
    assert found["wire"][1:] == ["70", "70", "70"]
    assert f"{LABEL}__mean" in found["columns"]
    assert found["features"][f"{LABEL}__mean"] == 7
    assert len(found["features"]) == 33


def test_a_platform_of_the_sites_own_is_counted_by_its_table(
    plugged: dict[str, str], tmp_path: Path
) -> None:
    unknown = python(plugged | {"REVEAL_PLUGINS": ""}, "-c", TO_THE_EVENTS, str(tmp_path / "h"))
    assert "memory.pmu.stalls" not in json.loads(unknown.stdout)
    told = python(plugged, "-c", TO_THE_EVENTS, str(tmp_path / "h"))
    events = json.loads(told.stdout)
    assert events["memory.pmu.stalls"] == [0x4005]
    assert events["cpu.pmu.branch_misses"] == [0x22]


def test_a_plugin_that_cannot_be_imported_is_one_clear_error(host: Path) -> None:
    environment = os.environ | {"REVEAL_PLUGINS": "no_such_module_of_a_site"}
    told = python(environment, "-m", "reveal_cli", "catalog", f"--proc-root={host / 'proc'}")
    assert told.returncode == 2
    assert "REVEAL_PLUGINS: no_such_module_of_a_site cannot be imported" in told.stderr
    assert "Traceback" not in told.stderr
