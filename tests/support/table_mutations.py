"""Table files with some bytes changed, and what must hold of each that is read."""

from __future__ import annotations

from random import Random

from reveal_analyzer.tables.ingest.reader import Dataset
from support.format_samples import format_samples

_INSERTED = (
    b",", b";", b"\n", b'"', b"\t", b" ", b"#", b"NaN", b"1e999", b"\r", b"-", b"2023-05-05",
    b"05/06/2023", b"9:00:07", b"\0", b"\xff\xfe", b"Average:", b"<not counted>", b"[N/A]",
)  # fmt: skip
_ABOVE = (b"# x\n", b"a\n", b"sep=;\n", b"\n", b"1,2,3\n", b"Linux 6.1 (n1) 05/06/23 x (2 CPU)\n")
_TIMES = (
    "2026-11-21 10:{:02d}:00",
    "{0}",
    "9:{:02d}:00",
    "05/06/2026 10:{:02d}:00",
    "46347.{:02d}",
)


def originals() -> list[bytes]:
    """Return the beginnings of the files of tools, and tables in the spellings of people."""
    tools = [sample.text[:2500].encode() for sample in format_samples()]
    tables = []
    for separator in ",;\t| ":
        for form in _TIMES:
            rows = [
                [form.format(n).replace(" ", "T"), "ab"[n % 2], str(n), f"{n}.5"] for n in range(24)
            ]
            lines = [["time", "host", "cpu", "mem"], *rows]
            tables.append("".join(separator.join(line) + "\n" for line in lines).encode())
    return [*tools, *tables, tables[0].decode().encode("utf-16")]


def mutated(original: bytes, random: Random) -> bytes:
    """Return a file with one to six changes."""
    data = bytearray(original[: random.choice((400, 1000, 2500))])
    for _ in range(random.randint(1, 6)):
        how, index = random.random(), random.randrange(len(data) or 1)
        if how < 0.3:
            data[index : index + 1] = bytes([random.randrange(256)])
        elif how < 0.5:
            del data[index : index + random.randint(1, 30)]
        elif how < 0.7:
            data[index:index] = random.choice(_INSERTED)
        elif how < 0.85:
            start = random.randrange(len(data) or 1)
            data[index:index] = data[start : start + random.randint(1, 80)]
        else:
            data[:0] = random.choice(_ABOVE)
    return bytes(data)


def unaccounted(data: Dataset) -> set[str]:
    """Return the columns of a table that are neither judged nor said to be left out."""
    understood = data.understanding
    every = {name or f"#{index + 1}" for index, name in enumerate(understood.columns)}
    named = {each.name for each in understood.omitted}
    named |= {*understood.time.split(", "), *understood.entities, *understood.metrics}
    return every - named
