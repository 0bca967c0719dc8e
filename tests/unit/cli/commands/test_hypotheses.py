"""``reveal hypotheses``: the list, a single one, checks of files, and the generated pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reveal_analyzer.hypotheses.json_schema import json_schema
from reveal_analyzer.hypotheses.loader import load, parse
from reveal_analyzer.hypotheses.page import page
from reveal_analyzer.hypotheses.parser import plain
from reveal_cli.__main__ import main
from reveal_cli.errors import DONE, ERROR, USAGE

DOCS = Path(__file__).parents[4] / "docs"
MINE = """version: 1
hypotheses:
  - {name: Mine, subsystem: CPU, claim: c, remediation: r., expects: [{metric: cpu.steal}]}
  - {name: OOMKill, subsystem: Memory, claim: c, remediation: r., expects: [{metric: cpu.busy}]}
  - {name: ForkStorm, disabled: true}
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = DONE) -> str:
    assert main(["hypotheses", *arguments]) == code
    out, err = capsys.readouterr()
    return out if code == DONE else err


def test_the_list_has_every_name_and_marks_certain_hypotheses(
    capsys: pytest.CaptureFixture[str], mine: str, own_signals: None
) -> None:
    lines = printed(capsys, "--file", mine).splitlines()
    names = {line[2:].split()[0]: line[0] for line in lines if line[:1] in "* " and line.strip()}
    for rule in load((mine,)):
        assert names[rule.name] == ("*" if rule.certain else " "), rule.name
    assert "ForkStorm" not in names
    assert f"[{mine}]" in " ".join(lines)


def test_a_single_hypothesis_is_printed_in_full(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    text = " ".join(printed(capsys, "swapping").split())
    (rule,) = (rule for rule in load() if rule.name == "Swapping")
    for words in (
        rule.claim, rule.remediation, rule.reference, "High, in 3 of 5 seconds",
        *(f"{item.metric}" for item in (*rule.expects, *rule.symptoms)),
        *(item.why for item in rule.expects), *(rule.subjects or ()), *rule.victims,
    ):  # fmt: skip
        assert words in text, words


def test_an_unknown_name_is_a_usage_error_with_a_hint(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert "is OOMKill meant?" in printed(capsys, "oom", code=USAGE)
    assert "`reveal hypotheses` lists all" in printed(capsys, "zzz", code=USAGE)


def test_json_has_the_fields_of_the_files(
    capsys: pytest.CaptureFixture[str], mine: str, own_signals: None
) -> None:
    rows = json.loads(printed(capsys, "--json", "--file", mine))
    assert {row.pop("name"): row.pop("source") for row in rows}["Mine"] == mine
    document = json.loads(printed(capsys, "OOMKill", "--json"))
    assert document.pop("source") == "memory.yaml"
    (rule,) = parse(json.dumps({"version": 1, "hypotheses": [document]}), "x")
    assert rule in load()


def test_a_check_lists_what_a_file_changes(
    capsys: pytest.CaptureFixture[str], mine: str, own_signals: None
) -> None:
    lines = printed(capsys, "--check", mine).splitlines()
    assert lines == [
        f"{mine}: usable; adds Mine; replaces OOMKill", "taken away: ForkStorm"
    ]  # fmt: skip


def test_a_file_that_cannot_be_used_fails_the_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own_signals: None
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(MINE.replace("cpu.steal", "cpu.stael"))
    text = printed(capsys, "--check", str(path), code=ERROR)
    assert text == (
        f"reveal: {path}: Mine: expects[0]: metric: cpu.stael is not in the catalogue;"
        " did you mean cpu.steal?\n"
    )


def test_the_pages_are_current(capsys: pytest.CaptureFixture[str], own_signals: None) -> None:
    rendered = printed(capsys, "--markdown")
    assert rendered == page(load())
    assert rendered == (DOCS / "reference/hypotheses-list.md").read_text(), "run `make docs`"
    schema = printed(capsys, "--schema")
    assert schema == (DOCS / "reference/hypotheses.schema.json").read_text(), "run `make docs`"


def test_the_example_of_the_guide_can_be_used() -> None:
    guide = (DOCS / "how-to/add-a-cause.md").read_text()
    text = guide.partition("```yaml\n")[2].partition("```")[0]
    assert [entry.name for entry in parse(text, "guide")] == ["LicenceServerStorm", "ForkStorm"]


def fits(value: Any, schema: dict[str, Any]) -> bool:  # noqa: PLR0911 - a case each
    """Check a value against the subset of JSON Schema that the schema uses."""
    if "anyOf" in schema and "type" not in schema:
        return any(fits(value, alternative) for alternative in schema["anyOf"])
    if "const" in schema:
        return value == schema["const"] and type(value) is type(schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
    if schema["type"] in ("number", "integer"):
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return numeric and value > schema.get("exclusiveMinimum", float("-inf"))
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if schema["type"] == "array":
        enough = len(value) >= schema.get("minItems", 0)
        return enough and all(fits(each, schema["items"]) for each in value)
    if schema["type"] != "object":
        return True
    known = schema["properties"]
    return (
        all(name in value for name in schema["required"])
        and (schema["additionalProperties"] or all(name in known for name in value))
        and all(fits(each, known[name]) for name, each in value.items() if name in known)
        and any(
            all(n in value for n in alternative["required"])
            for alternative in schema.get("anyOf", [schema])
        )
    )


def test_the_schema_takes_what_the_parser_takes() -> None:
    schema = json_schema()
    rules = json.loads(json.dumps([plain(rule) for rule in load()]))
    assert fits({"version": 1, "hypotheses": rules}, schema)
    assert fits({"version": 1, "hypotheses": [{"name": "X", "disabled": True}]}, schema)
    for row in rules:
        for name in ("name", "subsystem", "claim", "remediation", "expects"):
            incomplete = {key: value for key, value in row.items() if key != name}
            assert not fits({"version": 1, "hypotheses": [incomplete]}, schema)
        assert not fits({"version": 1, "hypotheses": [row | {"expect": []}]}, schema)
        assert not fits({"version": 1, "hypotheses": [row | {"subsystem": "Cpu"}]}, schema)
    assert not fits({"version": 2, "hypotheses": []}, schema)
