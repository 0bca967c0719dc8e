"""The complete manifests of example profiles, kept in tests/fixtures/manifests.

``make goldens`` rewrites the manifests; their diff shows what a change affects.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml

from reveal_operator.manifests import owned_manifests
from reveal_operator.spec import Defaults, parse
from support.profile_factory import DEFAULTS, FOLDER, PROFILES, ROOT, profile

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


class Dumper(yaml.SafeDumper):
    """Each object written out: a golden with references is hard to compare by eye."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def text_of(manifests: Iterable[Mapping[str, Any]]) -> str:
    return yaml.dump_all(
        (_readable(manifest) for manifest in manifests), Dumper=Dumper, sort_keys=False, width=100
    )


def _readable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with its settings as a mapping instead of a JSON string."""
    if manifest["kind"] != "ConfigMap":
        return dict(manifest)
    files = {name: json.loads(text) for name, text in manifest["data"].items()}
    return {**manifest, "data": files}


@pytest.mark.parametrize("name", PROFILES)
def test_manifests_equal_their_goldens(name: str) -> None:
    rendered = text_of(owned_manifests(parse(PROFILES[name]), DEFAULTS))
    golden = FOLDER / f"{name}.yaml"
    if os.environ.get("REVEAL_GOLDENS") == "write":
        golden.write_text(rendered)
    assert rendered == golden.read_text(), "`make goldens` rewrites it"


def test_every_golden_has_its_profile() -> None:
    goldens = {path.name for path in FOLDER.glob("*.yaml")}
    assert goldens == {f"{name}{end}" for name in PROFILES for end in (".yaml", ".profile.yaml")}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_become_owned_objects(path: Any) -> None:
    (given,) = yaml.safe_load_all(path.read_text())
    given["metadata"]["uid"] = "0b5e8d2e-1111-4222-8333-444455556666"
    kinds = [child["kind"] for child in owned_manifests(parse(given, DEFAULTS), DEFAULTS)]
    assert kinds[:3] == ["ConfigMap", "DaemonSet", "Deployment"]


def test_nothing_is_shared_between_two_builds() -> None:
    """A change to a manifest does not affect the next build or the defaults."""
    parsed = parse(profile())
    first = owned_manifests(parsed, DEFAULTS)
    before = json.dumps(first)
    for manifest in first:
        _spoil(manifest)
    assert json.dumps(owned_manifests(parsed, DEFAULTS)) == before


def _spoil(thing: Any) -> None:
    if isinstance(thing, dict):
        for value in thing.values():
            _spoil(value)
        thing["spoilt"] = True
    elif isinstance(thing, list):
        for value in thing:
            _spoil(value)
        thing.append("spoilt")


def test_defaults_of_the_operator_alone_make_no_redis() -> None:
    assert Defaults("n", "c", "a").redis is None
