"""Check the packages of the lock files for known vulnerabilities, with pip-audit.

Fails for a vulnerability with a known fix, unless images/ignored-vulnerabilities.toml names it with
a reason and a day that has not passed.  Succeeds, and says so, where no advisories can be had.
Arguments are given to pip-audit, for example ``--vulnerability-service osv``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import locked_packages
from locked_packages import LOCKS, ROOT

IGNORE_FILE = ROOT / "images" / "ignored-vulnerabilities.toml"
SOCKET_SECONDS = 10
# about 50 requests; an advisory service that takes longer is as good as none
LIMIT_SECONDS = 120
MESSAGE_CHARACTERS = 160
# how pip-audit reports that the network or the service is in trouble
_NO_SERVICE = re.compile(
    r"requests\.exceptions\.|\b(ConnectionError|ServiceError)\b|Could not connect|not redirecting"
)

Pin = tuple[str, str]  # name and version


class UnreachableError(Exception):
    """The advisory service gives no answer; the text says which error there was."""


class AuditError(Exception):
    """The audit itself failed; the text says why."""


@dataclass(frozen=True)
class Ignored:
    """A vulnerability that does not count up to and including the day ``until``."""

    id: str
    reason: str
    until: date


@dataclass(frozen=True)
class Vulnerability:
    """A vulnerability of a locked package; ``ids`` are its id and its aliases."""

    package: Pin
    ids: tuple[str, ...]
    fixes: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixes)}" if self.fixes else "no fix is known"
        return f"{self.package[0]} {self.package[1]}: {', '.join(self.ids)}; {remedy}"


@dataclass(frozen=True)
class Report:
    """What is known of the packages, and the packages of which nothing is known."""

    vulnerabilities: tuple[Vulnerability, ...]
    skipped: tuple[str, ...]


def main(arguments: Sequence[str] = ()) -> int:
    """Print what was found; return 1 if the check fails."""
    try:
        ignored = read_ignored(IGNORE_FILE.read_text())
        found = audit(sorted(pins()), arguments)
    except UnreachableError as error:
        print(f"audit: not checked, as no advisories can be had: {error}")
        return 0
    except AuditError as error:
        print(f"audit: {error}", file=sys.stderr)
        return 1
    lines, failed = verdict(found, ignored, datetime.now(UTC).date())
    print("\n".join(lines))
    return int(failed)


def pins() -> set[Pin]:
    """Return every package and version of all lock files, whatever its markers."""
    return {(each.name, each.version) for lock in LOCKS for each in locked_packages.read(lock)}


def read_ignored(text: str) -> list[Ignored]:
    """Return the entries of the ignore file; raise ``AuditError`` for an incomplete one."""
    try:
        rows = tomllib.loads(text).get("ignored", [])
    except tomllib.TOMLDecodeError as error:
        raise AuditError(f"{IGNORE_FILE.name}: {error}") from None
    return [_entry(row) for row in rows]


def _entry(row: dict[str, Any]) -> Ignored:
    entry = row.get("id"), row.get("reason"), row.get("until")
    match entry:
        case str(name), str(reason), date() as until if (
            name and reason.strip() and not isinstance(until, datetime)
        ):
            return Ignored(name, reason, until)
    raise AuditError(f"{IGNORE_FILE.name}: an entry needs id, reason and until (a day): {row}")


def audit(packages: Iterable[Pin], arguments: Sequence[str] = ()) -> Report:
    """Return what pip-audit says with these arguments.

    Raises ``UnreachableError`` or ``AuditError``.
    """
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(distinct(packages)):
            file = Path(folder, f"{number}.txt")
            file.write_text("".join(f"{name}=={version}\n" for name, version in content.items()))
            rows += _run(file, arguments)
    return report(rows)


def distinct(packages: Iterable[Pin]) -> list[dict[str, str]]:
    """Return versions by name, in several parts: pip-audit refuses two versions of a package."""
    parts: list[dict[str, str]] = []
    for name, version in packages:
        free = next((part for part in parts if name not in part), None)
        if free is None:
            parts.append(free := {})
        free[name] = version
    return parts


def _run(requirements: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    command = [
        sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json",
        "--progress-spinner", "off", "--timeout", str(SOCKET_SECONDS), *arguments,
        "--requirement", requirements,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"no answer within {LIMIT_SECONDS} s") from None
    return parse(done.stdout, done.stderr)


def parse(output: str, errors: str) -> list[dict[str, Any]]:
    """Return what pip-audit printed as JSON for each package.

    Raises ``UnreachableError`` if it printed nothing and its errors are of the network or of the
    service, ``AuditError`` for other errors.
    """
    if output.strip():
        rows: list[dict[str, Any]] = json.loads(output)["dependencies"]
        return rows
    last = (errors.strip().splitlines() or ["pip-audit printed nothing"])[-1]
    message = textwrap.shorten(last, MESSAGE_CHARACTERS, placeholder="...")
    raise (UnreachableError if _NO_SERVICE.search(errors) else AuditError)(message)


def report(rows: Sequence[dict[str, Any]]) -> Report:
    """Return what the rows of pip-audit say.

    Raises ``UnreachableError`` if the service knows none of the packages, as a mirror without
    advisories does: pip-audit itself calls that a success.
    """
    skipped = tuple(row["name"] for row in rows if "skip_reason" in row)
    if len(skipped) == len(rows):
        raise UnreachableError(f"the service knows none of {len(rows)} packages")
    return Report(tuple(_vulnerabilities(rows)), skipped)


def _vulnerabilities(rows: Iterable[dict[str, Any]]) -> Iterator[Vulnerability]:
    for row in rows:
        for found in row.get("vulns", ()):
            ids = (found["id"], *found.get("aliases", ()))
            fixes = tuple(found.get("fix_versions", ()))
            yield Vulnerability((row["name"], row["version"]), ids, fixes)


def verdict(found: Report, ignored: Sequence[Ignored], today: date) -> tuple[list[str], bool]:
    """Return the lines to print, and whether the check fails."""
    lines, failed = [], False
    for each in found.vulnerabilities:
        entry = next((rule for rule in ignored if rule.id in each.ids), None)
        valid = entry is not None and entry.until >= today
        failed |= bool(each.fixes) and not valid
        lines.append(f"{each}{_remark(entry, valid)}")
    lines += [f"not checked, the service does not know it: {name}" for name in found.skipped]
    known = {name for each in found.vulnerabilities for name in each.ids}
    lines += [
        f"{IGNORE_FILE.name}: {rule.id} is not found any more: remove it"
        for rule in ignored
        if rule.id not in known
    ]
    return lines or ["audit: no known vulnerability"], failed


def _remark(entry: Ignored | None, valid: bool) -> str:
    if entry is None:
        return ""
    if valid:
        return f"; ignored until {entry.until}: {entry.reason}"
    return f"; was ignored until {entry.until}: {entry.reason}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
