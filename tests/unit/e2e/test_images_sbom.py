"""The SBOMs of the images: valid CycloneDX, and the same as the lock files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from reveal_contract import VERSION
from support.image_scripts import load

locked = load("locked_packages")
licenses = load("licenses")
sbom = load("sbom")

EPOCH = "1760000000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sbom"))


def written(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        assert sbom.main(["--output", str(folder)]) == 0
    return folder


def content(folder: Path, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"reveal-{image}.cdx.json").read_text())
    return found


@pytest.mark.parametrize("image", locked.IMAGES)
def test_the_file_is_valid(folder: Path, image: str) -> None:
    text = (folder / f"reveal-{image}.cdx.json").read_text()
    assert JsonStrictValidator(sbom.SCHEMA).validate_str(text) is None


@pytest.mark.parametrize("image", locked.IMAGES)
def test_it_lists_the_locked_packages_with_hashes_and_licenses(folder: Path, image: str) -> None:
    components = {
        each["name"]: each for each in content(folder, image)["components"] if "purl" in each
    }
    expected = locked.installed(image, locked.markers(locked.default_python()))
    assert set(components) == {package.name for package in expected}
    for package in expected:
        component = components[package.name]
        assert PackageURL.from_string(component["purl"]) == PackageURL(
            "pypi", name=package.name, version=package.version
        )
        assert component["version"] == package.version
        [files] = component["externalReferences"]
        assert {each["content"] for each in files["hashes"]} == set(package.hashes)
        assert component["licenses"]


def test_it_names_the_image_and_its_time(folder: Path) -> None:
    about = content(folder, "operator")["metadata"]
    assert about["component"]["name"] == "reveal-operator"
    assert about["component"]["version"] == VERSION
    assert about["timestamp"].startswith("2025-10-09T08:53:20")


def test_native_code_is_a_part_of_its_package(folder: Path) -> None:
    [numpy] = [
        each for each in content(folder, "analyzer")["components"] if each["name"] == "numpy"
    ]
    assert {each["name"] for each in numpy["components"]} == {
        "OpenBLAS", "libgfortran", "libquadmath",
    }  # fmt: skip


def test_only_the_collector_has_bpf_programs(folder: Path) -> None:
    with_programs = [
        image
        for image in locked.IMAGES
        if "reveal-ledger-bpf" in {each["name"] for each in content(folder, image)["components"]}
    ]
    assert with_programs == ["collector"]


def test_the_same_checkout_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    for file in written(tmp_path).iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes()


def test_the_table_has_a_row_for_each_package(folder: Path) -> None:
    rows = (folder / "licenses.md").read_text().splitlines()
    assert "| certifi |" in "".join(row[:11] for row in rows)
    assert any(row.startswith("| LLVM, in llvmlite |") for row in rows)
    assert all(row.count("|") == 5 for row in rows)


def test_a_license_that_is_not_permitted_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = licenses.Policy(frozenset({"MIT"}), {}, licenses.load().stated, ())
    monkeypatch.setattr(licenses, "load", lambda: strict)
    assert sbom.main(["--output", str(tmp_path / "none")]) == 1
    assert "psutil: the license of psutil, BSD-3-Clause" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
