"""Fixtures of the unit tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_cli.interrupt import SIGNALS
from support import fake_nvml
from support.hosts.base import add_machine
from support.hosts.machine import SERVER
from support.hosts.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A host without any file."""
    return Tree(tmp_path)


@pytest.fixture
def server(tree: Tree) -> Tree:
    """The host ``SERVER``, to which a test adds its own files."""
    add_machine(tree, SERVER)
    return tree


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Restore pytest's signal handlers after a test that installs its own.

    Before it none is ignored, as they are where the tests run in the background of a script.
    """
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake driver, built once."""
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def script(tmp_path: Path, nvml_library: Path) -> Iterator[fake_nvml.Script]:
    """The answers of the driver that the real pynvml has loaded: at first, two H100."""
    scripted = fake_nvml.Script(tmp_path / "script", fake_nvml.hgx_h100(2))
    with fake_nvml.loaded(nvml_library, scripted.path):
        yield scripted
