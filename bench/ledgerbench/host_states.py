"""What else runs on the host beside a job: nothing, half-core neighbours, or compilers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ledgerbench.live import HALF

CORES = os.cpu_count() or 1
HALVES = 2
# the cgroups of each state's neighbours, by the name of the state
STATES: dict[str, tuple[str, ...]] = {
    "quiet": (),
    "neighbours": tuple(f"half{number}" for number in range(HALVES)),
    "saturated": ("compile",),
}
_FUNCTIONS = 400
_LOOP = "while :; do cc -O2 -c {source} -o {output} || exit 1; done"


def commands(neighbour: str, files: Path) -> list[list[str]]:
    """Return the commands that run in a neighbour's cgroup: they never end."""
    if neighbour != "compile":
        return [[sys.executable, "-S", "-c", HALF]]
    source = files / "generated.c"
    source.write_text("".join(map(_function, range(_FUNCTIONS))))
    outputs = (files / f"generated{number}.o" for number in range(CORES))
    return [["sh", "-c", _LOOP.format(source=source, output=output)] for output in outputs]


def _function(number: int) -> str:
    """Return a function in C that takes a compiler some milliseconds to optimize."""
    return (
        f"double f{number}(const double *a, double *b, int n) {{\n"
        f"  double s = {number};\n"
        "  for (int i = 1; i < n; i++) {\n"
        f"    for (int k = 0; k < 8; k++) b[i] += a[i - 1] * b[i] + a[i] * (k + {number});\n"
        f"    if (b[i] > s) s += b[i] / (i + {number + 1}); else b[i] *= s;\n"
        "    switch (i % 5) { case 0: s += 1; break; case 1: s *= 2; break; default: s -= b[i]; }\n"
        "  }\n  return s;\n}\n"
    )
