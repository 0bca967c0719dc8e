"""Which files of site-packages an image removes, and that pip's list of files stays correct."""

from __future__ import annotations

import csv
import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("images_trim", ROOT / "images" / "trim.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


trim = load()


class Home:
    """A virtual environment with made-up packages, as pip leaves them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "lib" / "python3.11" / "site-packages"
        self.site.mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").touch()

    def install(self, name: str, *files: str, scripts: dict[str, str] | None = None) -> None:
        info = f"{name}-1.0.dist-info"
        points = "".join(f"{key} = {value}\n" for key, value in (scripts or {}).items())
        texts = {
            **dict.fromkeys(files, "content\n"),
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            f"{info}/entry_points.txt": f"[console_scripts]\n{points}",
            **{f"../../../bin/{key}": "#!python\n" for key in scripts or ()},
        }
        for path, text in texts.items():
            (self.site / path).parent.mkdir(parents=True, exist_ok=True)
            (self.site / path).write_text(text)
        rows = [[path, "sha256=unknown", str(len(text))] for path, text in texts.items()]
        record = f"{info}/RECORD"
        with (self.site / record).open("w", newline="") as file:
            csv.writer(file).writerows([*rows, [record, "", ""]])

    def record(self, name: str) -> dict[str, tuple[str, str]]:
        text = (self.site / f"{name}-1.0.dist-info" / "RECORD").read_text()
        return {path: (digest, size) for path, digest, size in csv.reader(text.splitlines())}

    def has(self, path: str) -> bool:
        return (self.site / path).exists()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_tests_and_sources_of_compiled_modules_go(home: Home) -> None:
    home.install(
        "fast", "fast/__init__.py", "fast/core.pyx", "fast/core.pyi", "fast/tests/test_core.py",
        "fast/deep/tests/data.bin", "fast/testing.py",
    )  # fmt: skip
    trim.main(home.folder, ())
    assert sorted(path.name for path in (home.site / "fast").rglob("*.*")) == [
        "__init__.py",
        "testing.py",
    ]


def test_a_package_of_that_name_stays(home: Home) -> None:
    home.install("tests", "tests/__init__.py")
    trim.main(home.folder, ())
    assert home.has("tests/__init__.py")


def test_named_modules_of_our_packages_stay(home: Home) -> None:
    home.install(
        "reveal_telemetry", "reveal_a/__init__.py", "reveal_b/__init__.py",
        scripts={"reveal-a": "reveal_a.__main__:main", "reveal-b": "reveal_b.__main__:main"},
    )  # fmt: skip
    home.install("other", "other.py", scripts={"other": "other:main"})
    trim.main(home.folder, ("reveal_a",))
    assert home.has("reveal_a") and not home.has("reveal_b")
    assert {path.name for path in (home.folder / "bin").iterdir()} == {"python3", "reveal-a"}


def test_a_package_that_is_not_there_is_an_error(home: Home) -> None:
    home.install("reveal_telemetry", "reveal_a/__init__.py")
    with pytest.raises(SystemExit, match="reveal_z"):
        trim.main(home.folder, ("reveal_a", "reveal_z"))


def test_unimported_modules_of_a_client_are_removed(home: Home) -> None:
    transport = ("kubernetes/client/__init__.py", "kubernetes/client/rest.py")
    unused = ("kubernetes/aio/__init__.py", "kubernetes/client/api/core.py")
    home.install("kubernetes", *transport, *unused)
    trim.main(home.folder, ())
    assert all(home.has(path) for path in transport)
    assert not any(home.has(path) for path in unused)


def test_pips_list_of_files_stays_true(home: Home) -> None:
    home.install(
        "fast", "fast/__init__.py", "fast/tests/test_core.py", scripts={"run": "fast:main"}
    )
    trim.main(home.folder, ())
    assert set(home.record("fast")) == {
        "fast/__init__.py",
        "fast-1.0.dist-info/METADATA",
        "fast-1.0.dist-info/RECORD",
        "fast-1.0.dist-info/entry_points.txt",
    }


def compiled(home: Home, name: str) -> Path:
    """A shared library with debugging sections, larger than what is left alone."""
    path = home.site / name
    source = home.folder / "code.c"
    source.write_text(
        "".join(
            f"int number_{number}(int x) {{ return x + {number}; }}\n" for number in range(2000)
        )
    )
    command = ["cc", "-g", "-O0", "-shared", "-fPIC", "-o", str(path), str(source)]
    subprocess.run(command, check=True)
    return path


needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("strip") is None, reason="no C compiler, no strip"
)


@needs_compiler
def test_libraries_lose_what_only_debuggers_read(home: Home) -> None:
    home.install("fast", "fast/__init__.py", "fast/core.so")
    library = compiled(home, "fast/core.so")
    before = library.stat().st_size
    trim.main(home.folder, ())
    assert library.stat().st_size < 0.7 * before
    assert trim.loads(library)
    digest, size = home.record("fast")["fast/core.so"]
    assert int(size) == library.stat().st_size
    assert digest.startswith("sha256=") and digest != "sha256=unknown"
    assert not list(home.site.rglob("*.stripped"))


@needs_compiler
def test_what_auditwheel_patched_is_left_alone(home: Home) -> None:
    """strip(1) breaks libraries whose sections patchelf moved."""
    home.install("fast", "fast/__init__.py", "fast/core.so", "fast.libs/libgrafted.so.1")
    library, grafted = compiled(home, "fast/core.so"), compiled(home, "fast.libs/libgrafted.so.1")
    before = library.read_bytes(), grafted.read_bytes()
    trim.main(home.folder, ())
    assert (library.read_bytes(), grafted.read_bytes()) == before
