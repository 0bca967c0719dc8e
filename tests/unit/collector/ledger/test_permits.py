"""What prevents the programs, and what is said of it."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest

from reveal_collector import native
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.ledger import permits
from reveal_collector.readers.source import Roots

ROOT, NOTHING = "CapEff:\t000001ffffffffff\n", "CapEff:\t0000000000000000\n"
BPF_ONLY, ENOUGH = "CapEff:\t0000008000000000\n", "CapEff:\t000000c000000000\n"

compiled = pytest.mark.skipif(native.load().library is None, reason="the C parts are not built")


@pytest.mark.parametrize(
    ("status", "capable"), [(ROOT, True), (ENOUGH, True), (BPF_ONLY, False), (NOTHING, False)]
)
def test_both_capabilities_are_needed(status: str, capable: bool) -> None:
    assert permits.is_capable(status) is capable


@pytest.mark.parametrize(
    ("text", "release"),
    [("6.1.0-13-amd64", (6, 1)), ("5.18.0", (5, 18)), ("6.18.44-fc-v657", (6, 18)), ("?", (0, 0))],
)
def test_the_release_of_the_kernel(text: str, release: tuple[int, int]) -> None:
    assert permits.kernel_release(text) == release


class Host(Roots):
    """Roots of a made-up host that counts as the running one."""

    live = True  # type: ignore[assignment]


def host(folder: Path, release: str = "6.1.0", status: str = ROOT, btf: bool = True) -> Host:
    proc, sys = folder / "proc", folder / "sys"
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "self").mkdir()
    (sys / "kernel/btf").mkdir(parents=True)
    (proc / "sys/kernel/osrelease").write_text(release)
    (proc / "self/status").write_text(status)
    if btf:
        (sys / "kernel/btf/vmlinux").write_text("")
    return Host(proc, sys)


def reason(roots: Roots, library: ctypes.CDLL | None) -> str:
    with pytest.raises(Unsupported) as refused:
        permits.check_host(roots, library)
    return f"{refused.value.reason} ({refused.value.remedy})"


def test_a_recorded_host_has_no_threads(tmp_path: Path) -> None:
    assert "running machine" in reason(Roots(tmp_path, tmp_path), native.load().library)


def test_without_the_c_part(tmp_path: Path) -> None:
    assert "install a C compiler" in reason(host(tmp_path), None)


@compiled
def test_an_old_kernel(tmp_path: Path) -> None:
    assert "5.15 is older than 5.18" in reason(host(tmp_path, "5.15.0"), native.load().library)


@compiled
def test_a_kernel_without_types(tmp_path: Path) -> None:
    assert "CONFIG_DEBUG_INFO_BTF" in reason(host(tmp_path, btf=False), native.load().library)


@compiled
def test_without_rights(tmp_path: Path) -> None:
    text = reason(host(tmp_path, status=BPF_ONLY), native.load().library)
    assert "needs CAP_BPF and CAP_PERFMON" in text


@compiled
def test_a_host_that_has_all(tmp_path: Path) -> None:
    library = native.load().library
    assert permits.check_host(host(tmp_path), library) is library


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EPERM, "lockdown"),
        (errno.ENOSYS, "CONFIG_BPF_SYSCALL"),
        (errno.ENOENT, "tracepoints"),
        (errno.E2BIG, "Argument list too long"),
    ],
)
def test_a_refusal_by_the_kernel(number: int, text: str) -> None:
    refused = permits.refusal(OSError(number, "Argument list too long"))
    assert text in f"{refused.reason} {refused.remedy}"
