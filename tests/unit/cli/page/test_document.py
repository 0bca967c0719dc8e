"""The whole page: order, policy, names that others chose, and use without scripts."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode

import pytest

from reveal_cli.page.document import document
from support.finding_factory import largest, scan_finding
from support.html_pages import ParsedPage, page_of

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "<!--",
    "]]>&lt;b&gt;{{7*7}}",
    "\x1b]8;;http://e\x07link\x1b[31m",
    "\u202egnp.exe\u2066",
    "n" * 4096,
)  # fmt: skip


def test_sections_are_in_the_order_in_which_people_ask() -> None:
    page = ParsedPage(document(page_of()))
    assert [each.text for each in page.all("h2")] == [
        "What to do", "Timeline", "Evidence", "Subjects", "Peers", "Configuration",
        "What could not be read", "Data",
    ]  # fmt: skip
    tags = [each.tag for each in page.elements]
    assert tags.index("h1") < tags.index("h2")
    text = page.visible
    assert text.index("waiting for CPU rose") < text.index("Ruled out, and why")


def test_the_policy_allows_this_style_and_this_script_only() -> None:
    page = ParsedPage(document(page_of()))
    [meta] = [each for each in page.all("meta") if "http-equiv" in each.attributes]
    assert meta.attributes["http-equiv"] == "Content-Security-Policy"
    rules = dict(rule.split(" ", 1) for rule in (meta.attributes["content"] or "").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    [style] = page.all("style")
    [script] = [each for each in page.all("script") if "type" not in each.attributes]
    for rule, text in (("style-src", style.text), ("script-src", script.text)):
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_nothing_is_loaded_and_no_attribute_runs_or_styles() -> None:
    page = ParsedPage(document(page_of()))
    for each in page.elements:
        assert each.tag not in {"link", "img", "iframe", "object", "embed", "base"}
        for key, value in each.attributes.items():
            assert not key.startswith("on")
            assert key not in {"style", "src", "srcset", "action"}
            if key == "href":
                assert (value or "").startswith("#")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_adds_no_element_and_reaches_nobody_as_it_is(text: str) -> None:
    hostile = document(page_of([scan_finding(text, text), largest()], name=text))
    harmless = document(page_of([scan_finding("x", "x"), largest()], name="x"))
    assert [e.tag for e in ParsedPage(hostile).elements] == [
        e.tag for e in ParsedPage(harmless).elements
    ]
    assert all(each.isprintable() or each == "\n" for each in hostile)
    assert len(max(re.findall(r"n+", ParsedPage(hostile).visible), key=len)) <= 400


@pytest.mark.parametrize("text", HOSTILE)
def test_the_findings_are_in_the_page_as_they_were(text: str) -> None:
    findings = [scan_finding(text, text)]
    page = ParsedPage(document(page_of(findings, name=text)))
    [block] = page.all("script", id="findings-json")
    assert block.attributes["type"] == "application/json"
    rows = json.loads(block.text)
    assert rows[0] == json.loads(json.dumps(findings[0].to_dict()))
    assert rows[-1]["kind"] == "Configuration"


def test_the_page_is_complete_without_scripts() -> None:
    page = ParsedPage(document(page_of()))
    text = page.visible
    for part in (
        "job lost 26 % of its time", "give the job CPUs of its own", "cpu.forks{job} reached 0/s",
        "kernel.thp: job", "psi cpu some", "waiting for a CPU: job", "not there", "mount it",
        "4 GiB are reserved", "Set vm.nr_hugepages to 0.", "While learning: 1.0 cores busy.",
    ):  # fmt: skip
        assert part in text
    figures = page.all("figure")
    drawn = [each for each in page.all("path") if "figure" in each.parents]
    assert len(drawn) == 3  # two panels and a step time
    assert len(figures) >= len(drawn)
    # controls that need the script are not offered without it
    assert all("hidden" in each.attributes for each in page.all("form"))


def test_tables_pictures_and_controls_have_names() -> None:
    page = ParsedPage(document(page_of()))
    tables = page.all("table")
    assert len(page.all("caption")) == len(tables) > 5
    assert all("scope" in each.attributes for each in page.all("th"))
    for picture in page.all("svg"):
        assert picture.attributes["aria-label"]
        assert picture.attributes["role"] in {"img", "group"}
    for control in page.all("input"):
        assert "label" in control.parents
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.all(landmark)) == 1
    identities = {each.attributes["id"] for each in page.elements if "id" in each.attributes}
    targets = [each.attributes["href"] for each in page.all("a")]
    assert targets
    assert {(target or "#").removeprefix("#") for target in targets} <= identities
    named_by = [each.attributes.get("aria-labelledby") for each in page.all("section")]
    assert set(named_by) <= identities


def test_identities_are_unique() -> None:
    page = ParsedPage(document(page_of([scan_finding("a"), scan_finding("b")])))
    identities = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(identities) == len(set(identities))


def test_a_page_without_findings_has_no_peers() -> None:
    data = page_of()
    empty = type(data)(**{**vars(data), "findings": (), "hints": ()})
    page = ParsedPage(document(empty))
    assert page.all("h1")[0].text == "No finding"
    assert "Nothing is wrong, as far as can be seen" in page.visible
    assert "Peers" not in [each.text for each in page.all("h2")]


def test_a_large_page_stays_small() -> None:
    """Without data it is a small part of 1.5 MB; ten findings of thirty series stay below 3 MB."""
    data = page_of()
    bare = type(data)(
        **{**vars(data), "findings": (), "hints": (), "brush": type(data.brush)(1, 0)}
    )
    assert len(document(bare).encode()) < 100_000
    many = [scan_finding(f"claim {number}") for number in range(10)]
    assert len(document(page_of(many, panels=30)).encode()) < 3_000_000
