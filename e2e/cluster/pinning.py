"""Writes go.mod and go.sum for another version of Kubernetes or Helm.

``k8s.io/kubernetes`` requires its staging modules (k8s.io/api and so on) at v0.0.0 and finds them
in its own folders, which counts for its own builds only: whoever else builds it must replace each
by the published module, v0.MINOR.PATCH of the same release.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from cluster import golang, modules
from cluster.building import BuildError, programs
from cluster.golang import Go
from cluster.modules import Module

_UNPUBLISHED = "v0.0.0"
_ETCD_CLIENT = "go.etcd.io/etcd/client/v3"


def pin(cache: Path, kubernetes: str = "", helm: str = "", coredns: str = "") -> None:
    """Pin the versions given (``v1.34.4``, ``v3.19.0``); ``BuildError`` where one is none."""
    if kubernetes:
        _write(modules.KUBERNETES, cache, modules.KUBERNETES_PATH, kubernetes)
    if helm:
        _write(modules.HELM, cache, modules.HELM_PATH, helm)
    if coredns:
        _write(modules.COREDNS, cache, modules.COREDNS_PATH, coredns)


def _write(module: Module, cache: Path, path: str, version: str) -> None:
    go = golang.find(module.go, cache)
    origin = _origin(go, module, path, version)
    required = {path: version}
    replaced = {item: staging(version) for item in unpublished(origin)}
    if module is modules.KUBERNETES:
        # the server of the client that the API server is made with
        required[modules.ETCD_PATH] = _required(origin, _ETCD_CLIENT)
    packages = [
        program.package if program.package.startswith(".") else f"{program.package}@{version}"
        for program in programs()
        if program.module == module
    ]
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "module"
        shutil.copytree(module.folder, draft, ignore=shutil.ignore_patterns("go.*"))
        (draft / "go.mod").write_text(_go_mod(module, origin["Go"], required, replaced))
        # resolves every indirect requirement of these programs and writes all sums
        go.run("get", *packages, folder=draft, check=f"{path} {version} does not resolve")
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(draft / name, module.folder / name)


def _origin(go: Go, module: Module, path: str, version: str) -> dict[str, Any]:
    """The go.mod of a published module, as ``go mod edit -json`` tells it."""
    output = go.run(
        "mod", "download", "-json", f"{path}@{version}",
        folder=module.folder.parent, check=f"no {path} {version}",
    )  # fmt: skip
    module_file = go.run(
        "mod", "edit", "-json", json.loads(output)["GoMod"],
        folder=module.folder.parent, check=f"{path} {version} has no readable go.mod",
    )  # fmt: skip
    origin: dict[str, Any] = json.loads(module_file)
    return origin


def unpublished(origin: dict[str, Any]) -> list[str]:
    """Modules that a go.mod, as JSON, finds in folders of its own."""
    required = (item for item in origin["Require"] if item["Version"] == _UNPUBLISHED)
    folders = (
        item["Old"] for item in origin.get("Replace") or () if not item["New"].get("Version")
    )
    return sorted({item["Path"] for item in (*required, *folders)})


def staging(version: str) -> str:
    """Of the staging modules of a release: ``v0.34.4`` of ``v1.34.4``."""
    major, _, rest = version.removeprefix("v").partition(".")
    if major != "1" or not rest:
        raise BuildError(f"{version} is no release of Kubernetes: it should read like v1.34.4")
    return f"v0.{rest}"


def _required(origin: dict[str, Any], path: str) -> str:
    for item in origin["Require"]:
        if item["Path"] == path:
            version: str = item["Version"]
            return version
    raise BuildError(f"this Kubernetes requires no {path}")


def _go_mod(module: Module, go: str, required: dict[str, str], replaced: dict[str, str]) -> str:
    name = module.text.split("\n", 1)[0]
    lines = [name, "", f"go {go}", ""]
    lines += [f"replace {path} => {path} {version}" for path, version in replaced.items()]
    lines += [f"require {path} {version}" for path, version in required.items()]
    return "\n".join(lines) + "\n"
