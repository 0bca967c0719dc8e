"""Takes the pictures of the documentation from a real recording, with a real Chromium.

    make pictures

The recording is that of a training job on an H100 beside which faults were injected
(``tests/fixtures/gpu_faults``).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from reveal_cli.atomic_file import write_atomically
from reveal_cli.output_files import jsonl
from reveal_cli.page_data.finding_parts import Judged
from reveal_cli.recording_analysis import judge
from reveal_cli.report_file import page
from reveal_cli.scan_directory import FINDINGS, REPORT, SUMMARY
from reveal_cli.ui.scan_folder import ScanFolder
from reveal_cli.ui.server import UiServer
from reveal_contract.settings import AnalyzerSettings
from support.browser import chromium, program, visit

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests/fixtures/gpu_faults/gpu-1.rvl"
FOLDER = Path(__file__).parent
_VIEW = {"width": 1100, "height": 860}


def main() -> None:
    """Take all pictures; exit code 1 without Chromium."""
    if not program():
        sys.exit("there is no Chromium here: install it (apt install chromium)")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        os.chdir(folder)  # the page of all findings has the name of their folder
        scans = Path("scans")
        scans.mkdir()
        scan = _scan(scans.absolute() / "gpu-1")
        url = (scan / REPORT).as_uri()
        _picture(browser, url, "report-light", "light")
        _picture(browser, url, "report-dark", "dark")
        _picture(browser, url, "evidence", "light", selector="#finding-1")
        with _served(scans) as address:
            _picture(browser, address, "ui", "light")


def _scan(directory: Path) -> Path:
    """Write the files of a scan that made the recording."""
    directory.mkdir()
    judged = judge(RECORDING, AnalyzerSettings())
    findings = list(judged.findings)
    whole = Judged(RECORDING, RECORDING.stem, findings, judged.hints, judged.coverage)
    write_atomically(directory / FINDINGS, [jsonl(findings)])
    summary = {"node": findings[0].node_name}
    write_atomically(directory / SUMMARY, [json.dumps(summary)])
    write_atomically(directory / REPORT, [page(whole)])
    return directory


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the scans of a folder; the address has the token."""
    with UiServer(ScanFolder(folder), 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.url
        server.shutdown()


def _picture(browser: Browser, url: str, name: str, scheme: str, selector: str = "") -> None:
    """Take a picture of what a page shows first, or of one element."""
    with visit(browser, url, color_scheme=scheme, viewport=_VIEW) as opened:
        if selector:
            opened.page.locator(selector).scroll_into_view_if_needed()
        opened.page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
