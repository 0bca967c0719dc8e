"""A node that is a container itself: its cgroup tree is a part of the machine's."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cgroup_pods import CONTROLLERS, NEEDED, ROOT, USAGE, WORK, Recorded

pytestmark = [*NEEDED, pytest.mark.timeout(90)]
UID = "0f0e0d0c-0b0a-4908-8706-050403020100"
POD = f"/kubepods/besteffort/pod{UID}"
# as a container engine sets a node up: a cgroup of its own, a namespace that begins there, and
# the hierarchies mounted again; arguments: a folder, the controllers, the command
NODE = """
set -e
tree=$1 controllers=$2; shift 2
mount --make-rprivate /
mount -t tmpfs none "$tree"
for each in $controllers; do
  mkdir "$tree/$each"; mount -t cgroup -o "$each" none "$tree/$each"
done
exec "$@"
"""


@pytest.fixture
def node() -> Iterator[str]:
    """A cgroup for a node, with a pod's below it, and one beside it."""
    name = f"/reveal-test-{uuid.uuid4().hex[:8]}"
    paths = [f"{name}-other", f"{name}{POD}", f"{name}/kubepods/besteffort", f"{name}/kubepods"]
    folders = [ROOT / each / path[1:] for path in [*paths, name] for each in CONTROLLERS]
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        pytest.skip(f"no cgroups may be made here: {error.strerror}")
    yield name
    for folder in folders:
        folder.rmdir()


def joined(path: str) -> list[str]:
    return [str(ROOT / each / path[1:] / "cgroup.procs") for each in CONTROLLERS]


def test_a_nested_node_lists_only_its_own_subjects(node: str, tmp_path: Path) -> None:
    work = [
        subprocess.Popen([sys.executable, "-c", WORK, "cpu", "60", *joined(path)])
        for path in (f"{node}{POD}", f"{node}-other")
    ]
    tree, file = tmp_path / "tree", tmp_path / "r"
    tree.mkdir()
    collector = [
        sys.executable, "-m", "reveal_collector", "--node", "n1", "--record", str(file),
        "--cgroup-root", str(tree), "--duration", "3.6",
        "--include", "cpuclock", "cgroup-cpu", "cgroups",
    ]  # fmt: skip
    join = "".join(f"echo $$ > {item}; " for item in joined(node))
    enter = ["unshare", "--cgroup", "--mount", "sh", "-c", NODE, "sh", str(tree)]
    command = ["sh", "-c", join + 'exec "$@"', "sh", *enter, " ".join(CONTROLLERS), *collector]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        for item in work:
            item.kill()
            item.wait()
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no cgroup namespace here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    observed = Recorded(file)
    table = observed.subjects()
    assert f"pod:{UID}" in table
    assert not any("reveal-test" in instance for instance in table)
    used = observed.total(f"{USAGE}{{pod:{UID}}}")
    assert used > 0.1e9  # it shares the CPUs with the one beside the node
    if not Path("/proc/schedstat").exists():  # else the finest clock is the machine's
        clocks = sum(observed.total(f"cpu.run_time{{{cpu}}}") for cpu in range(os.cpu_count() or 1))
        assert used - 0.3e9 < clocks < used + observed.total("own.cpu_time") + 0.3e9
