"""What may happen to a text file of the kernel, or to one that is none."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

Lines = list[list[bytes]]
Text = Callable[[bytes], bytes]

_WORDS = st.sampled_from(
    [b"0", b"7", b"-3", b"x", b"cpu9", b"4294967295", b"9" * 30, b"\xff:", b"1.5"]
)
_SHARES = st.tuples(st.floats(0, 0.999), st.floats(0, 0.999))


@st.composite
def mutations(draw: st.DrawFn) -> Text:
    """What happens to such files: a token or a line replaced, gone, doubled, moved."""
    how = draw(st.sampled_from(["replace", "delete", "insert", "drop", "double", "swap"]))
    (line_share, token_share), word, other = draw(_SHARES), draw(_WORDS), draw(st.floats(0, 0.999))

    def mutate(data: bytes) -> bytes:
        lines = [line.split() for line in data.splitlines()]
        number = int(line_share * len(lines))
        tokens = lines[number]
        index = int(token_share * len(tokens))
        if how == "replace":
            tokens[index : index + 1] = [word]
        elif how == "delete":
            del tokens[index]
        elif how == "insert":
            tokens.insert(index, word)
        else:
            _move(lines, how, number, int(other * len(lines)))
        return b"".join(b" ".join(tokens) + b"\n" for tokens in lines)

    return mutate


def _move(lines: Lines, how: str, number: int, other: int) -> None:
    if how == "drop":
        del lines[number]
    elif how == "double":
        lines.insert(other, list(lines[number]))
    else:
        lines[number], lines[other] = lines[other], lines[number]


@st.composite
def garbage(draw: st.DrawFn) -> Text:
    """Some bytes of the file replaced by any others."""
    start, length = draw(st.floats(0, 1)), draw(st.integers(0, 40))
    put = draw(st.binary(max_size=40))

    def spoil(data: bytes) -> bytes:
        index = int(start * len(data))
        return data[:index] + put + data[index + length :]

    return spoil
