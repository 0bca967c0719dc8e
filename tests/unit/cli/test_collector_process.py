"""The collector as a child process."""

import os
import time

from reveal_cli.collector_process import CollectorProcess
from reveal_cli.errors import USAGE


def wait_for_end(process: CollectorProcess) -> None:
    end = time.monotonic() + 20
    while process.returncode is None:
        assert time.monotonic() < end, "it does not end"
        time.sleep(0.01)


def test_a_collector_that_cannot_start_gives_its_own_error_and_exit_code() -> None:
    with CollectorProcess(["--node", "n", "--record", os.devnull, "--exclude", "nope"]) as process:
        wait_for_end(process)
        failure = process.failure()
    assert failure.code == USAGE
    assert str(failure).startswith("no such source: nope; known are")
