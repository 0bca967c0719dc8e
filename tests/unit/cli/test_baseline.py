"""What a scan learned, as a file: another scan starts from it, or says why it cannot."""

import argparse
from pathlib import Path

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.state import codec
from reveal_analyzer.state.codec import Position, SavedState, encode
from reveal_cli.__main__ import build_parser
from reveal_cli.baseline import MAX_FILE_BYTES, encode_baseline, read_baseline, start_from
from reveal_cli.commands.scan import scan_plan
from reveal_cli.errors import USAGE, CliError
from reveal_cli.scan_directory import STATE
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import Node

SAVED_S = 1_700_000_000


def write(folder: Path, data: bytes) -> None:
    (folder / STATE).write_bytes(data)


def state(node: str = "n1") -> bytes:
    return encode(SavedState(Position(node, b"b" * 16, 5, 5), SAVED_S, {"load": {"cpu": 0.5}}))


def refusal(folder: Path, node: str = "n1") -> str:
    with pytest.raises(CliError) as error:
        read_baseline(folder, node)
    assert error.value.code == USAGE
    sentence = str(error.value)
    assert sentence.startswith(f"--baseline {folder}")
    assert "\n" not in sentence
    return sentence


def test_what_an_analysis_learned_comes_back(tmp_path: Path) -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=20))
    for _ in range(30):
        last = node.slice()
        analyzer.analyze(last, node.table)
    write(tmp_path, encode_baseline(analyzer, last))
    baseline = read_baseline(tmp_path, "n1")
    assert baseline.position == Position("n1", last.boot, 29, last.start_ns)
    another = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    start_from(baseline, another)
    assert not another.learning, "also where the warm-up is longer than that of the first"


def test_a_directory_without_a_state_is_refused(tmp_path: Path) -> None:
    assert "No such file or directory" in refusal(tmp_path)
    assert "No such file or directory" in refusal(tmp_path / "none")
    (tmp_path / STATE).mkdir()
    assert "Is a directory" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are not a saved state"),
        (b"x" * MAX_FILE_BYTES * 2, "are not a saved state"),
        (state()[:-1], "checksum"),
        (state()[:3] + bytes([codec.VERSION + 1]) + state()[4:], "version 2, 1 is expected"),
    ],
    ids=["empty", "large", "damaged", "another version"],
)
def test_a_state_that_cannot_be_read_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    write(tmp_path, data)
    assert reason in refusal(tmp_path)
    assert "scan without it" in refusal(tmp_path)


def test_a_state_of_another_host_is_refused(tmp_path: Path) -> None:
    write(tmp_path, state("n2"))
    assert "is of the host n2, this is n1" in refusal(tmp_path)


def test_a_state_that_does_not_fit_its_part_is_refused() -> None:
    unfit = SavedState(Position("n1", b"", 0, 0), SAVED_S, {"job_starts": {"age": "x"}})
    with pytest.raises(CliError, match=r"cannot be used: .* scan without it"):
        start_from(unfit, NodeAnalyzer("n1", AnalyzerSettings()))


def arguments(*flags: str) -> argparse.Namespace:
    return build_parser().parse_args(["scan", "--node", "n1", *flags])


def test_a_scan_with_a_baseline_needs_no_warm_up(tmp_path: Path) -> None:
    short = ("--duration", "30s")
    with pytest.raises(CliError, match="nothing would be judged"):
        scan_plan(arguments(*short))
    write(tmp_path, state())
    plan = scan_plan(arguments(*short, "--baseline", str(tmp_path)))
    assert plan.warmup == 0
    assert plan.baseline is not None
    assert plan.baseline.saved_s == SAVED_S


def test_the_detectors_of_the_paper_have_no_baseline(tmp_path: Path) -> None:
    write(tmp_path, state())
    with pytest.raises(CliError, match="needs --mode online"):
        scan_plan(arguments("--mode", "paper", "--baseline", str(tmp_path)))
