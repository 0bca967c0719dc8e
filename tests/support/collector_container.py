"""A process as a collector's container has it: read-only root, the host's files under /host.

The PID and network namespaces stay the host's.  The container's own /sys is empty and /tmp is
not there (but for a checkout in it), so that whoever looks past /host finds nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]

# arguments: the new root, the folder that may be written, the checkout, the command
_ENTER = """
set -e
root=$1 run=$2 checkout=$3; shift 3
mount --make-rprivate /
mount -t tmpfs none "$root"
for each in /*; do
  case $each in /proc|/sys|/dev|/tmp|/run|/host) continue ;; esac
  if [ -L "$each" ]; then cp -P "$each" "$root$each"
  elif [ -d "$each" ]; then
    mkdir "$root$each"; mount --rbind "$each" "$root$each"
    mount -o remount,bind,ro "$root$each"
  fi
done
case $checkout in /tmp/*)
  mkdir -p "$root$checkout"; mount --rbind "$checkout" "$root$checkout"
  mount -o remount,bind,ro "$root$checkout" ;;
esac
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run/reveal" "$root/host/proc" "$root/host/sys"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
for each in proc sys; do
  mount --rbind "/$each" "$root/host/$each"; mount -o remount,bind,ro "$root/host/$each"
done
mount --bind "$run" "$root/run/reveal"
mount -o remount,ro "$root"
cd /
exec chroot "$root" "$@"
"""

ROOTS = ("--proc-root", "/host/proc", "--sys-root", "/host/sys",
         "--cgroup-root", "/host/sys/fs/cgroup")  # fmt: skip
RUN = "/run/reveal"


def in_container(
    folder: Path, command: Sequence[str], rights: Sequence[str] | None = None, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a command; ``folder/run`` is its /run/reveal, the only place where it may write.

    ``rights`` are the capabilities it keeps, all where not given.  Skips where no namespace can
    be made.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    root, run = folder / "root", folder / "run"
    root.mkdir()
    run.mkdir(exist_ok=True)
    bounded = [] if rights is None else ["setpriv", "--bounding-set", _bounds(rights)]
    prefix = ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(root), str(run), str(_CHECKOUT)]
    # no byte code, as in an image: there it is made at build time
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": RUN, "HOME": RUN}
    done = subprocess.run(
        [*prefix, *bounded, *command],
        capture_output=True, text=True, check=False, timeout=seconds, env=environment,
    )  # fmt: skip
    if done.returncode != 0 and done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no container here: {done.stderr}")
    root.rmdir()
    return done


def _bounds(rights: Sequence[str]) -> str:
    return ",".join(["-all", *(f"+{right.lower()}" for right in rights)])
