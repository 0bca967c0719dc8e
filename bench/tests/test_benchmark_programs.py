"""Each benchmark starts as documented: from a checkout, without anything else on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1]
PROGRAMS = [each for each in sorted(BENCH.glob("*.py")) if "ArgumentParser" in each.read_text()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.stem)
def test_a_benchmark_explains_itself(program: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, str(program), "--help"]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=True)
    assert done.stdout.startswith("usage: ")


def test_the_benchmarks_of_make_bench_exist() -> None:
    makefile = (BENCH.parent / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    [line] = [each for each in makefile.splitlines() if each.startswith("BENCHES")]
    names = line.partition(":=")[2].split()
    assert set(names) <= {each.stem for each in PROGRAMS}
