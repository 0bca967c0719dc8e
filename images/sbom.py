"""Write a CycloneDX SBOM for each image, and a table of the licenses of their packages.

They list the Python packages of the lock files, the native code inside them, and Reveal itself.
What the base image brings, Debian's packages and Python, is not in them: scan the built image for
it.  The same checkout gives the same files, if SOURCE_DATE_EPOCH is set.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import licenses
import locked_packages
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from licenses import Policy
from locked_packages import IMAGES, LockedPackage
from packageurl import PackageURL

from reveal_contract import VERSION

COMMAND = "make sbom"
SCHEMA = SchemaVersion.V1_6
# The collector's BPF programs; its other code has the license of the project
BPF_PROGRAMS = ("reveal-ledger-bpf", "GPL-2.0-only OR BSD-2-Clause")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files and return 0; 1 if a license is unknown or not permitted."""
    arguments = command_parser().parse_args(argv)
    policy, environment = licenses.load(), locked_packages.markers(arguments.python)
    contents = {image: locked_packages.installed(image, environment) for image in IMAGES}
    if wrong := licenses.problems(sorted(names(contents)), policy):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    arguments.output.mkdir(parents=True, exist_ok=True)
    for image, packages in contents.items():
        file = arguments.output / f"reveal-{image}.cdx.json"
        file.write_text(to_json(document(image, packages, policy, build_time())))
    (arguments.output / "licenses.md").write_text(license_table(contents, policy))
    print(f"written: {len(contents)} SBOMs and licenses.md in {arguments.output}")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    default = locked_packages.ROOT / "build" / "sbom"
    parser.add_argument("--output", type=Path, default=default, metavar="FOLDER")
    parser.add_argument(
        "--python", default=locked_packages.default_python(), metavar="VERSION",
        help="the Python of the base image, which decides between versions of a package"
        " (default: that of Dockerfile.collector)",
    )  # fmt: skip
    return parser


def names(contents: Mapping[str, Iterable[LockedPackage]]) -> set[str]:
    """Return the names of the packages of all images."""
    return {package.name for packages in contents.values() for package in packages}


def build_time() -> datetime:
    """Return the time of SOURCE_DATE_EPOCH, else the present one."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return datetime.fromtimestamp(int(epoch), UTC)
    return datetime.now(UTC)


def document(
    image: str, packages: Iterable[LockedPackage], policy: Policy, created: datetime
) -> Bom:
    """Return the SBOM of an image."""
    subject = _component(f"reveal-{image}", "Apache-2.0", VERSION, kind=ComponentType.CONTAINER)
    parts = [_of_package(package, policy) for package in packages]
    if image == "collector":
        parts.append(_component(*BPF_PROGRAMS, VERSION))
    bom = Bom(components=parts, metadata=BomMetaData(component=subject, timestamp=created))
    bom.metadata.tools.components.add(this_component())
    content = "\n".join(sorted(str(part.bom_ref) for part in parts))
    bom.serial_number = uuid5(NAMESPACE_URL, f"reveal-{image} {VERSION}\n{content}")
    bom.register_dependency(subject, parts)
    return bom


def _of_package(package: LockedPackage, policy: Policy) -> Component:
    purl = PackageURL("pypi", name=package.name, version=package.version)
    expression = licenses.license_of(package.name, policy)
    component = _component(package.name, expression, package.version, purl=purl)
    component.external_references.add(_files(package))
    for native in policy.native_of(package.name):
        component.components.add(
            _component(native.name, native.license, within=f"{purl.to_string()}#")
        )
    return component


def _component(
    name: str,
    expression: str,
    version: str | None = None,
    *,
    kind: ComponentType = ComponentType.LIBRARY,
    purl: PackageURL | None = None,
    within: str = "",
) -> Component:
    reference = purl.to_string() if purl else f"{within}{name}"
    stated = [LicenseFactory().make_from_string(expression)]
    return Component(
        name=name, version=version, type=kind, purl=purl, bom_ref=reference, licenses=stated
    )


def _files(package: LockedPackage) -> ExternalReference:
    """Return the files of a release with their hashes: pip installs the one that fits."""
    return ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"pkg:pypi/{package.name}@{package.version}"),
        comment="SHA-256 of each file of this release; the image has one of them",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in package.hashes],
    )


def to_json(bom: Bom) -> str:
    """Return the document as CycloneDX JSON."""
    text: str = make_outputter(bom, OutputFormat.JSON, SCHEMA).output_as_string(indent=2)
    return f"{text}\n"


def license_table(contents: Mapping[str, Iterable[LockedPackage]], policy: Policy) -> str:
    """Return a Markdown table: package, version, license, images; native code below its package."""
    images: dict[tuple[str, str], list[str]] = {}
    for image, packages in contents.items():
        for package in packages:
            images.setdefault((package.name, package.version), []).append(image)
    lines = ["| package | version | license | images |", "|---|---|---|---|"]
    for (name, version), users in sorted(images.items()):
        expression = licenses.license_of(name, policy)
        lines.append(f"| {name} | {version} | {expression} | {', '.join(users)} |")
        lines += [
            f"| {native.name}, in {name} | | {native.license} | {', '.join(users)} |"
            for native in policy.native_of(name)
        ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
