"""Arguments: what is accepted, and the sentence that refuses the rest."""

import argparse
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_cli import collector_process
from reveal_cli.__main__ import build_parser, main
from reveal_cli.commands.scan import scan_plan
from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.options import duration, format_duration, severity
from reveal_contract.finding import Severity
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from reveal_contract.names import REDIS_VARIABLE


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("3m", 180), ("1h30m", 5400), ("2m05s", 125), (" 3M ", 180),
     ("0", math.inf), ("forever", math.inf), ("0s", math.inf)],
)  # fmt: skip
def test_duration_accepts_what_users_write(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "-5", "3x", "m", "1.5h", "5m3h", "inf", "nan", "\uff11\uff12"]
)
def test_duration_refuses_the_rest_in_a_sentence(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 90s, 3m"):
        duration(text)


@given(st.integers(1, 100_000))
def test_a_formatted_duration_is_read_back_as_about_the_same(seconds: int) -> None:
    assert duration(format_duration(seconds)) == pytest.approx(
        seconds, abs=60 if seconds >= 3600 else 0
    )


def test_severity_is_known_in_any_case() -> None:
    assert severity("hIGH") is Severity.HIGH
    with pytest.raises(argparse.ArgumentTypeError, match="low, medium, high, critical"):
        severity("severe")


@pytest.mark.parametrize(
    "flags", [["scan", "--nonsense"], ["nonsense"], ["scan", "--mode", "magic"], []]
)
def test_wrong_usage_exits_with_2(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(flags)
    assert ended.value.code == USAGE
    assert "usage: reveal" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["scan", "record", "analyze", "explain", "catalog", "doctor", "demo"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args([command, "--help"])
    assert ended.value.code == DONE
    assert len(capsys.readouterr().out.splitlines()) > 8


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--duration", "30s"], "nothing would be judged"),
        (["--warmup", "5s"], "warmupSeconds"),
        (["--warmup", "forever", "--duration", "forever"], "must end"),
    ],
)
def test_a_plan_that_can_judge_nothing_is_wrong_usage(flags: list[str], message: str) -> None:
    with pytest.raises(CliError, match=message) as refused:
        scan_plan(build_parser().parse_args(["scan", *flags]))
    assert refused.value.code == USAGE


def test_flags_reach_the_collector_and_the_settings() -> None:
    plan = scan_plan(
        build_parser().parse_args(
            ["scan", "--proc-root", "/tmp/p", "--exclude-source", "psi", "--exclude-source", "stat",
             "--warmup", "20s", "--sensitivity", "HIGH", "--mode", "paper"]
        )
    )  # fmt: skip
    flags = list(plan.host_flags)
    assert flags[flags.index("--proc-root") + 1] == "/tmp/p"
    assert flags[flags.index("--exclude") :] == ["--exclude", "psi", "stat"]
    assert (plan.settings.warmup_seconds, plan.settings.sensitivity) == (20, "High")
    assert plan.settings.mode == "paper"


def test_flags_reach_the_collector_by_name() -> None:
    given = ["scan", "--node", "n9", "--include-source", "psi", "--sys-root", "/s"]
    flags = list(scan_plan(build_parser().parse_args(given)).host_flags)
    for flag, value in (("--node", "n9"), ("--include", "psi"), ("--sys-root", "/s")):
        assert flags[flags.index(flag) + 1] == value


def test_pods_are_known_by_the_folders_of_their_logs_on_a_node_of_kubernetes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, roots, known in (
        (tmp_path, [], True),
        (tmp_path / "absent", [], False),
        (tmp_path, ["--proc-root", "/other/proc"], False),
    ):
        monkeypatch.setattr(collector_process, "_POD_LOGS", folder)
        flags = scan_plan(build_parser().parse_args(["scan", *roots])).host_flags
        assert ("--pod-source" in flags) is known


def test_causes_of_the_user_are_checked_before_anything_starts(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("version: 1\nhypotheses: []\n")
    plan = scan_plan(build_parser().parse_args(["scan", "--hypotheses", str(own)]))
    assert plan.settings.hypotheses == (str(own),)
    own.write_text("version: 9\n")
    with pytest.raises(CliError, match=r"mine.yaml.*version: 1") as refused:
        scan_plan(build_parser().parse_args(["scan", "--hypotheses", str(own)]))
    assert refused.value.code == USAGE


def test_an_unreadable_root_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["scan", "--proc-root", "/nowhere"]) == ERROR
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--proc-root /nowhere cannot be read" in error


def test_report_is_an_alias_of_the_offline_mode() -> None:
    parser = build_parser()
    for name in ("offline", "report"):
        assert parser.parse_args(["analyze", "x.csv", "--mode", name]).mode == "offline"
    assert parser.parse_args(["analyze", "x.csv"]).mode is None
    with pytest.raises(SystemExit):
        parser.parse_args(["scan", "--mode", "offline"])


@pytest.mark.parametrize(
    ("flags", "url"),
    [
        ([], ""),
        (["--redis", "redis://h:1/2"], "redis://me:se%2Fcret@h:1/2"),
        (["--redis", "redis://you:x@h:1/2"], "redis://you:x@h:1/2"),
    ],
)
def test_the_login_of_the_environment_is_only_for_a_redis_that_is_named(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], url: str
) -> None:
    """A scan must not write to the Redis of a site because a variable is set."""
    monkeypatch.setenv(REDIS_VARIABLE, "redis://site")
    monkeypatch.setenv(REDIS_USERNAME_VARIABLE, "me")
    monkeypatch.setenv(REDIS_PASSWORD_VARIABLE, "se/cret")
    assert scan_plan(build_parser().parse_args(["scan", *flags])).redis_url == url
