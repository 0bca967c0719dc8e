"""The process's standing with the kernel: real-time priority, file limit, parent's death."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_LOWEST_REAL_TIME = 1
_FIRST_OF_ORDINARY = -20


def prefer_real_time() -> str | None:
    """Put the calling thread under SCHED_FIFO 1, else at nice -20; says why not the first.

    A tick then comes on time on a saturated host, which is when it matters.  Every thread
    that shares the interpreter lock with the tick thread wants it: a holder of the lock that
    does not get a CPU would make the tick wait.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LOWEST_REAL_TIME))
    except OSError as error:
        return no_real_time(error.strerror or str(error), niced=_niced())
    return None


def no_real_time(reason: str, *, niced: bool) -> str:
    """Who may have a negative nice value has the capability: then a cgroup is in the way."""
    if niced:
        return (
            f"SCHED_FIFO is refused ({reason}), as the cgroup has no real time"
            " (cpu.rt_runtime_us): nice -20 instead, ticks may be late on a saturated host"
        )
    return f"SCHED_FIFO is refused ({reason}): grant CAP_SYS_NICE for punctual ticks"


def _niced() -> bool:
    """Whether the calling thread (setpriority(2), NPTL) could be put before all ordinary ones."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _FIRST_OF_ORDINARY)
    except OSError:
        return False
    return True


def raise_file_limit() -> None:
    """Use as many descriptors as the hard limit allows: sources keep theirs open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def die_with_parent() -> None:
    """Have the kernel send SIGTERM when the parent is gone (prctl(2), PR_SET_PDEATHSIG).

    The signal follows the parent's *thread* that started this process.
    """
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != parent:  # it died before the request
        os.kill(os.getpid(), signal.SIGTERM)
