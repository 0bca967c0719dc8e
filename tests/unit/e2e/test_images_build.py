"""How images are built and run here: the checks that need no build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from images import building
from images.building import CONTEXT, IMAGES, ROOT, context_digest, index_settings, pip_conf
from images.pod import ACCOUNT_FOLDER, Node, bounding_set, specification
from reveal_contract import VERSION
from reveal_contract.kube.names import RUN_FOLDER

FILES = ("Dockerfile.analyzer", "Dockerfile.collector")
IMAGE = {"Env": ["PATH=/bin", "TMPDIR=/run"], "User": "65532:65532", "Entrypoint": ["run-it"]}


def test_the_context_is_what_dockerignore_lets_through() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(CONTEXT)
    assert "*" in lines
    assert all((ROOT / name).exists() for name in CONTEXT)


def test_a_digest_of_the_context_stays_the_same() -> None:
    assert context_digest() == context_digest()
    assert re.fullmatch(r"[0-9a-f]{12}", context_digest())


@pytest.mark.parametrize("file", FILES)
def test_an_image_bears_the_version_of_the_code(file: str) -> None:
    (version,) = re.findall(r"^ARG VERSION=(.+)$", (ROOT / file).read_text(), re.MULTILINE)
    assert version == VERSION


def test_both_files_have_the_same_base() -> None:
    bases = {
        re.findall(r"^ARG BASE_IMAGE=.+$", (ROOT / file).read_text(), re.M)[0] for file in FILES
    }
    assert len(bases) == 1


def test_each_image_starts_a_command_of_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for image in IMAGES:
        assert f'ENTRYPOINT ["{image.name}"]' in (ROOT / image.file).read_text()
        assert re.search(rf"^{image.name} = ", text, re.MULTILINE)


def test_what_a_process_writes_goes_to_the_run_folder() -> None:
    text = (ROOT / "Dockerfile.analyzer").read_text()
    assert f"TMPDIR={RUN_FOLDER}\n" in text
    assert re.search(rf"NUMBA_CACHE_DIR={RUN_FOLDER}/numba\s", text)


def test_pip_gets_only_the_index() -> None:
    listing = (
        ":env:.disable-pip-version-check='1'\n"
        ":env:.index-url='https://env.example/simple'\n"
        ":env:.default-timeout='90'\n"
        ":env:.find-links='/opt/wheels'\n"
        "global.index-url='https://file.example/simple'\n"
        "global.cert='/etc/ssl/own.crt'\n"
        "global.trusted-host='a.example\\nb.example'\n"
        "install.user='yes'\n"
    )
    assert index_settings(listing) == {
        "index-url": "https://env.example/simple",
        "timeout": "90",
        "cert": "/etc/ssl/own.crt",
        "trusted-host": "a.example\nb.example",
    }


def test_pip_without_settings_needs_none() -> None:
    assert index_settings("") == {}
    assert pip_conf({}).strip() == "[global]"


def test_a_pip_conf_keeps_percent_signs() -> None:
    assert "index-url = https://u:p%40ss@x/simple" in pip_conf(
        {"index-url": "https://u:p%40ss@x/simple"}
    )


def pod(context: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    return {
        "hostPID": True,
        "containers": [{"name": "one", "securityContext": context or {}, **container}],
        "volumes": [
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "host-proc", "hostPath": {"path": "/proc"}},
            {"name": "settings", "configMap": {"name": "made"}},
        ],
    }


def runtime_spec(
    context: dict[str, Any] | None = None, node: Node | None = None, **container: Any
) -> Any:
    return specification(pod(context, **container), IMAGE, Path("/root"), node or Node())


def test_a_process_follows_image_and_pod() -> None:
    env = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "TMPDIR", "value": "/elsewhere"},
    ]
    node = Node(fields={"spec.nodeName": "n1"}, environment={"HOST": "h"})
    process = runtime_spec(node=node, env=env, args=["--at", "$(NODE)", "$(NEVER)", "$$"])[
        "process"
    ]
    assert process["args"] == ["run-it", "--at", "n1", "$(NEVER)", "$$"]
    assert process["env"] == ["PATH=/bin", "TMPDIR=/elsewhere", "HOST=h", "NODE=n1"]
    assert process["user"] == {"uid": 65532, "gid": 65532}


def test_rights_are_those_of_the_security_context() -> None:
    node = Node(capabilities=("SYS_ADMIN", "PERFMON"))
    root = {"runAsUser": 0}
    assert (
        runtime_spec({"runAsUser": 7, "privileged": True}, node)["process"]["capabilities"][
            "effective"
        ]
        == []
    )
    privileged = runtime_spec({**root, "privileged": True}, node)["process"]
    assert privileged["capabilities"]["bounding"] == ["CAP_SYS_ADMIN", "CAP_PERFMON"]
    assert not privileged["noNewPrivileges"]
    asked = {"drop": ["ALL"], "add": ["PERFMON", "SYSLOG"]}
    single = runtime_spec({**root, "capabilities": asked, "allowPrivilegeEscalation": False}, node)
    assert single["process"]["capabilities"]["permitted"] == ["CAP_PERFMON"]
    assert single["process"]["noNewPrivileges"]


def test_a_read_only_root_and_the_hosts_processes() -> None:
    spec = runtime_spec({"readOnlyRootFilesystem": True})
    assert spec["root"] == {"path": "/root", "readonly": True}
    assert {"type": "pid"} not in spec["linux"]["namespaces"]
    assert {"type": "mount"} in spec["linux"]["namespaces"]


def test_volumes_are_mounted_as_they_are() -> None:
    mounts = [
        {"name": "run", "mountPath": "/run/reveal"},
        {"name": "host-proc", "mountPath": "/host/proc", "readOnly": True},
        {"name": "settings", "mountPath": "/etc/reveal", "readOnly": True},
    ]
    node = Node(volumes={"settings": Path("/made")}, account=Path("/token"))
    by_target = {
        mount["destination"]: mount
        for mount in runtime_spec(node=node, volumeMounts=mounts)["mounts"]
    }
    run = by_target["/run/reveal"]
    assert run["type"] == "tmpfs" and {"size=64m", "uid=65532"} <= {*run["options"]}
    assert by_target["/host/proc"]["source"] == "/proc"
    assert "ro" in by_target["/host/proc"]["options"]
    assert by_target["/etc/reveal"]["source"] == "/made"
    assert by_target[ACCOUNT_FOLDER]["source"] == "/token"


def test_capabilities_are_read_from_the_kernels_mask() -> None:
    assert bounding_set("Name:\tx\nCapEff:\t0000000000000003\n") == ("CHOWN", "DAC_OVERRIDE")
    assert bounding_set("CapEff:\t0000000000000000\n") == ()
    assert "CHECKPOINT_RESTORE" in bounding_set("CapEff:\t000001ffffffffff\n")


def test_another_time_is_another_input(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {context_digest()}
    for epoch in (1, 2):
        monkeypatch.setattr(building, "epoch", lambda epoch=epoch: epoch)
        digests.add(context_digest())
    assert len(digests) == 3
