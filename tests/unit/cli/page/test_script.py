"""The script of a page: small, and without a way from texts to markup."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reveal_cli import page

SCRIPT = Path(page.__file__).with_name("script.js")


def test_the_script_is_short_and_makes_no_markup_from_texts() -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) < 400
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "Function(", "setTimeout(", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
        assert sink not in text


def test_every_function_has_types() -> None:
    lines = SCRIPT.read_text().splitlines()
    functions = [n for n, line in enumerate(lines) if re.match(r"\s+function \w+\(\w", line)]
    assert functions
    for number in functions:
        assert lines[number - 1].strip().endswith("*/"), lines[number]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_parses() -> None:
    subprocess.run(["node", "--check", str(SCRIPT)], check=True)
