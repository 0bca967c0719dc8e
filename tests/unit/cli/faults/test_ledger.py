from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reveal_cli.faults import ledger
from reveal_cli.faults.guard import guarded
from reveal_cli.faults.ledger import (
    MARK,
    Ledger,
    LedgerError,
    Undo,
    environment_of,
    kill_marked,
    sweep,
)


def test_unwinds_newest_first_down_to_a_depth(tmp_path: Path) -> None:
    file = tmp_path / "setting"
    file.write_text("now")
    ledger = Ledger("here", tmp_path)
    ledger.add(Undo("write", (str(file), "oldest")))
    ledger.add(Undo("write", (str(file), "middle")))
    depth = ledger.depth
    ledger.add(Undo("write", (str(file), "newest")))
    ledger.unwind(depth)
    assert file.read_text() == "newest"
    ledger.unwind()
    assert file.read_text() == "oldest"
    ledger.close()
    assert [path.name for path in tmp_path.iterdir()] == ["setting"]


def test_closing_twice_is_once(tmp_path: Path) -> None:
    ledger = Ledger("here", tmp_path)
    ledger.close()
    ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_does_not_stop_the_rest(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    ledger = Ledger("here", tmp_path)
    ledger.add(Undo("tree", (str(tree),)))
    ledger.add(Undo("magic", ("wand",)))
    with pytest.raises(LedgerError, match="magic"):
        ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_undoing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    ledger = Ledger("here", tmp_path)
    ledger.add(Undo("tree", (str(tmp_path / "gone"),)))
    ledger.add(Undo("write", (str(tmp_path / "nowhere" / "file"), "1")))
    ledger.add(Undo("command", ("false",)))
    ledger.add(Undo("resume", ("999999999",)))
    ledger.close()


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    ledger = Ledger("here", tmp_path)
    with pytest.raises(LedgerError, match="another run"):
        Ledger("here", tmp_path)
    ledger.close()
    Ledger("here", tmp_path).close()


_KILLED = """
import os, signal, sys
from pathlib import Path
from reveal_cli.faults.ledger import Ledger, Undo
base = Path(sys.argv[1])
ledger = Ledger("here", base)
ledger.add(Undo("tree", (str(base / "tree"),)))
(base / "tree").mkdir()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("again", ["sweep", "open"])
def test_what_a_killed_owner_left_is_undone(tmp_path: Path, again: str) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "tree").exists()
    if again == "sweep":
        sweep(tmp_path)
    else:
        Ledger("here", tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_sweep_leaves_a_living_owner_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    ledger = Ledger("here", tmp_path)
    ledger.add(Undo("tree", (str(tree),)))
    sweep(tmp_path)
    assert tree.exists()
    ledger.close()
    assert not tree.exists()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files, as a user who is not root has it."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(ledger, "_ROOT", -1)
    return tmp_path


def test_the_state_directory_is_of_its_user_alone(shared: Path) -> None:
    found = ledger.state_directory()
    assert found.parent == shared
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert ledger.state_directory() == found


@pytest.mark.parametrize("kind", ["link", "file", "shared"])
def test_a_state_directory_that_others_may_own_is_refused(shared: Path, kind: str) -> None:
    """A link may lead to files that are no ledgers: they would be deleted."""
    path = shared / f"reveal-{os.getuid()}"
    precious = shared / "home"
    precious.mkdir()
    (precious / "package.json").write_text("{}")
    if kind == "link":
        path.symlink_to(precious)
    elif kind == "file":
        path.touch()
    else:
        path.mkdir()
        path.chmod(0o777)
    with pytest.raises(LedgerError, match="you alone can write to"):
        ledger.state_directory()
    assert (precious / "package.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"how": 1}]', "null"])
def test_a_damaged_ledger_is_dropped(tmp_path: Path, text: str) -> None:
    (tmp_path / "here.json").write_text(text)
    ledger = Ledger("here", tmp_path)
    assert ledger.depth == 0
    ledger.close()


def test_the_file_is_whole_after_each_step(tmp_path: Path) -> None:
    ledger = Ledger("here", tmp_path)
    for number in range(3):
        ledger.add(Undo("tree", (f"/nowhere/{number}",)))
        assert len(json.loads((tmp_path / "here.json").read_text())) == number + 1
    ledger.close()


def test_marked_processes_are_found_and_killed() -> None:
    name = f"test-{os.getpid()}"
    with _sleep({**os.environ, MARK: name}) as process:
        kill_marked(name + "-other")
        assert process.poll() is None
        kill_marked(name)
        assert process.wait(5) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("command", "environment", "program", "expected"),
    [
        (b"sleep\x0060\x00", b"A=1\x00B=2\x00", True, [b"A=1", b"B=2", b""]),
        (b"sleep\x0060\x00", b"", True, [b""]),
        (b"", b"", True, None),
        (b"", b"", False, [b""]),
    ],
    ids=["runs", "runs without environment", "starts", "kernel thread or zombie"],
)
def test_the_environment_is_unknown_while_a_program_starts(
    tmp_path: Path,
    command: bytes,
    environment: bytes,
    program: bool,
    expected: list[bytes] | None,
) -> None:
    (tmp_path / "cmdline").write_bytes(command)
    (tmp_path / "environ").write_bytes(environment)
    if program:
        (tmp_path / "exe").symlink_to("/usr/bin/sleep")
    assert environment_of(tmp_path) == expected


@contextlib.contextmanager
def _sleep(environment: dict[str, str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [shutil.which("sleep") or "sleep", "60"]
    with subprocess.Popen(command, env=environment, **options) as process:
        try:
            yield process
        finally:
            process.kill()


_GUARDED = """
import os, signal, sys
from pathlib import Path
from reveal_cli.faults.guard import guarded
from reveal_cli.faults.ledger import Ledger, Undo
base = Path(sys.argv[1])
with guarded(base):
    Ledger("here", base).add(Undo("write", (str(base / "setting"), "before")))
    (base / "setting").write_text("fault")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_is_undone_without_another_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _GUARDED, str(tmp_path)]
    # the guard shares the pipe: it ends with the guard
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    assert (tmp_path / "setting").read_text() == "before"


def test_a_run_that_ends_ends_its_guard(tmp_path: Path) -> None:
    with guarded(tmp_path):
        Ledger("here", tmp_path).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_processes_of_another_user_are_left_alone() -> None:
    environment = {**os.environ, MARK: f"test-owner-{os.getpid()}"}
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    with _sleep(environment, **nobody) as other, _sleep(environment) as own:
        kill_marked(f"test-owner-{os.getpid()}")
        assert own.wait(timeout=5) == -signal.SIGKILL
        assert other.poll() is None
