"""Which programs the control plane runs, when they are rebuilt, and with which Go."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from cluster import binaries, building, golang, modules, pinning
from cluster.daemons import free_ports
from cluster.modules import Module


def program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(binaries.ASSETS_VARIABLE, raising=False)
    return binaries.cache()


def test_the_cache_belongs_to_a_version(cache: Path, tmp_path: Path) -> None:
    assert cache.parent == tmp_path / "reveal" / "kubernetes"
    assert cache.name == modules.KUBERNETES.version("k8s.io/kubernetes")


def test_nothing_is_taken_from_path(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "etcd")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert binaries.missing() == binaries.ALL


def test_assets_of_the_user_come_first_and_the_cache_has_the_rest(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in binaries.ALL:
        program(cache, name)
    mine = [program(tmp_path / "assets", name) for name in binaries.NEEDED]
    (tmp_path / "assets" / "helm").write_text("no program")
    monkeypatch.setenv(binaries.ASSETS_VARIABLE, str(tmp_path / "assets"))
    found = binaries.find()
    assert [found[name] for name in binaries.NEEDED] == mine
    assert found["helm"] == cache / "helm"
    assert binaries.missing() == ()


def test_what_is_built_stays_until_its_sources_change(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "module"
    source.mkdir()
    (source / "go.mod").write_text("module test\n\ngo 1.24.0\n")
    go = program(tmp_path / "go", "go", _GO)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    etcd = building.Program("etcd", Module(source), "./etcd", (("main.version", "v1"),))
    monkeypatch.setattr(building, "programs", lambda: (etcd,))
    messages: list[str] = []
    building.build(messages.append)
    assert (cache / "etcd").read_text().split() == [
        "build", *etcd.flags[:3], *etcd.flags[3].split(),
        "-o", str(cache / "etcd.unfinished"), "./etcd",
    ]  # fmt: skip
    assert [line.split()[0] for line in messages] == ["building", "built"]
    building.build(messages.append)
    assert len(messages) == 2
    (source / "go.mod").write_text("module test\n\ngo 1.24.1\n")
    building.build(messages.append)
    assert len(messages) == 4


_GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.24.0 linux/amd64"; exit; fi
all="$*"
while [ "$1" != -o ]; do shift; done
echo "$all" > "$2"
"""


def test_a_failed_build_is_reported_and_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _GO.replace('all="$*"', "echo no such module >&2; exit 1")
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'go', 'go', text).parent}:/usr/bin:/bin")
    with pytest.raises(golang.BuildError, match=r"could not build etcd: no such module"):
        building.build(lambda _: None)
    assert binaries.missing() == binaries.ALL


def test_without_go_the_error_names_how_to_install_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(golang, "_FOLDERS", ())
    with pytest.raises(golang.BuildError, match="apt install golang-go"):
        building.build(lambda _: None)


def test_an_old_go_fetches_a_release_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module has no execute bits, its go.mod files another name, and may not be written."""
    module = tmp_path / "module"
    for path in ("bin/go", "pkg/tool/linux/compile", "src/_go.mod", "src/cmd/_go.mod", "VERSION"):
        file = module / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        file.chmod(0o444)
    for folder in sorted(module.rglob("*/"), reverse=True):
        folder.chmod(0o555)
    answer = json.dumps({"Dir": str(module)})
    old = f"""#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.19.8 linux/amd64"; exit; fi
echo "$4" > {tmp_path}/asked; echo '{answer}'
"""
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'old', 'go', old).parent}:/usr/bin:/bin")
    found = golang.find("1.24.0", tmp_path / "releases")
    assert (tmp_path / "asked").read_text().startswith("golang.org/toolchain@v0.0.1-go1.24.0.")
    assert found.command == tmp_path / "releases" / "go1.24.0" / "bin" / "go"
    assert found.version == (1, 24, 0)
    for path in ("bin/go", "pkg/tool/linux/compile"):
        assert (tmp_path / "releases/go1.24.0" / path).stat().st_mode & stat.S_IXUSR
    assert (tmp_path / "releases/go1.24.0/src/cmd/go.mod").exists()
    assert (tmp_path / "releases/go1.24.0/src/go.mod").exists()


def test_staging_modules_are_replaced_by_published_modules() -> None:
    origin = {
        "Require": [
            {"Path": "k8s.io/api", "Version": "v0.0.0"},
            {"Path": "k8s.io/klog/v2", "Version": "v2.130.1"},
        ],
        "Replace": [
            {"Old": {"Path": "k8s.io/kms"}, "New": {"Path": "./staging/src/k8s.io/kms"}},
            {"Old": {"Path": "other"}, "New": {"Path": "other", "Version": "v1.0.0"}},
        ],
    }
    unpublished = pinning.unpublished(origin)
    assert unpublished == ["k8s.io/api", "k8s.io/kms"]
    assert pinning.staging("v1.34.4") == "v0.34.4"
    with pytest.raises(golang.BuildError, match=r"should read like v1\.34\.4"):
        pinning.staging("34.4")


def test_the_pinned_modules_have_sums_of_all_they_need() -> None:
    for module in (modules.KUBERNETES, modules.HELM):
        sums = (module.folder / "go.sum").read_text()
        assert module.go.count(".") == 2
        assert "k8s.io/apimachinery v0.34" in sums
    staging = pinning.staging(modules.KUBERNETES.version("k8s.io/kubernetes"))
    assert f"replace k8s.io/api => k8s.io/api {staging}" in modules.KUBERNETES.text


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(20))) == 20
