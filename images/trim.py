"""Takes out of a virtual environment what no process of its image reads; ``build.sh`` runs it.

``trim.py FOLDER PACKAGE...``: FOLDER is the environment, of our own packages the named ones stay.
What pip wrote down of the files (RECORD) stays true, so that scanners can still check them.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

OURS = "reveal_"
# sources and stubs of compiled modules: for compilers and type checkers
SOURCES = frozenset({".a", ".c", ".cpp", ".h", ".hpp", ".pxd", ".pyi", ".pyx"})
# Of the client of Kubernetes only the transport is used, with plain objects (``kube/transport.py``
# of the contract): no asynchronous twin, no method for each call
UNUSED = ("kubernetes/aio", "kubernetes/client/api")
STRIPPED_MIN_BYTES = 1 << 16  # what is smaller gives nothing back


def main(home: Path, kept: Collection[str]) -> None:
    """Trim the environment at ``home``; of our packages those in ``kept`` stay."""
    site = next(home.glob("lib/python3.*/site-packages"))
    for path in [*others(site, kept), *unused(site)]:
        remove(path)
    for path in scripts(home, site, kept):
        path.unlink()
    for library in strippable(site):
        strip(library)
    for one in distributions(path=[str(site)]):
        rewrite_record(site, one)


def others(site: Path, kept: Collection[str]) -> list[Path]:
    """Our packages that this image has no use for."""
    ours = [path for path in site.iterdir() if path.is_dir() and path.name.startswith(OURS)]
    if missing := set(kept) - {path.name for path in ours}:
        raise SystemExit(f"no such package of ours: {', '.join(sorted(missing))}")
    return [path for path in ours if path.name not in kept and not path.name.endswith(".dist-info")]


def unused(site: Path) -> list[Path]:
    """Tests, sources of compiled modules, and ``UNUSED``."""
    found = [site / name for name in UNUSED]
    for path in site.rglob("*"):
        is_tests = path.name == "tests" and path.is_dir() and path.parent != site
        if is_tests or (path.suffix in SOURCES and path.is_file()):
            found.append(path)
    return found


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)  # it may have gone with a folder around it


def scripts(home: Path, site: Path, kept: Collection[str]) -> list[Path]:
    """Commands of other packages, and of ours those whose package is gone."""
    wanted = {
        point.name
        for one in distributions(path=[str(site)])
        for point in one.entry_points
        if point.group == "console_scripts" and point.value.partition(".")[0] in kept
    }
    return [
        path
        for path in sorted((home / "bin").iterdir())
        if path.name not in wanted and not path.name.startswith("python")
    ]


def strippable(site: Path) -> Iterator[Path]:
    """Libraries that nothing was grafted into.

    What auditwheel patched (the wheels that bring a folder ``NAME.libs``) may be broken by
    strip(1): patchelf moves sections to where it does not expect them.
    """
    patched = {name for folder in site.glob("*.libs") for name in _beside(site, folder.name)}
    for path in sorted(site.rglob("*.so*")):
        top = path.relative_to(site).parts[0]
        large = path.stat().st_size >= STRIPPED_MIN_BYTES
        if large and top not in patched and not top.endswith(".libs"):
            yield path


def strip(library: Path) -> None:
    """Without symbols and debugging sections, where it then loads as it did before."""
    made = library.with_name(f"{library.name}.stripped")
    subprocess.run(["strip", "--strip-unneeded", "-o", made, library], check=True)
    if made.stat().st_size < library.stat().st_size and loads(made) == loads(library):
        made.chmod(library.stat().st_mode & 0o777)
        made.replace(library)
    else:
        made.unlink()


def loads(library: Path) -> bool:
    """Whether a process like those of the image can load it."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    command = [sys.executable, "-B", "-c", code, library]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def rewrite_record(site: Path, one: Distribution) -> None:
    """Drop what is gone from the list of installed files, state anew what was changed."""
    text = one.read_text("RECORD")
    if text is None:
        return
    rows = [_true_row(site, row) for row in csv.reader(text.splitlines()) if _is_there(site, row)]
    record = next(Path(str(one.locate_file(path))) for path, *_ in rows if path.endswith("/RECORD"))
    with record.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(sorted(rows))


def _is_there(site: Path, row: list[str]) -> bool:
    return (site / row[0]).exists()


def _true_row(site: Path, row: list[str]) -> list[str]:
    name, digest, size = row
    content = site / name
    if not size or content.stat().st_size == int(size):
        return row
    data = content.read_bytes()
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return [name, f"sha256={encoded.decode()}", str(len(data))] if digest else row


def _beside(site: Path, libs: str) -> set[str]:
    """What the wheel that brought the folder ``libs`` put into site-packages."""
    for one in distributions(path=[str(site)]):
        names = {file.parts[0] for file in one.files or ()}
        if libs in names:
            return names
    return set()


if __name__ == "__main__":
    main(Path(sys.argv[1]), frozenset(sys.argv[2:]))
