"""What is in the images, and that the same checkout gives the same ones."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from images import base
from images.building import IMAGES, Built, Image, build
from images.container import running
from images.pod import Node
from images.store import Store
from reveal_contract import VERSION

# the first test of a session waits for the builds
pytestmark = pytest.mark.timeout(1800)

NAMES = [image.name for image in IMAGES]
USERS = {
    "reveal-collector": "0:0",
    "reveal-operator": "65532:65532",
    "reveal-analyzer": "65532:65532",
}
PACKAGES = {
    "reveal-collector": {"reveal_contract", "reveal_collector"},
    "reveal-operator": {"reveal_contract", "reveal_operator"},
    "reveal-analyzer": {"reveal_contract", "reveal_analyzer"},
}
ABSENT = {
    "reveal-collector": {"numpy", "pandas", "scipy", "scikit-learn", "kubernetes", "redis"},
    "reveal-operator": {"numpy", "pandas", "scipy", "scikit-learn", "redis", "zstandard"},
    "reveal-analyzer": {"pandas", "kopf", "aiohttp", "matplotlib", "pyarrow"},
}
NEVER = {"pip", "setuptools", "wheel", "hatchling", "pytest", "mypy", "uv"}
TOOLS = re.compile(
    r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|cpp|ld|as|strip|make|pip|pip3|cargo|go)(-[\d.]+)?"
)
# pyc of PEP 552: by a hash that is not checked
UNCHECKED = 1
POD = {
    "containers": [{"name": "asked", "args": ["--version"]}],
    "securityContext": {
        "runAsUser": 65532, "runAsGroup": 65532, "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=NAMES)
def built(request: pytest.FixtureRequest, images: dict[str, Built]) -> Built:
    return images[request.param]


@pytest.fixture(scope="module")
def root(built: Built, image_store: Store) -> Iterator[Path]:
    with image_store.mounted(built.full_name) as root:
        yield root


@pytest.fixture
def site(root: Path) -> Path:
    (found,) = root.glob("opt/reveal/lib/python3.*/site-packages")
    return found


def files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for folder, names, others in os.walk(root):
        for name in (*names, *others):
            path = Path(folder, name)
            yield path, path.lstat()


def test_images_have_no_build_tools(root: Path) -> None:
    programs = [path for path, status in files(root) if stat.S_ISREG(status.st_mode) and
                status.st_mode & 0o111 and TOOLS.fullmatch(path.name)]  # fmt: skip
    assert programs == []


def test_images_have_no_build_leftovers(root: Path) -> None:
    for left in ("src", "opt/tools", "root/.cache", "mnt/prepare.sh", "run/secrets/ca"):
        assert not (root / left).exists(), left
    assert not any((root / "var/lib/apt/lists").glob("*Packages*"))
    pip_conf = root / "etc/pip.conf"  # an empty file is what a mount may leave
    assert not pip_conf.exists() or not pip_conf.read_bytes()


def test_files_are_not_world_writable(root: Path) -> None:
    found = [
        path
        for path, status in files(root)
        if (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))
        and status.st_mode & stat.S_IWOTH
        and not status.st_mode & stat.S_ISVTX
    ]
    assert found == []


def test_images_have_no_setuid_files(root: Path) -> None:
    special = stat.S_ISUID | stat.S_ISGID
    found = [
        path
        for path, status in files(root)
        if stat.S_ISREG(status.st_mode) and status.st_mode & special
    ]
    assert found == []


def test_our_files_belong_to_root(root: Path) -> None:
    assert {status.st_uid for _, status in files(root / "opt")} == {0}


def test_byte_code_is_compiled_and_valid(site: Path) -> None:
    sources = list(site.rglob("*.py"))
    assert len(sources) > 100
    for source in sources:
        (compiled,) = (source.parent / "__pycache__").glob(f"{source.stem}.cpython-*.pyc")
        with compiled.open("rb") as file:
            assert int.from_bytes(file.read(8)[4:], "little") == UNCHECKED, compiled


def test_the_standard_library_is_compiled(root: Path) -> None:
    for name in ("os", "json/decoder", "asyncio/base_events", "encodings/utf_8"):
        found = [*root.glob(f"usr/lib/python3.*/{name}.py")]  # Debian's
        found += root.glob(f"usr/local/lib/python3.*/{name}.py")  # the official image's
        (source,) = found
        assert any((source.parent / "__pycache__").glob(f"{source.stem}.cpython-3*.pyc")), name


def test_each_image_has_only_its_distributions(built: Built, site: Path) -> None:
    name = built.image.name
    installed = {
        distribution.metadata["Name"].lower() for distribution in distributions(path=[str(site)])
    }
    assert not installed & (ABSENT[name] | NEVER)
    ours = {path.name for path in site.glob("reveal_*") if path.suffix != ".dist-info"}
    assert ours == PACKAGES[name]
    commands = {path.name for path in (site.parents[2] / "bin").iterdir()}
    assert {command for command in commands if not command.startswith("python")} == {name}
    assert not [path for path in site.rglob("tests") if path.is_dir() and path.parent != site]


def test_the_records_of_pip_match_the_files(site: Path) -> None:
    for distribution in distributions(path=[str(site)]):
        text = distribution.read_text("RECORD")
        assert text, distribution.metadata["Name"]
        for path, _, size in csv.reader(text.splitlines()):
            assert (site / path).exists(), path
            assert not size or (site / path).stat().st_size == int(size), path


def test_images_have_entry_points_and_users(built: Built, image_store: Store) -> None:
    whole = image_store.config(built.full_name)
    config = whole["config"]
    assert config["Entrypoint"] == [built.image.name]
    assert not config.get("Cmd")
    assert config["User"] == USERS[built.image.name]
    assert config["StopSignal"] == "SIGTERM"
    about = {key.rpartition(".")[2]: value for key, value in config["Labels"].items()}
    assert about["title"] == built.image.name
    assert about["version"] == VERSION
    assert about["licenses"] == "Apache-2.0"
    assert not re.search(r"index-url|trusted-host|PIP_", json.dumps(whole))


def test_images_are_small(built: Built) -> None:
    print(f"{built.image.name}: {built.over_base_mib:.1f} MiB over its base")
    assert built.over_base_mib <= built.image.limit_mib


def test_images_report_their_version(
    built: Built, image_store: Store, container_runtime: str
) -> None:
    with running(image_store, built.full_name, POD, Node()) as container:
        assert container.wait(60) == 0, container.log
        assert container.log.strip() == f"{built.image.name} {VERSION}"


@pytest.mark.parametrize("image", IMAGES, ids=NAMES)
def test_the_same_checkout_gives_the_same_image(
    image: Image, images: dict[str, Built], image_store: Store
) -> None:
    again = image.tagged("again")
    with image_store.building():
        build(image_store, base.make(image_store), image, again)
        try:
            assert image_store.digest(again) == image_store.digest(images[image.name].full_name)
        finally:
            image_store.buildah("rmi", "--force", again)
