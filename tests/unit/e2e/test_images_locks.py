"""The lock files of the images pin the requirements of pyproject.toml exactly and by hash."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+?))?(?: \\)?$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def module(name: str) -> ModuleType:
    """Import a script of images/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"images_{name}", ROOT / "images" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look themselves up there
    spec.loader.exec_module(loaded)
    return loaded


lock = module("lock")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = [pytest.param(lock_file, id=lock_file.name) for lock_file in lock.LOCKS]


def pins(name: str) -> dict[str, list[tuple[Version, Marker | None, int]]]:
    """Return versions by canonical name, each with its marker and its number of hashes."""
    found: dict[str, list[tuple[Version, Marker | None, int]]] = {}
    last = ""
    for line in (ROOT / "images" / "locks" / f"{name}.txt").read_text().splitlines():
        if HASH.match(line):
            version, marker, hashes = found[last][-1]
            found[last][-1] = (version, marker, hashes + 1)
        elif (pin := PIN.match(line)) is not None:
            last = canonicalize_name(pin[1])
            marker = Marker(pin[3]) if pin[3] else None
            found.setdefault(last, []).append((Version(pin[2]), marker, 0))
        else:
            assert line.lstrip().startswith("#"), f"{name}: {line!r}"
    return found


@pytest.mark.parametrize("lock_file", LOCKS)
def test_every_pin_is_known_by_its_hash(lock_file: Any) -> None:
    found = pins(lock_file.name)
    assert found
    for name, versions in found.items():
        assert all(hashes for _, _, hashes in versions), name


@pytest.mark.parametrize("lock_file", LOCKS)
def test_each_requirement_is_pinned_within_its_bounds(lock_file: Any) -> None:
    """The check needs no index: a raised bound needs new lock files."""
    found = pins(lock_file.name)
    for text in lock.requirements(PROJECT, lock_file):
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in lock_file.without:
            continue
        assert name in found, (
            f"{text} is not in images/locks/{lock_file.name}.txt: run `make locks`"
        )
        for version, _, _ in found[name]:
            assert requirement.specifier.contains(version), f"{text}, locked is {version}"


@pytest.mark.parametrize("lock_file", LOCKS)
def test_what_an_image_never_imports_is_left_out(lock_file: Any) -> None:
    assert not set(lock_file.without) & pins(lock_file.name).keys()


@pytest.mark.parametrize("lock_file", LOCKS)
def test_each_platform_and_python_has_a_single_version(lock_file: Any) -> None:
    for python in ("3.11.9", "3.12.4", "3.13.1", "3.14.0"):
        for machine in ("x86_64", "aarch64"):
            about = {
                "python_full_version": python,
                "python_version": python.rpartition(".")[0],
                "platform_machine": machine,
                "sys_platform": "linux",
            }
            for name, versions in pins(lock_file.name).items():
                fit = [v for v, marker, _ in versions if marker is None or marker.evaluate(about)]
                assert len(fit) <= 1, f"{name} on {python}: {fit}"


def test_extras_of_the_images_are_those_of_the_project() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for lock_file in lock.LOCKS:
        assert set(lock_file.extras) <= extras.keys()
        for name in lock_file.extras:
            # an extra that names another one would have to be taken apart
            assert not any("reveal-telemetry" in text for text in extras[name]), name
