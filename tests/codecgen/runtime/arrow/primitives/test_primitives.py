"""The primitives of the kernels against Python's own, the reference codecs and zlib."""

from __future__ import annotations

import importlib
import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.primitives import (
    checksums,
    compiling,
    table_checksums,
    utf8,
    varints,
)
from codecgen.runtime.arrow.primitives.memory import SLACK
from codecgen.runtime.checksums import CHECKSUMS, Crc, Mask, checksum
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.primitives import Varint
from codecgen.targets.arrow import primitive_imports
from tests.shares import draw_seeds
from tests.support.checksum_kernels import CHECKSUM_KERNELS, to_signed


@compiling.jit
def varint(p: int) -> tuple[int, int, bool]:
    return varints.varint(p)


@compiling.jit
def varlong(p: int) -> tuple[int, int, bool]:
    return varints.varlong(p)


@compiling.jit
def uvarint(p: int) -> tuple[int, int, bool]:
    return varints.uvarint(p)


@compiling.jit
def is_utf8(p: int, size: int) -> bool:
    return utf8.is_utf8(p, size)


@compiling.jit
def crc_32c(p: int, size: int) -> int:
    return checksums.crc32c(p, size)


@compiling.jit
def crc_32(p: int, size: int) -> int:
    return checksums.crc32(p, size)


VARINTS = [
    (varint, Varint(32)),
    (varlong, Varint(64)),
    (uvarint, Varint(32, signed=False)),
]


def memory(data: bytes) -> Any:
    return np.frombuffer(data + bytes(SLACK), np.uint8)


LENGTHS = [*range(600), 1000, 1151, 1152, 1153, 4096, 16384, 99_999]


@pytest.mark.slow
def test_checksums_of_all_lengths() -> None:
    data = random.Random(1).randbytes(100_100)
    array = memory(data)
    for i, n in enumerate(LENGTHS):
        start = i % 17
        part = data[start : start + n]
        address = array.ctypes.data + start
        assert crc_32c(address, n) == crc32c(part)
        assert crc_32(address, n) == zlib.crc32(part)


def compiled(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """The function as kernels call it. It is compiled again in each process."""
    return compiling.numba.njit(lambda p, size: function(p, size)) if compiling.JIT else function


MANY_LENGTHS = [*range(2001), 2047, 2048, 2049, 4096, 16384, 99_999]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("name", CHECKSUMS)
def test_kernels_compute_every_checksum(name: str) -> None:
    """Any length, at any address, with bytes after it that are not its own."""
    function, wanted = compiled(CHECKSUM_KERNELS[name]), checksum(name)
    r = random.Random(name)
    data = r.randbytes(100_100)
    array = memory(data)
    lengths = MANY_LENGTHS if name.startswith("xxh") else [*range(100), *MANY_LENGTHS[-6:]]
    for n in lengths:
        start = r.randrange(64)
        found = function(array.ctypes.data + start, n)
        assert found == to_signed(wanted(data[start : start + n])), (start, n)


@pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")
@pytest.mark.parametrize("name", ["crc32", "crc32c"])
def test_checksums_by_tables(name: str) -> None:
    """As where the processor has no instructions for them."""
    kind = CHECKSUMS[name]
    assert isinstance(kind, Crc)
    by_tables, wanted = compiled(table_checksums.compile_crc(kind)), checksum(name)
    data = random.Random(2).randbytes(300)
    array = memory(data)
    for n in range(300):
        assert by_tables(array.ctypes.data, n) == wanted(data[:n])


@pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")
def test_checksums_by_tables_have_machine_code_of_their_own() -> None:
    """A cached kernel brings the code of its checksums by their names: no other code may have them, whatever number numba adds."""
    kinds = [kind for kind in CHECKSUMS.values() if isinstance(kind, Crc)]
    functions: list[Any] = [table_checksums.compile_crc(kind) for kind in kinds]
    assert len({function.py_func.__qualname__ for function in functions}) == len(kinds) > 5


def test_no_other_names_are_checksums_by_tables() -> None:
    for name in ("xxh64", "crc65", "crc"):
        with pytest.raises(AttributeError, match=name):
            getattr(table_checksums, name)


@pytest.mark.parametrize("seed", draw_seeds(1, first=5))
def test_masks_of_kernels(seed: int) -> None:
    masked = compiled_mask()
    r = random.Random(seed)
    for _ in range(2000):
        width = r.choice((16, 24, 32, 64))
        value = r.getrandbits(width)
        add, keep = r.choice((0, 1, r.getrandbits(width))), r.choice((None, r.getrandbits(width)))
        mask = Mask(keep, r.choice((0, 1, width - 1, r.randrange(width))), add)
        kept = -1 if keep is None else to_signed(keep)
        found = masked(to_signed(value), width, mask.rotate_right, to_signed(add), kept)
        assert found == to_signed(mask.apply(value, width)), (value, width, mask)


def compiled_mask() -> Callable[[int, int, int, int, int], int]:
    if not compiling.JIT:
        return checksums.masked
    return compiling.numba.njit(lambda v, w, r, a, k: checksums.masked(v, w, r, a, k))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "codec"), VARINTS)
@pytest.mark.parametrize("seed", draw_seeds(1, first=3))
def test_varints_are_those_of_the_reference(
    function: Callable[[int], tuple[int, int, bool]], codec: Varint, seed: int
) -> None:
    r = random.Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(5000):
        head = [r.choice((0x80, 0xFF, 0x80 | r.getrandbits(7))) for _ in range(r.randrange(11))]
        data = bytes([*head, r.choice((0, 1, 2, 15, 16, 127, r.getrandbits(7)))])
        source = Source(data, Session())
        expected: tuple[int, int] | None
        try:
            expected = (codec.read(source, None), source.pos)
        except CodecError:
            expected = None
        array = memory(data)
        value, after, shortest = function(array.ctypes.data)
        found = (value, after - array.ctypes.data) if shortest else None
        assert found == expected, data.hex()
        seen[expected is None] += 1
    assert min(seen.values()) > 500


PIECES = st.sampled_from(
    [b"plain text", b"\xc3\xa4", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80",
     b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\x80", b"\xff", b"\xe2\x82", b"\xf0\x9f"]
)  # fmt: skip


@given(st.lists(PIECES | st.binary(max_size=3), max_size=5).map(b"".join))
def test_utf8_is_that_of_python(data: bytes) -> None:
    try:
        data.decode("utf-8")
        good = True
    except UnicodeDecodeError:
        good = False
    array = memory(data + b"\x80\xff")  # what lies after has no say
    assert bool(is_utf8(array.ctypes.data, len(data))) == good


def test_the_generator_knows_where_primitives_are() -> None:
    package = "codecgen.runtime.arrow.primitives"
    for module, names in primitive_imports.MODULES.items():
        found = importlib.import_module(f"{package}.{module}")
        assert [name for name in names if not hasattr(found, name)] == []
