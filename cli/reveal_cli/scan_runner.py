"""A whole scan: watch live, judge the recording once more, merge, write what was asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from reveal_cli.errors import CliError
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_cli.live_session import EachTurn, Plan, Session, Watched
from reveal_cli.output_files import (
    FINDINGS,
    SUMMARY,
    FindingsFile,
    claim_directory,
    summary,
    write_whole,
)
from reveal_cli.progress import Progress
from reveal_cli.recordings import Recording
from reveal_cli.replay import judge_whole
from reveal_contract import VERSION
from reveal_contract.finding import Finding

# from a signal to the end of the last judgement, s: 2 s are promised for everything
_GRACE = 1.1


@dataclass
class Result:
    """What came of a scan; ``failed`` if something that was asked for could not be done.

    ``findings`` are anomalies; ``watched`` has the hints on how the host is set up.
    """

    watched: Watched
    findings: list[Finding]
    failed: bool


def scan(
    plan: Plan,
    directory: Path | None,
    progress: Progress,
    interrupt: Interrupt,
    each_turn: EachTurn = lambda _, __: None,
) -> Result:
    """Scan and leave the outputs whole, also when it fails (``CliError``) or is interrupted."""
    with Recording(claim_directory(directory) if directory else None) as recording:
        recording.note({"reveal": VERSION, "node": plan.node})
        scan_ = _Scan(plan, directory, recording, progress, interrupt)
        return scan_.run(each_turn)


class _Scan:
    def __init__(
        self,
        plan: Plan,
        directory: Path | None,
        recording: Recording,
        progress: Progress,
        interrupt: Interrupt,
    ) -> None:
        self._plan, self._directory, self._recording = plan, directory, recording
        self._progress, self._interrupt = progress, interrupt
        self._kept = FindingsFile(directory / FINDINGS if directory else None)
        self._failed = False
        self.watched = Watched()

    def run(self, each_turn: EachTurn) -> Result:
        def turn(elapsed: float, watched: Watched) -> None:
            each_turn(elapsed, watched)
            self._keep([*watched.finding_log.findings, *watched.hints.findings])

        session = Session(self._plan, self._recording, self._progress, self._interrupt, turn)
        self.watched, failure = session.watched, None
        try:
            session.run()
        except Interrupted:
            pass
        except CliError as error:
            self.watched.troubles.append(str(error))
            failure = error
        findings = self._conclude()
        self._write(findings)
        if failure is not None:
            raise failure
        return Result(self.watched, findings, self._failed or self.watched.failed)

    def _conclude(self) -> list[Finding]:
        """The live findings joined with those of the whole, unless the user cannot wait."""
        self._progress.clear()
        self._recording.note({"collector": self.watched.collector})
        live = self.watched.finding_log.findings
        if not self.watched.judged:
            return live
        limit = self._interrupt.left(_GRACE) if self._interrupt.requested else None
        try:
            with self._interrupt.raising(limit):
                return judge_whole(self._recording.path, live, self._plan.settings)
        except Interrupted:
            self._warn(
                "interrupted before the recording was judged as a whole: these are the live"
                " findings" + ("; `reveal analyze` does the rest" if self._directory else "")
            )
        except Exception as error:  # what was found live must not be lost with it
            self._warn(
                f"the recording could not be judged as a whole ({type(error).__name__}: {error}):"
                " these are the live findings",
                failed=True,
            )
        return live

    def _keep(self, findings: list[Finding]) -> None:
        try:
            self._kept.keep(findings)
        except CliError as error:
            self._warn(str(error), failed=True)

    def _write(self, findings: list[Finding]) -> None:
        self._keep([*findings, *self.watched.hints.findings])
        if self._directory is None:
            return
        row = summary(self._plan, self.watched, findings, self._interrupt.requested)
        try:
            write_whole(self._directory / SUMMARY, json.dumps(row, indent=1) + "\n")
        except CliError as error:
            self._warn(str(error), failed=True)

    def _warn(self, line: str, *, failed: bool = False) -> None:
        self._failed = self._failed or failed
        self.watched.troubles.append(line)
        self._progress.say(line)
