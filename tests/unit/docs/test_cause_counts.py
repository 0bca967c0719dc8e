"""The numbers of causes that pages state are those of the causes that Reveal knows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from reveal_analyzer.hypotheses import loader
from reveal_contract.finding import Severity

ROOT = Path(__file__).parents[3]
RULES = loader.load(())


def text(page: str) -> str:
    return (ROOT / "docs/explanation" / page).read_text()


def test_the_page_on_severity_counts_the_signatures_of_each() -> None:
    counts = Counter(rule.certain.severity for rule in RULES if rule.certain)
    words = {"seven": 7}
    rows = re.findall(
        r"^\| \*\*(\w+)\*\* \|.*?one of (\w+) signatures", text("severity-and-confidence.md"), re.M
    )
    assert {Severity(name): int(words.get(number, number)) for name, number in rows} == counts


def test_the_page_on_decisions_counts_the_causes_with_a_signature() -> None:
    match = re.search(r"(\d+) of the (\d+) known causes", text("how-it-decides.md"))
    assert match is not None
    assert tuple(map(int, match.groups())) == (
        sum(bool(rule.certain) for rule in RULES),
        len(RULES),
    )
