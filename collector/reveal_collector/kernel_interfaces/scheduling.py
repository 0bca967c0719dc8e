"""Scheduling priority, file limit and parent-death signal of the process."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_LOWEST_REAL_TIME = 1
_HIGHEST_NICE = -20


def prefer_real_time() -> str | None:
    """Set the calling thread to SCHED_FIFO 1, else to nice -20; return why SCHED_FIFO failed.

    Ticks are then punctual on a saturated host, where they matter most.  Every thread that shares
    the interpreter lock with the tick thread needs it: a holder of the lock that gets no CPU would
    delay the tick.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LOWEST_REAL_TIME))
    except OSError as error:
        return no_real_time(error.strerror or str(error), niced=_set_highest_nice())
    return None


def no_real_time(reason: str, *, niced: bool) -> str:
    """Return the reason why SCHED_FIFO was refused, and the remedy.

    A process that may set a negative nice value has CAP_SYS_NICE: then its cgroup has no real-time
    bandwidth.
    """
    if niced:
        return (
            f"SCHED_FIFO is refused ({reason}): the cgroup has no real-time bandwidth"
            " (cpu.rt_runtime_us); nice -20 is used, ticks may be late on a saturated host"
        )
    return f"SCHED_FIFO is refused ({reason}): grant CAP_SYS_NICE for punctual ticks"


def _set_highest_nice() -> bool:
    """Set the calling thread (setpriority(2), NPTL) to nice -20; return whether it succeeded."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _HIGHEST_NICE)
    except OSError:
        return False
    return True


def raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit: sources keep their files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def die_with_parent() -> None:
    """Let the kernel send SIGTERM when the parent exits (prctl(2), PR_SET_PDEATHSIG).

    The signal is tied to the parent's *thread* that started this process.
    """
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != parent:  # the parent exited before the call
        os.kill(os.getpid(), signal.SIGTERM)
