"""``reveal hypotheses``: the list, one in full, checks of files, and the pages made of them."""

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
def own_file(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = DONE) -> str:
    assert main(["hypotheses", *arguments]) == code
    out, err = capsys.readouterr()
    return out if code == DONE else err


def test_the_list_has_every_name_and_marks_certain_hypotheses(
    capsys: pytest.CaptureFixture[str], own_file: str, own_signals: None
) -> None:
    lines = output(capsys, "--file", own_file).splitlines()
    names = {line[2:].split()[0]: line[0] for line in lines if line[:1] in "* " and line.strip()}
    for rule in load((own_file,)):
        assert names[rule.name] == ("*" if rule.certain else " "), rule.name
    assert "ForkStorm" not in names
    assert f"[{own_file}]" in " ".join(lines)


def test_a_hypothesis_is_printed_with_all_its_parts(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    text = " ".join(output(capsys, "swapping").split())
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
    assert "did you mean OOMKill?" in output(capsys, "oom", code=USAGE)
    assert "`reveal hypotheses` lists all" in output(capsys, "zzz", code=USAGE)


def test_json_has_the_content_of_the_files(
    capsys: pytest.CaptureFixture[str], own_file: str, own_signals: None
) -> None:
    rows = json.loads(output(capsys, "--json", "--file", own_file))
    assert {row.pop("name"): row.pop("source") for row in rows}["Mine"] == own_file
    row = json.loads(output(capsys, "OOMKill", "--json"))
    assert row.pop("source") == "memory.yaml"
    (rule,) = parse(json.dumps({"version": 1, "hypotheses": [row]}), "x")
    assert rule in load()


def test_a_check_lists_what_a_file_changes(
    capsys: pytest.CaptureFixture[str], own_file: str, own_signals: None
) -> None:
    lines = output(capsys, "--check", own_file).splitlines()
    assert lines == [
        f"{own_file}: can be used; adds Mine; replaces OOMKill", "disabled: ForkStorm"
    ]  # fmt: skip


def test_a_file_that_cannot_be_used_fails_the_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own_signals: None
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(MINE.replace("cpu.steal", "cpu.stael"))
    text = output(capsys, "--check", str(path), code=ERROR)
    assert text == (
        f"reveal: {path}: Mine: expects[0]: metric: cpu.stael is not in the catalogue;"
        " did you mean cpu.steal?\n"
    )


def test_the_pages_are_current(capsys: pytest.CaptureFixture[str], own_signals: None) -> None:
    markdown = output(capsys, "--markdown")
    assert markdown == page(load())
    assert markdown == (DOCS / "reference/hypotheses-list.md").read_text(), "run `make docs`"
    schema = output(capsys, "--schema")
    assert schema == (DOCS / "reference/hypotheses.schema.json").read_text(), "run `make docs`"


def test_the_example_of_the_guide_can_be_used() -> None:
    guide = (DOCS / "how-to/add-a-cause.md").read_text()
    text = guide.partition("```yaml\n")[2].partition("```")[0]
    assert [entry.name for entry in parse(text, "guide")] == ["LicenceServerStorm", "ForkStorm"]


def fits(value: Any, schema: dict[str, Any]) -> bool:  # noqa: PLR0911 - a case each
    """As much of JSON Schema as ours uses."""
    if "anyOf" in schema and "type" not in schema:
        return any(fits(value, option) for option in schema["anyOf"])
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
            all(n in value for n in option["required"]) for option in schema.get("anyOf", [schema])
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
