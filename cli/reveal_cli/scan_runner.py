"""A complete scan: watch live, judge the recording as a whole, merge, write the files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import CliError
from reveal_cli.evidence_files import write_evidence
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_cli.live_session import LiveSession, OnTick, ScanPlan, ScanState
from reveal_cli.output_files import FindingsFile, summary
from reveal_cli.progress import Progress
from reveal_cli.recordings import Recording
from reveal_cli.replay import judge_whole
from reveal_cli.scan_directory import (
    EVIDENCE,
    FINDINGS,
    REPORT,
    STATE,
    SUMMARY,
    claim_directory,
    release_directory,
)
from reveal_contract import VERSION
from reveal_contract.finding import Finding

# time for the last judgement after a signal, s: the whole end must take less than 2 s
_GRACE = 1.1


@dataclass
class ScanResult:
    """The result of a scan; ``failed`` if a file or judgement that was asked for is incomplete.

    ``findings`` are anomalies; ``state`` has the configuration hints.
    """

    state: ScanState
    findings: list[Finding]
    failed: bool


def run_scan(
    plan: ScanPlan,
    directory: Path | None,
    progress: Progress,
    interrupt: Interrupt,
    on_tick: OnTick = lambda _, __: None,
) -> ScanResult:
    """Scan this host; the files are complete also when the scan fails or is interrupted.

    A scan that fails before it receives anything leaves no files.  Raises ``CliError``.
    """
    with Recording(claim_directory(directory) if directory else None) as recording:
        recording.note({"reveal": VERSION, "node": plan.node})
        runner = _ScanRunner(plan, directory, recording, progress, interrupt)
        try:
            return runner.run(on_tick)
        finally:
            progress.stop()


class _ScanRunner:
    def __init__(
        self,
        plan: ScanPlan,
        directory: Path | None,
        recording: Recording,
        progress: Progress,
        interrupt: Interrupt,
    ) -> None:
        self._plan, self._directory, self._recording = plan, directory, recording
        self._progress, self._interrupt = progress, interrupt
        self._findings_file = FindingsFile(directory / FINDINGS if directory else None)
        self._failed = self._findings_failed = False
        self._state = ScanState()

    def run(self, on_tick: OnTick) -> ScanResult:
        def tick(elapsed: float, state: ScanState) -> None:
            on_tick(elapsed, state)
            self._write_findings([*state.finding_log.findings, *state.hints.findings])

        session = LiveSession(self._plan, self._recording, self._progress, self._interrupt, tick)
        self._state, failure = session.state, None
        try:
            session.run()
        except Interrupted:
            pass
        except CliError as error:
            if not session.state.slices:
                self._release()
                raise
            self._state.warnings.append(str(error))
            failure = error
        findings = self._conclude()
        self._write(findings)
        if failure is not None:
            raise failure
        return ScanResult(self._state, findings, self._failed or self._state.failed)

    def _conclude(self) -> list[Finding]:
        """Return the live findings merged with those of the whole recording.

        After an interrupt without enough time, or where judging fails, only the live ones.
        """
        self._progress.stop()
        self._recording.note({"collector": self._state.collector})
        live = self._state.finding_log.findings
        if not self._state.judged:
            return live
        limit = self._interrupt.left(_GRACE) if self._interrupt.requested else None
        try:
            with self._interrupt.raising(limit):
                return judge_whole(self._recording.path, live, self._plan.settings)
        except Interrupted:
            rest = "; `reveal analyze` judges the whole recording" if self._directory else ""
            self._warn(
                "interrupted before the recording was judged as a whole: only live findings are"
                f" listed{rest}"
            )
        except Exception as error:  # the live findings must not be lost with it
            self._warn(
                f"the recording cannot be judged as a whole ({type(error).__name__}: {error}):"
                " only live findings are listed",
                failed=True,
            )
        return live

    def _release(self) -> None:
        """Remove the files of a scan that received nothing: its directory can be used again."""
        if self._directory is not None:
            release_directory(self._directory)

    def _write_findings(self, findings: list[Finding], *, last: bool = False) -> None:
        try:
            self._findings_file.write(findings, retry=last)
        except CliError as error:
            if not self._findings_failed:
                self._warn(str(error))
            self._findings_failed = True

    def _write(self, findings: list[Finding]) -> None:
        self._write_findings([*findings, *self._state.hints.findings], last=True)
        self._failed = self._failed or self._findings_file.incomplete
        if self._directory is None:
            return
        try:
            self._write_summary(self._directory, findings)
            if self._state.learned:
                write_atomically(self._directory / STATE, [self._state.learned])
        except CliError as error:
            self._warn(str(error), failed=True)
            return
        known = len(self._state.warnings)
        self._write_evidence(findings, self._directory / EVIDENCE)
        if len(self._state.warnings) > known:
            self._write_summary(self._directory, findings)
        self._write_report(self._directory)

    def _write_summary(self, directory: Path, findings: list[Finding]) -> None:
        row = summary(self._plan, self._state, findings, self._interrupt.requested)
        write_atomically(directory / SUMMARY, [json.dumps(row, indent=1) + "\n"])

    def _write_evidence(self, findings: list[Finding], directory: Path) -> None:
        """Write the samples of each finding; without them the recording still has all of them."""
        limit = self._interrupt.left(_GRACE) if self._interrupt.requested else None
        try:
            with self._interrupt.raising(limit):
                left_out = write_evidence(self._recording.path, findings, directory)
            if left_out:
                self._warn(f"{left_out} findings have no file in {directory}: see the recording")
        except Interrupted:
            self._warn("interrupted before the samples of all findings were written")
        except Exception as error:  # the findings must not be lost with it
            self._warn(f"the samples of findings cannot be written ({error})", failed=True)

    def _write_report(self, directory: Path) -> None:
        """Write the page; it takes too long for the end of a scan that was interrupted."""
        from reveal_cli.report_file import write_scan_report  # noqa: PLC0415 - heavy

        try:
            with self._interrupt.raising():
                write_scan_report(directory, directory / REPORT, self._plan.settings.hypotheses)
        except Interrupted:
            self._progress.event(f"`reveal report {directory}` writes the page of this scan")
        except CliError as error:
            self._warn(str(error), failed=True)
        except Exception as error:  # findings and recording are whole without it
            self._warn(f"no {REPORT} ({type(error).__name__}: {error})", failed=True)

    def _warn(self, line: str, *, failed: bool = False) -> None:
        self._failed = self._failed or failed
        self._state.warnings.append(line)
        self._progress.warn(line)
