"""Hypothesis files: every name exists, later files override, and errors have a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_analyzer.hypotheses.loader import HypothesisError, load, parse
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.parser import plain, read
from reveal_contract import catalogue

HEAD = "version: 1\nhypotheses:\n"
ENTRY = """  - name: X
    subsystem: CPU
    claim: "c {value}"
    remediation: r
    expects: [{metric: cpu.busy}]
"""
BUILT_IN = {rule.name: rule for rule in load()}


def metrics(rule: HypothesisRule) -> set[str]:
    """Return all metrics that a rule names."""
    signature = rule.certain
    conditions = (*signature.conditions, *signature.any, *signature.unless) if signature else ()
    items = (*conditions, *rule.expects, *rule.contradicts, *rule.symptoms)
    others = {item.ratio_to for item in (*conditions, *rule.expects, *rule.contradicts)}
    named = {item.metric for item in items} | others | {*(rule.subjects or ()), *rule.victims}
    return named - {""}


def test_built_in_rules_name_only_explicit_rows_or_kernel_fields() -> None:
    explicit = {row.name for row in catalogue.rows()}
    named = {name for rule in BUILT_IN.values() for name in metrics(rule)}
    assert named - explicit == set()


@pytest.mark.parametrize("rule", BUILT_IN.values(), ids=BUILT_IN)
def test_every_built_in_rule_has_claim_reason_and_remedy(rule: HypothesisRule) -> None:
    assert rule.claim.format(value="5 %")
    assert rule.remediation.endswith(".")
    assert rule.reference
    for item in (*rule.expects, *rule.contradicts, *rule.symptoms):
        assert item.why, item.metric
    assert rule.subjects is not None  # given explicitly instead of the defaults


@pytest.mark.parametrize("rule", BUILT_IN.values(), ids=BUILT_IN)
def test_a_rule_written_down_is_read_back(rule: HypothesisRule) -> None:
    assert read(HypothesisRule, plain(rule), "x") == rule


def test_a_users_file_adds_rules_and_replaces_others_in_order(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + ENTRY.replace("X", "OOMKill") + ENTRY)
    rules = load((str(path),))
    names = [rule.name for rule in rules]
    assert names == [*BUILT_IN, "X"]
    mine = rules[names.index("OOMKill")]
    assert mine.claim == "c {value}"
    assert mine.source == str(path)


def test_a_folder_is_read_by_name_and_hidden_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(HEAD + ENTRY.replace("remediation: r", "remediation: last"))
    (tmp_path / "a.yaml").write_text(HEAD + ENTRY)
    (tmp_path / "..data.yaml").write_text("not for us")
    (tmp_path / "notes.txt").write_text("nor this")
    assert {r.name: r.remediation for r in load((str(tmp_path),))}["X"] == "last"


def test_a_rule_can_be_taken_away_whatever_else_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + ENTRY.replace("X", "OOMKill") + "    disabled: true\n")
    assert {rule.name for rule in load((str(path),))} == set(BUILT_IN) - {"OOMKill"}


def test_a_rule_that_is_not_there_cannot_be_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + "  - {name: OOMKil, disabled: true}\n")
    with pytest.raises(HypothesisError, match=r"mine.yaml: OOMKil: disabled, but no earlier file"):
        load((str(path),))


def test_an_unreadable_file_is_a_readable_error(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "nowhere.yaml", "No such file"),
        (tmp_path / "bytes.yaml", "is not text"),
        (tmp_path / "empty", "no .yaml or .yml file in this folder"),
    ):
        with pytest.raises(HypothesisError, match=message):
            load((str(path),))


def test_a_symptom_may_stand_as_its_metric_alone() -> None:
    (rule,) = parse(HEAD + ENTRY + "    symptoms: [cpu.iowait, {metric: cpu.steal}]\n", "x")
    assert [symptom.metric for symptom in rule.symptoms] == ["cpu.iowait", "cpu.steal"]


def test_omitted_subjects_are_the_defaults_and_an_empty_list_is_nobody() -> None:
    (default,) = parse(HEAD + ENTRY, "x")
    (nobody,) = parse(HEAD + ENTRY + "    subjects: []\n", "x")
    assert (default.subjects, nobody.subjects) == (None, ())


CERTAIN = "    certain: {hold: [1, 2], all: [{metric: cpu.busy, %s}]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML"),
        ("[" * 3000, "is not YAML"),
        ("version: 2", "version: 1"),
        ("version: 1\nrules: []", "unknown key rules; allowed are version, hypotheses"),
        ("version: 1\nhypotheses: 5", "hypotheses: must be a list"),
        (HEAD + ENTRY.replace("cpu.busy", "cpu.bussy"),
         r"X: expects\[0\]: metric: cpu.bussy is not in the catalogue; did you mean cpu.busy\?"),
        (HEAD + ENTRY.replace("subsystem: CPU", "subsystem: Cpu"),
         "X: subsystem: must be one of CPU, GPU, Memory, Network, Storage, not 'Cpu'"),
        (HEAD + ENTRY.replace("    remediation: r\n", ""), r"remediation is missing \(what to do"),
        (HEAD + ENTRY.replace("[{metric: cpu.busy}]", "[]"), "expects: must have at least 1 item"),
        (HEAD + ENTRY.replace("cpu.busy}", "cpu.busy, abov: 3}"),
         "unknown key 'abov'; allowed are metric, instance, feature"),
        (HEAD + ENTRY.replace("cpu.busy}", "cpu.busy, weight: 0}"),
         r"expects\[0\]: weight: must be a number above 0, not 0"),
        (HEAD + ENTRY.replace("cpu.busy}", "cpu.busy, above: .nan}"), "must be a number, not nan"),
        (HEAD + ENTRY.replace("cpu.busy}", "cpu.busy, direction: sideways}"),
         "must be one of up, down, not 'sideways'"),
        (HEAD + ENTRY.replace("{value}", "{valeu}"), "claim: may contain {value}"),
        (HEAD + ENTRY.replace("{value}", "{value"), "claim: may contain {value}"),
        (HEAD + ENTRY.replace("{value}", "{value:>300000000}"), "claim: may contain {value}"),
        (HEAD + ENTRY.replace("{value}", "{value!r}"), "claim: may contain {value}"),
        ("version: 1\nhypotheses: [&a [x], *a]", r"is not YAML: line 2 has an alias \(\*\)"),
        (HEAD + ENTRY.replace("name: X", "name: my rule"), "letters and digits"),
        (HEAD + ENTRY + "    certain: {hold: [5, 3], all: []}\n", "hold"),
        (HEAD + ENTRY + "    certain: {hold: [1, 2]}\n", "certain: all or any is missing"),
        (HEAD + ENTRY + CERTAIN.replace("}]}", "}], needs_loss: true}") % "above: 1",
         "needs_loss is only for lost_part: ledger.irq"),
        (HEAD + ENTRY + CERTAIN % "per: gpus", r"all\[0\]: per: must be one of cpus"),
        (HEAD + ENTRY + CERTAIN % "feature: median", "feature: must be one of mean, mean_change"),
        (HEAD + ENTRY + "    subjects: [cpu.user]\n", "cpu.user is not counted by subject"),
        (HEAD + ENTRY + "    subjects_fell: maybe\n", "must be true or false"),
        (HEAD + ENTRY + ENTRY, "X: is defined twice in this file"),
        (HEAD + "  - 5\n", "entry 1: must be a mapping, not 5"),
        (HEAD + "  - {disabled: true}\n", "entry 1: name"),
    ],
)  # fmt: skip
def test_an_error_has_its_position_and_the_allowed_values(text: str, message: str) -> None:
    with pytest.raises(HypothesisError, match=message) as error:
        parse(text, "mine.yaml")
    assert str(error.value).startswith("mine.yaml")
