"""Which backend computes the features: numba if usable, else numpy, with a logged reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from reveal_analyzer import numba_jit

READY = "numba computes, ready after "


def started(tmp_path: Path, **changed: str) -> str:
    """Return the message of a new process, and its backends before and after."""
    code = (
        "from reveal_analyzer.kernels import backend, selection; before = backend.current().name;"
        "print(selection.use_fastest()); print(before, backend.current().name)"
    )
    return run(code, tmp_path, **changed)


def run(code: str, tmp_path: Path, **changed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path), **changed},
        capture_output=True, text=True, timeout=150, check=True,
    )  # fmt: skip
    return done.stdout


def test_numba_is_used_where_it_is_installed(tmp_path: Path) -> None:
    message = started(tmp_path)
    assert message.startswith(READY)
    assert message.splitlines()[1] == "numpy numba"


@pytest.mark.slow
def test_the_compiler_works_in_a_process_of_its_own(tmp_path: Path) -> None:
    code = (
        "from reveal_analyzer.kernels import backend, selection; selection.use_fastest();"
        "stats = backend.current().slide_windows.stats;"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    assert run(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == "1 0\n"


def test_everything_that_the_score_needs_is_compiled_on_start(tmp_path: Path) -> None:
    code = """
import numpy as np
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.selection import use_fastest
from reveal_analyzer.live.views import SustainedViews
from reveal_analyzer.live.thresholds import Thresholds
from reveal_analyzer.live.history import History
from reveal_analyzer.live.settings import LiveSettings
use_fastest()
settings, rng = LiveSettings(), np.random.default_rng(0)
held, past, levels = SustainedViews(settings.views), History(settings), Thresholds(settings)
for second in range(20):
    past.append(held.push(rng.random(7)))
    levels.learn(rng.random(len(levels.values)))
    past.ranges()
its = backend.current()
print(*(len(each.signatures) for each in
        (its.slide_windows, its.insert_scores, its.differing, its.store_seconds,
         its.read_ranks, its.range_bounds)))
"""
    assert run(code, tmp_path) == "1 1 1 1 1 1\n"


def test_without_numba_numpy_computes(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba is not for this Python')")
    message = started(tmp_path, PYTHONPATH=str(tmp_path))
    assert message.startswith("numpy computes: Numba is not for this Python; ")
    assert message.splitlines()[1] == "numpy numpy"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_was_compiled_is_kept_and_damage_to_it_leaves_numpy_to_compute(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert started(tmp_path, NUMBA_CACHE_DIR=str(kept)).startswith(READY)
    code = list(kept.rglob("*.nbc"))
    assert len(code) == 24
    for file in code:
        file.write_bytes(b"no code")
    message = started(tmp_path, NUMBA_CACHE_DIR=str(kept))
    assert message.startswith("numpy computes: numba fails: ")
    assert message.splitlines()[1] == "numpy numpy"


def test_the_analysis_of_a_single_node_never_loads_numba() -> None:
    modules = "reveal_analyzer.node, reveal_analyzer.offline.judgement"
    code = f"import sys, {modules}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_cannot_be_kept_is_compiled_all_the_same() -> None:
    scope: dict[str, object] = {}
    exec("def more(x):\n    return x + 1", scope)  # of no file: numba finds no place to keep it
    more = numba_jit.kernel(scope["more"])  # type: ignore[type-var]
    assert more(1) == 2  # type: ignore[operator]


def test_without_a_folder_for_temporary_files_nothing_is_kept_and_all_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", list)
    test_what_cannot_be_kept_is_compiled_all_the_same()


def test_a_folder_of_others_keeps_no_code(tmp_path: Path) -> None:
    fresh, open_to_all, link = tmp_path / "fresh", tmp_path / "open", tmp_path / "link"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link.symlink_to(fresh)
    assert numba_jit._private(fresh)
    assert fresh.stat().st_mode & 0o777 == 0o700
    assert not numba_jit._private(open_to_all)
    assert not numba_jit._private(link)
    assert not numba_jit._private(tmp_path / "missing" / "below")
