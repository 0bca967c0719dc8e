"""The lock files as the SBOMs and the audit read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.image_scripts import FOLDER, load

locked = load("locked_packages")

NAMES = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,2}", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,3}){0,3}(rc[0-9]|\.post[0-9])?", fullmatch=True)
MARKERS = st.sampled_from(["", 'python_full_version < "3.12"', 'sys_platform == "linux"'])
DIGESTS = st.lists(st.text("0123456789abcdef", min_size=64, max_size=64), min_size=1, max_size=3)
PACKAGES = st.builds(
    locked.LockedPackage, name=NAMES, version=VERSIONS, marker=MARKERS, hashes=DIGESTS.map(tuple)
)


def as_text(package: locked.LockedPackage) -> str:
    marker = f" ; {package.marker}" if package.marker else ""
    hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in package.hashes)
    return f"{package.name}=={package.version}{marker}{hashes}\n"


@given(st.lists(PACKAGES, max_size=4))
def test_what_is_written_is_read(packages: list[locked.LockedPackage]) -> None:
    text = "# a comment\n#    make locks\n" + "".join(map(as_text, packages))
    assert locked.parse(text) == packages


@pytest.mark.parametrize("name", locked.LOCKS)
def test_every_hash_of_a_lock_file_is_read(name: str) -> None:
    text = (FOLDER / "locks" / f"{name}.txt").read_text()
    packages = locked.read(name)
    hashes = [digest for package in packages for digest in package.hashes]
    assert hashes == re.findall(r"sha256:([0-9a-f]{64})", text)
    assert all(package.hashes for package in packages)


@pytest.mark.parametrize(
    "line", ["numpy", "numpy>=2", "numpy==2.*", "numpy==2.0,!=2.1", "-e .", "numpy @ file:///tmp/x"]
)
def test_a_line_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(locked.LockFormatError, match=re.escape(line.partition("==")[0][:3])):
        locked.parse(f"{line}\n")


@pytest.mark.parametrize("python", ["3.11.99", "3.12.1", "3.13.0", "3.14.2"])
@pytest.mark.parametrize("image", locked.IMAGES)
def test_an_image_has_a_single_version_of_a_package(image: str, python: str) -> None:
    names = [package.name for package in locked.installed(image, locked.markers(python))]
    assert names
    assert len(set(names)) == len(names)


def test_the_python_of_the_base_image_selects_the_version() -> None:
    def numpy(python: str) -> str:
        [found] = [
            package.version
            for package in locked.installed("analyzer", locked.markers(python))
            if package.name == "numpy"
        ]
        return str(found)

    assert numpy("3.11.4") != numpy("3.12.0")
    assert re.fullmatch(r"3\.\d+\.99", locked.default_python())
