"""The audit of the lock files: real runs of pip-audit against a service of advisories."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support.image_scripts import load

audit = load("audit")

TODAY = date(2026, 6, 1)
FLAW = {
    "id": "PYSEC-2026-1",
    "aliases": ["CVE-2026-1"],
    "summary": "a flaw",
    "affected": [
        {
            "package": {"name": "numpy", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.5.0"}]}],
        }
    ],
}


class Advisories(BaseHTTPRequestHandler):
    """An OSV service that knows one flaw of numpy 2.4.6."""

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        flawed = (query["package"]["name"], query["version"]) == ("numpy", "2.4.6")
        self.answer(json.dumps({"vulns": [FLAW]} if flawed else {}).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class LoginPage(Advisories):
    """A proxy that answers everything with a page."""

    def do_POST(self) -> None:
        self.answer(b"<html>please log in</html>")


@contextmanager
def service(handler: type[Advisories]) -> Iterator[list[str]]:
    """Yield the arguments that let pip-audit ask this service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield ["-s", "osv", "--osv-url", f"http://127.0.0.1:{server.server_port}/v1/query"]
        finally:
            server.shutdown()


def test_every_locked_version_is_checked_whatever_its_markers() -> None:
    pins = audit.pins()
    assert len({version for name, version in pins if name == "numpy"}) == 2
    assert "hatchling" in {name for name, _ in pins}
    parts = audit.distinct(sorted(pins))
    assert sorted(pin for part in parts for pin in part.items()) == sorted(pins)


def test_a_flaw_of_the_older_of_two_locked_versions_is_found() -> None:
    with service(Advisories) as arguments:
        report = audit.audit([("numpy", "2.4.6"), ("numpy", "2.5.5"), ("six", "1.17.0")], arguments)
    [found] = report.vulnerabilities
    assert found.package == ("numpy", "2.4.6")
    assert set(found.ids) == {"PYSEC-2026-1", "CVE-2026-1"}
    assert found.fixes == ("2.5.0",)
    assert report.skipped == ()


@pytest.mark.parametrize("arguments", [["-s", "osv", "--osv-url", "http://127.0.0.1:1/"], None])
def test_without_a_service_nothing_fails(
    arguments: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with service(LoginPage) as login:
        assert audit.main(arguments or login) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("audit: not checked, as no advisories can be had: ")
    assert len(line) < 250


def test_a_service_that_knows_no_package_is_no_service() -> None:
    """pip-audit calls this a success: a mirror without advisories looks as if all were well."""
    with pytest.raises(audit.UnreachableError, match="knows none of 2 packages"):
        audit.report([{"name": name, "skip_reason": "not found"} for name in ("a", "b")])


def test_a_package_that_is_not_known_is_named() -> None:
    report = audit.report([{"name": "a", "skip_reason": "x"}, {"name": "b", "version": "1"}])
    lines, failed = audit.verdict(report, [], TODAY)
    assert lines == ["not checked, the service does not know it: a"]
    assert not failed


def test_an_error_of_the_tool_is_a_failure() -> None:
    with pytest.raises(audit.AuditError, match="invalid"):
        audit.audit([("six", "1.17.0")], ["--format", "nonsense"])


FOUND = audit.Vulnerability(("numpy", "2.4.6"), ("PYSEC-2026-1", "CVE-2026-1"), ("2.5.0",))
UNFIXED = audit.Vulnerability(("six", "1.17.0"), ("CVE-2026-2",), ())


def verdict(*found: Any, until: date | None = None) -> tuple[list[str], bool]:
    ignored = [audit.Ignored("CVE-2026-1", "not reached", until)] if until else []
    lines, failed = audit.verdict(audit.Report(found, ()), ignored, TODAY)
    return list(lines), bool(failed)


def test_a_flaw_with_a_known_fix_fails() -> None:
    line = "numpy 2.4.6: PYSEC-2026-1, CVE-2026-1; fixed in 2.5.0"
    assert verdict(FOUND) == ([line], True)


def test_a_flaw_without_a_fix_is_printed_only() -> None:
    assert verdict(UNFIXED) == (["six 1.17.0: CVE-2026-2; no fix is known"], False)


def test_an_entry_counts_until_its_day_has_passed() -> None:
    lines, failed = verdict(FOUND, until=TODAY)
    assert lines[0].endswith("; ignored until 2026-06-01: not reached")
    assert not failed
    lines, failed = verdict(FOUND, until=date(2026, 5, 31))
    assert lines[0].endswith("; was ignored until 2026-05-31: not reached")
    assert failed


def test_an_entry_that_is_needed_no_more_is_named() -> None:
    lines, failed = verdict(until=TODAY)
    assert lines == ["ignored-vulnerabilities.toml: CVE-2026-1 is not found any more: remove it"]
    assert not failed
    assert verdict() == (["audit: no known vulnerability"], False)


@pytest.mark.parametrize(
    "entry",
    [
        'id = "CVE-2026-1"\nuntil = 2026-06-01',
        'id = "CVE-2026-1"\nreason = " "\nuntil = 2026-06-01',
        'id = "CVE-2026-1"\nreason = "x"',
        'id = "CVE-2026-1"\nreason = "x"\nuntil = "soon"',
        'id = "CVE-2026-1"\nreason = "x"\nuntil = 2026-06-01T00:00:00Z',
        "id = ",
    ],
)
def test_an_entry_needs_a_reason_and_a_day(entry: str) -> None:
    with pytest.raises(audit.AuditError, match=r"ignored-vulnerabilities\.toml"):
        audit.read_ignored(f"[[ignored]]\n{entry}\n")


def test_the_file_of_the_project_is_complete() -> None:
    audit.read_ignored(audit.IGNORE_FILE.read_text())
    [entry] = audit.read_ignored('[[ignored]]\nid = "A"\nreason = "b"\nuntil = 2026-06-01\n')
    assert entry == audit.Ignored("A", "b", date(2026, 6, 1))
