"""The shape of the repository that tools and imports rely on."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = ("contract", "collector", "analyzer", "operator", "cli")
MAX_LINES = 400
# paths of a person's machine, and private notes
BANNED = re.compile(
    "|".join(("/wo" + "rk/", r"/ho" + r"me/\w", r"\bTO" + "DO\\b", r"\bFIX" + "ME\\b"))
)


def committed() -> list[Path]:
    """The files git knows; all text files of the tree where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_source_roots_are_no_packages() -> None:
    # operator/__init__.py would shadow the standard library's module
    assert not [root for root in SOURCE_ROOTS if (ROOT / root / "__init__.py").exists()]


def test_no_python_file_is_longer_than_allowed() -> None:
    lengths = {
        path.relative_to(ROOT): len(path.read_text().splitlines())
        for path in committed()
        if path.suffix == ".py"
    }
    assert lengths
    assert {path: n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_no_file_names_what_must_not_be_published() -> None:
    found = []
    for path in committed():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [(path.name, word.group()) for word in BANNED.finditer(text)]
    assert found == []


def _module_names(folder: Path) -> set[str]:
    """Return the names of the modules and packages of a folder, and the folder's own."""
    return {path.stem for path in folder.iterdir() if not path.name.startswith("_")} | {folder.name}


@pytest.mark.parametrize("component", ["analyzer", "collector", "operator", "cli"])
def test_a_test_of_a_component_carries_the_name_of_a_module(component: str) -> None:
    tests, package = ROOT / "tests/unit" / component, ROOT / component / f"reveal_{component}"
    files = list(tests.rglob("test_*.py"))
    assert files
    misnamed = []
    for file in files:
        folder = package / file.parent.relative_to(tests)
        name = file.stem.removeprefix("test_")
        modules = _module_names(folder) if folder.is_dir() else set()
        if not any(name == module or name.startswith(f"{module}_") for module in modules):
            misnamed.append(file.relative_to(ROOT))
    assert misnamed == []


def test_every_package_of_the_project_is_in_the_wheel_and_typed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    found = {
        str(path.parent.relative_to(ROOT))
        for root in SOURCE_ROOTS
        for path in ROOT.glob(f"{root}/*/__init__.py")
    }
    assert set(packages) == found
    assert not [package for package in packages if not (ROOT / package / "py.typed").exists()]


@pytest.mark.parametrize(
    "script", ["reveal", "kubectl-reveal", "reveal-collector", "reveal-analyzer"]
)
def test_console_scripts_resolve(script: str) -> None:
    [entry] = entry_points(group="console_scripts", name=script)
    assert callable(entry.load())


@pytest.mark.parametrize("module", ["reveal_cli", "reveal_collector", "reveal_analyzer"])
def test_python_m_works_from_the_root_of_the_repository(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_wheel_holds_all_packages(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(ROOT)],
        check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "/".join(path.relative_to(ROOT).parts[1:])
        for path in committed()
        if path.relative_to(ROOT).parts[0] in SOURCE_ROOTS
    }
    assert expected
    assert expected - names == set()
