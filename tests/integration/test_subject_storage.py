"""What a cgroup's processes write to a disk, children that have ended among them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import cpu_root, hierarchies
from reveal_collector.subjects.storage import SubjectStorage
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker

NAME = f"reveal-test-storage-{os.getpid()}"
TREES = {name: tree for name, tree in hierarchies(Roots().cgroup).items() if name == "cpuacct"}
MIB = 1 << 20
_CHILD = "dd if=/dev/zero of={0} bs=1M count={1} conv=fsync status=none"

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not TREES, reason="no cgroup version 1 hierarchy"),
]


@pytest.fixture
def cgroup() -> Iterator[Path]:
    tree = cpu_root(TREES)
    assert tree is not None
    folder = tree / NAME
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroups may be made here: {error.strerror}")
    yield folder
    folder.rmdir()


def on_a_disk(folder: Path) -> bool:
    """Whether what is written there goes to a block device."""
    return os.major(folder.stat().st_dev) != 0


def test_written_bytes_are_counted_to_the_page(cgroup: Path, tmp_path: Path) -> None:
    if not on_a_disk(tmp_path):
        pytest.skip("the temporary folder is on no disk")
    file = tmp_path / "data"
    script = (
        f"echo $$ > {cgroup}/cgroup.procs && echo there && read go && {_CHILD.format(file, 24)};"
    )
    script += f" read go && {_CHILD.format(file, 8)}; echo done; read go"
    shell = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert shell.stdin is not None
    assert shell.stdout is not None
    tracker = SubjectTracker(TREES, SubjectSelection())
    tracker._users = 1  # looked at by the test, not by a thread
    assert shell.stdout.readline() == b"there\n"
    tracker.update(0.0)
    source = SubjectStorage(Roots(), tracker)
    source.open()
    try:
        for _ in range(2):
            os.write(shell.stdin.fileno(), b"\n")
        assert shell.stdout.readline() == b"done\n"
        for _ in range(5):  # one that used no CPU is read every fifth time
            row = source.read()
        labels = [channel.label for channel in source.channels]
        written = row[labels.index(f"storage.subject.write_bytes{{/{NAME}}}")]
    finally:
        source.close()
        shell.communicate(b"\n")
    assert written is not None
    assert 32 * MIB <= written < 33 * MIB
