"""A metric of a site's own, from a module of under 20 lines to the wire and the features."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reveal_collector import plugin
from support.hosts.base import add_base
from support.hosts.tree import Tree, rising

TESTS = Path(__file__).parents[1]
# the examples of the documentation are those that are tried
DOCUMENT = Path(__file__).parents[2] / "docs/extending.md"
NUMBER_FILES, TEXT_FILE, PLATFORM, *_ = re.findall(
    r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL
)
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
from reveal_analyzer.derive.columns import column_plan
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
    "columns": [column.label for column in column_plan(table).columns],
    "features": dict(zip(column_names([{LABEL!r}], mask), found)),
}}))
"""


# a minute and a half in which nothing is sent again, then what 20 requests a second do
TO_A_FINDING = """\
import json
from reveal_analyzer.node import NodeAnalyzer
from reveal_collector.plugin import channel
from reveal_contract.channels import ChannelTable
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import FAST, SLOW, Node

node = Node(ChannelTable((*FAST, channel("storage.nfs.retransmissions")), SLOW))
judge = NodeAnalyzer("n1", AnalyzerSettings())
updates = []
for rate in [0.0] * 90 + [20.0] * 20:
    updates += judge.analyze(node.slice({"storage.nfs.retransmissions": rate}), node.table)
print(json.dumps([update.finding.to_dict() for update in updates]))
"""
NFS = "net 9 0 9 2\nrpc {calls} {again} 3\nproc4 2 3 1\n"


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
cpuinfo.add_cpuinfo(tree, machine, cpuinfo.AMPEREONE)
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
    (tmp_path / "site_lustre.py").write_text(NUMBER_FILES)
    (tmp_path / "site_nfs.py").write_text(TEXT_FILE)
    (tmp_path / "site_ampere.py").write_text(PLATFORM)
    path = os.pathsep.join([str(tmp_path), str(TESTS), os.environ.get("PYTHONPATH", "")])
    plugins = "site_lustre, site_nfs, site_ampere"
    return os.environ | {"REVEAL_PLUGINS": plugins, "PYTHONPATH": path}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    tree = Tree(tmp_path / "host")
    add_base(tree)
    tree.write("sys/kernel/lustre/scratch/requests", rising(70, start=1000))
    tree.write("proc/1/net/rpc/nfs", lambda now: NFS.format(calls=now.count(900), again=70))
    return tree.root


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip


def script_output(environment: dict[str, str], *arguments: str) -> Any:
    """Return the JSON that a script prints; its own error stands in the failure otherwise."""
    done = python(environment, "-c", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", [NUMBER_FILES, TEXT_FILE, PLATFORM])
def test_a_metric_and_a_platform_take_under_twenty_lines(module: str) -> None:
    assert len(module.strip().splitlines()) < MOST_LINES


@pytest.mark.parametrize("module", [NUMBER_FILES, TEXT_FILE, PLATFORM])
def test_an_example_imports_the_public_module_alone(module: str) -> None:
    imported = [node for node in ast.walk(ast.parse(module)) if isinstance(node, ast.ImportFrom)]
    assert {node.module for node in imported} == {"reveal_collector.plugin"}
    assert {name.name for node in imported for name in node.names} <= set(plugin.__all__)


def test_the_catalogue_and_the_command_line_list_a_plugin_metric(
    plugged: dict[str, str], host: Path
) -> None:
    roots = [f"--{name}-root={host / name}" for name in ("proc", "sys", "cgroup")]
    output = python(plugged, "-m", "reveal_cli", "catalog", "--json", *roots)
    channels = {row["channel"]: row for row in json.loads(output.stdout)["channels"]}
    row = channels["storage.lustre.requests{scratch}"]
    assert (row["source"], row["lane"], row["unit"]) == ("lustre", "fast", "operations")
    found = python(plugged, "-m", "reveal_cli", "catalog", *roots, "--search", "req_waittime")
    assert "storage.lustre.requests {scratch}" in found.stdout
    assert channels["storage.nfs.retransmissions"]["source"] == "nfs"


def test_a_plugin_metric_reaches_the_features(plugged: dict[str, str], tmp_path: Path) -> None:
    found = script_output(plugged, TO_THE_FEATURES, str(tmp_path / "host"))
    assert found["wire"][1:] == ["70", "70", "70"]
    assert f"{LABEL}__mean" in found["columns"]
    assert found["features"][f"{LABEL}__mean"] == 7
    assert len(found["features"]) == 33


def test_a_metric_that_hurts_raises_a_finding(plugged: dict[str, str]) -> None:
    findings = script_output(plugged, TO_A_FINDING)
    assert findings[-1]["subsystem"] == "Storage"
    assert findings[-1]["evidence"][0]["metric"] == "storage.nfs.retransmissions"
    assert findings[-1]["evidence"][0]["knownAs"] == "rpc retrans"


def test_a_plugin_platform_uses_its_event_table(plugged: dict[str, str], tmp_path: Path) -> None:
    host = str(tmp_path / "h")
    assert "memory.pmu.stalls" not in script_output(
        plugged | {"REVEAL_PLUGINS": ""}, TO_THE_EVENTS, host
    )
    events = script_output(plugged, TO_THE_EVENTS, host)
    assert events["memory.pmu.stalls"] == [0x4005]
    assert events["cpu.pmu.branch_misses"] == [0x22]


def test_a_plugin_that_cannot_be_imported_is_a_clear_error(host: Path) -> None:
    environment = os.environ | {"REVEAL_PLUGINS": "no_such_module_of_a_site"}
    output = python(environment, "-m", "reveal_cli", "catalog", f"--proc-root={host / 'proc'}")
    assert output.returncode == 2
    assert "REVEAL_PLUGINS: no_such_module_of_a_site cannot be imported" in output.stderr
    assert "Traceback" not in output.stderr
