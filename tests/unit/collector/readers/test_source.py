"""Which roots are this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reveal_collector.readers.source import Roots

_LOOK = (
    "import sys, pathlib; from reveal_collector.readers.source import Roots;"
    " print(Roots(pathlib.Path(sys.argv[1])).live)"
)


def test_a_copy_of_this_boots_files_is_not_this_kernel(tmp_path: Path) -> None:
    copy = tmp_path / "sys/kernel/random/boot_id"
    copy.parent.mkdir(parents=True)
    copy.write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    assert Roots().live
    assert not Roots(tmp_path).live
    assert not Roots(tmp_path / "nowhere").live


@pytest.mark.root
def test_this_kernels_procfs_mounted_elsewhere_is_live(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    look = 'mount -t proc proc "$3" && exec "$1" -c "$2" "$3"'
    command = ["unshare", "--mount", "sh", "-c", look, "sh", sys.executable, _LOOK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no mount here: {done.stderr}")
    assert done.stdout == "True\n"
