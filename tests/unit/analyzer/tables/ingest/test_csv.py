"""Text tables as a generator writes them: whatever the form, the same values come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.reader import read
from support.property_tests import examples

START = datetime(2023, 5, 5, 9, 0, 0, tzinfo=UTC)
SAMPLES = 12
TIMES: dict[str, Callable[[datetime], str]] = {
    "epoch": lambda t: f"{t.timestamp():.0f}",
    "ms": lambda t: f"{t.timestamp() * 1000:.0f}",
    "iso": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "digits": lambda t: t.strftime("%Y%m%d%H%M%S"),
    "blank": lambda t: t.strftime("%Y-%m-%d %H:%M:%S"),
    "zone": lambda t: t.strftime("%Y-%m-%d %H:%M:%S UTC"),
    "slashes": lambda t: t.strftime("%Y/%m/%d %H:%M:%S.000"),
    "points": lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
    "twelve": lambda t: t.strftime("%Y-%m-%d %I:%M:%S %p"),
    "named": lambda t: t.strftime("%a, %d %b %Y %H:%M:%S GMT"),
}
WITHOUT_BLANKS = ("epoch", "ms", "iso", "digits")
ABOVE = ("", "\n\n", "# by a tool\n", '"Tool 1.2"\n"Host:" n1\n')


@dataclass(frozen=True)
class Written:
    """A file, and what a reader has to find in it."""

    text: str
    names: tuple[str, ...]
    values: np.ndarray


@st.composite
def tables(draw: st.DrawFn) -> Written:
    separator = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    words = (
        WITHOUT_BLANKS
        if separator == " "
        else tuple(set(TIMES) - {"named"} if separator == "," else TIMES)
    )
    spelled = TIMES[draw(st.sampled_from(sorted(words)))]
    decimal = draw(st.sampled_from([".", ","] if separator != "," else ["."]))
    unit = draw(st.sampled_from(["", "W", "%"] if separator == " " else ["", " W", " %"]))
    labels = draw(st.sampled_from([(), ("n1", "n2"), ("n1", "n2", "n3")]))
    width = draw(st.integers(1, 3))
    numbers = st.integers(0, 9999).map(lambda number: number / 10)
    shape = SAMPLES, max(1, len(labels)), width
    size = shape[0] * shape[1] * shape[2]
    values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    values = values.reshape(shape)
    names = tuple(f"m{index}" for index in range(width))
    lines = [separator.join(["time", *(["host"] if labels else []), *names])]
    for sample in range(SAMPLES):
        for number in range(shape[1]):
            row = [f"{value:.1f}{unit}".replace(".", decimal) for value in values[sample, number]]
            moment = spelled(START + timedelta(seconds=sample))
            lines.append(separator.join([moment, *labels[number : number + 1], *row]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = draw(st.sampled_from(ABOVE)) + "\n".join([*lines, ""])
    return Written(text.replace("\n", end), names, values)


@examples(150)
@given(written=tables())
def test_values_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, written: Written
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(written.text.encode())
    data = read(path)
    assert len(data.nodes) == written.values.shape[1]
    for number, node in enumerate(data.nodes):
        assert node.table.names == written.names
        np.testing.assert_allclose(node.table.values, written.values[:, number])
    assert np.diff(data.times_ns).tolist() == [10**9] * (SAMPLES - 1)
    assert data.times_ns[0] == int(START.timestamp()) * 10**9
