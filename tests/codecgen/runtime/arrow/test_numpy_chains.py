"""Chains that are followed from guessed places are those that the plain loop finds, whatever lies in the memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

from codecgen.runtime.arrow import numpy_chains
from codecgen.runtime.arrow.numpy_cases import LengthPrefix
from codecgen.runtime.arrow.numpy_chains import follow, pass_over
from codecgen.runtime.arrow.numpy_memory import Memory
from tests.shares import draw_seeds

LEADS = [
    LengthPrefix("zigzag"),
    LengthPrefix("uvarint"),
    LengthPrefix(">i4", 8, 12),
    LengthPrefix("<u2", 1, 3),
    LengthPrefix("i1", 0, 1),
]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def structure(prefix: LengthPrefix, content: bytes, r: random.Random) -> bytes:
    if prefix.is_varint:
        return varint(len(content) << (prefix.kind == "zigzag")) + content
    order: Literal["little", "big"] = "little" if prefix.order == "<" else "big"
    width = prefix.end - prefix.offset
    return r.randbytes(prefix.offset) + len(content).to_bytes(width, order) + content


def window(
    prefix: LengthPrefix, fill: Callable[[int], bytes], size: int, r: random.Random
) -> bytes:
    """Structures that all begin with the same byte, filled with something else."""
    most = 127 if prefix.kind == "i1" else 20_000
    sizes = [min(most, max(1, int(r.lognormvariate(3.5, 1)))) for _ in range(size)]
    return b"".join(structure(prefix, b"\x07" + fill(n - 1), r) for n in sizes)


def by_the_plain_loop(
    prefix: LengthPrefix, memory: Memory, start: int, end: int, most: int
) -> tuple[list[int], int]:
    rows: list[int] = []
    return rows, pass_over(prefix, memory.view, start, end, most, rows.append)


FILLS: dict[str, Callable[[random.Random], Callable[[int], bytes]]] = {
    "text": lambda r: lambda n: bytes(r.choice(b"abcdefgh ") for _ in range(n)),
    "bytes": lambda r: r.randbytes,
    "small numbers": lambda r: lambda n: bytes(r.choice((0, 0, 1, 7, 8)) for _ in range(n)),
    "what they begin with": lambda r: lambda n: b"\x07" * n,
    "structures": lambda r: lambda n: (b"\x0c\x07\x02\x03\x05\x01\x00" * n)[:n],
}


def sides(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many places each call follows chains from."""
    found: list[int] = []
    inner = numpy_chains._side_by_side

    def counted(prefix: LengthPrefix, memory: Memory, lanes: object, stop: object) -> object:
        found.append(np.size(lanes))
        return inner(prefix, memory, lanes, stop)

    monkeypatch.setattr(numpy_chains, "_side_by_side", counted)
    return found


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("prefix", LEADS, ids=lambda prefix: prefix.kind)
def test_long_windows(prefix: LengthPrefix, fill: str, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(fill)
    found = sides(monkeypatch)
    parts = [window(prefix, FILLS[fill](r), n, r) for n in (3000, 0, 1, 900, 70)]
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - [len(part) for part in parts]
    memory = Memory(np.frombuffer(b"".join(parts) + bytes(64), np.uint8))
    rows, counts, after = follow(prefix, memory, starts, ends, None)
    at = 0
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        expected, last = by_the_plain_loop(prefix, memory, start, end, 1 << 30)
        assert last == end
        got = rows[at : at + counts[i]].tolist()
        assert got == expected[: len(got)]
        assert after[i] == (expected[len(got)] if len(got) < len(expected) else end)
        at += counts[i]
    assert at == len(rows)
    if fill == "text":
        assert len(rows) == 3971
        assert found[0] > 40


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", draw_seeds(40))
@pytest.mark.parametrize("prefix", LEADS, ids=lambda prefix: prefix.kind)
def test_damaged_windows(prefix: LengthPrefix, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FEW", seed % 3), ("EACH", 2), ("SAMPLE", 4), ("MOST", 10 ** (seed % 5))):
        monkeypatch.setattr(numpy_chains, name, value)
    r = random.Random(seed)
    data = bytearray(window(prefix, FILLS[r.choice(list(FILLS))](r), 200, r))
    for _ in range(seed % 4):
        data[r.randrange(len(data))] = r.choice((0, 7, 127, 128, 255))
    edges = sorted(r.sample(range(1, len(data)), 3))
    starts, ends = np.array([0, *edges]), np.array([*edges, len(data)])
    memory = Memory(np.frombuffer(bytes(data) + bytes(64), np.uint8))
    rows, counts, after = follow(prefix, memory, starts, ends, None)
    at = 0
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        own = rows[at : at + counts[i]].tolist()
        expected, last = by_the_plain_loop(prefix, memory, start, end, len(own))
        whole = own[: len(expected)]
        assert whole == expected
        if after[i] <= end:
            assert len(own) == len(expected)
            assert after[i] == last
        else:  # a length that leads out of the window, or one that the plain loop stops at
            assert last == own[-1] or last > end or len(own) > len(expected)
        at += counts[i]
    assert at == len(rows)


@pytest.mark.parametrize(
    ("prefix", "data"),
    [
        (LengthPrefix("uvarint"), b"\xff" * 9 + b"\x7f"),
        (LengthPrefix("zigzag"), b"\xff" * 9 + b"\x7f"),
        (LengthPrefix(">u8", 0, 8), b"\xff" * 8),
        (LengthPrefix("<i8", 0, 8), b"\xff" * 7 + b"\x7f"),
    ],
    ids=lambda value: value.kind if isinstance(value, LengthPrefix) else "",
)
def test_lengths_beyond_all_memory(prefix: LengthPrefix, data: bytes) -> None:
    memory = Memory(np.frombuffer(data + bytes(64), np.uint8))
    rows, last = by_the_plain_loop(prefix, memory, 0, len(data), 5)
    assert rows == [0]
    assert len(data) < last <= numpy_chains.BEYOND
    start, end = np.array([0]), np.array([len(data)])
    rows, counts, after = follow(prefix, memory, start, end, None)
    assert (list(rows), list(counts)) in (([0], [1]), ([], [0]))
    assert counts[0] == 0 or after[0] > end[0]
