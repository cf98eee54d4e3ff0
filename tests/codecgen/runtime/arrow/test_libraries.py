"""The kernels that call libraries take what usual writers write, and nothing that the reference codec refuses."""

from __future__ import annotations

import gc
import gzip
import random
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from codecgen.runtime.arrow import gzip as gzip_kernel
from codecgen.runtime.arrow import zstd as zstd_kernel
from codecgen.runtime.arrow.decompressor import (
    CODEC,
    COUNT,
    NUMBERS,
    SECTION,
    SECTION_END,
    STATUS,
    Decompressor,
)
from codecgen.runtime.arrow.primitives import compiling, memory, native
from codecgen.runtime.arrow.primitives.native import Library
from codecgen.runtime.compression import CODECS, compress
from tests.shares import draw_seeds
from tests.support.compression_inputs import TEXTS, mutated

SLACK = memory.SLACK
NUMBER = 3
LIMIT = 1 << 20


@dataclass
class Way:
    """A codec, and what its kernel calls."""

    name: str
    kernel: ModuleType
    library: Library

    def plain(
        self,
        sections: Sequence[bytes],
        room: int = LIMIT,
        limit: int = LIMIT,
        enough: int | None = None,
    ) -> list[bytes]:
        """What the kernel makes of runs, up to the first one that it leaves to others. It writes nothing before the room
        and after it."""
        source = np.frombuffer(b"".join(sections) + bytes(SLACK), np.uint8)
        ends = np.cumsum([0, *map(len, sections)], dtype=np.int64) + source.ctypes.data
        table = np.zeros((len(sections), COUNT + 1), np.int64)
        table[:, CODEC] = NUMBER
        table[:, SECTION], table[:, SECTION_END] = ends[:-1], ends[1:]
        kinds, limits = np.ones(NUMBERS, np.int64), np.full(NUMBERS, limit, np.int64)
        out = np.full(room + 2 * SLACK, 0xEE, np.uint8)
        start = out.ctypes.data + SLACK
        ready, after = self.kernel.sections(
            table.ctypes.data,
            8 * table.shape[1],
            0,
            len(sections),
            kinds.ctypes.data,
            limits.ctypes.data,
            start,
            start + (room if enough is None else enough),
            start + room,
            *self.library.arguments,
        )
        assert (out[:SLACK] == 0xEE).all() and (out[SLACK + room :] == 0xEE).all()
        assert (table[:, STATUS] == 0).all()
        assert (table[:ready, CODEC] == 0).all() and (table[ready:, CODEC] == NUMBER).all()
        found = [
            out[begin:end].tobytes()
            for begin, end in table[:ready][:, [SECTION, SECTION_END]] - out.ctypes.data
        ]
        assert after - start == sum(map(len, found))
        return found


def ways() -> dict[str, Way]:
    found = {
        "gzip by isal": Way("gzip", gzip_kernel, gzip_kernel._isal()),
        "gzip by zlib": Way("gzip", gzip_kernel, gzip_kernel._zlib()),
        "zstd": Way("zstd", zstd_kernel, zstd_kernel.library()),
    }
    return {name: way for name, way in found.items() if way.library is not None}


WAYS = ways()
pytestmark = pytest.mark.skipif(not WAYS, reason="no library says where its functions are")
each = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may hide the functions")
def test_the_libraries_are_called_where_their_functions_are_known() -> None:
    pytest.importorskip("isal")
    assert {"gzip by isal", "zstd"} <= WAYS.keys()


@pytest.mark.skipif(not compiling.JIT, reason="only compiled kernels call libraries")
@pytest.mark.parametrize(("codec", "magic"), [("gzip", 1), ("gzip", 2), ("zstd", 2)])
def test_batches_are_read_by_them(
    codec: str, magic: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if codec not in {way.name for way in WAYS.values()}:
        pytest.skip("the library does not say where its functions are")
    rows = 5000
    table = pa.table(
        {
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.array(range(rows), pa.timestamp("ms", "UTC")),
            "value": [b"%d of many" % i for i in range(rows)],
        }
    )
    path = tmp_path / "00000000000000000000.log"
    kafka_log.write_segment(path, table, codec=codec, magic=magic)

    def refused(*_: object) -> None:
        raise AssertionError("a run went to the library by Python")

    monkeypatch.setattr(Decompressor, "_by_codec", refused)
    names = ["offset", "value"]
    assert kafka_log.read_table(path, names).to_pydict() == table.select(names).to_pydict()


@each
def test_what_is_written_is_read(way: Way) -> None:
    texts = [text for text in TEXTS if text]
    sections = [compress(way.name, text) for text in texts]
    assert way.plain(sections, sum(map(len, texts))) == texts


@each
def test_levels(way: Way) -> None:
    for level in (1, 9):
        sections = [compress(way.name, text, level=level) for text in TEXTS[6:12]]
        assert way.plain(sections) == TEXTS[6:12]


@each
def test_room_that_is_just_enough(way: Way) -> None:
    text = TEXTS[12]
    section = compress(way.name, text)
    assert way.plain([section], len(text)) == [text]
    for less in (1, 2, len(text) // 2, len(text) - 1, len(text)):
        assert way.plain([section], len(text) - less) == []


@each
def test_limits(way: Way) -> None:
    text = TEXTS[12]
    section = compress(way.name, text)
    assert way.plain([section], limit=len(text)) == [text]
    assert way.plain([section], limit=len(text) - 1) == []
    assert way.plain([section], limit=0) == []


@each
def test_it_ends_when_there_is_enough(way: Way) -> None:
    text = TEXTS[12]
    sections = [compress(way.name, text)] * 5
    for number in range(4):
        assert len(way.plain(sections, enough=number * len(text) + 1)) == number + 1
        assert len(way.plain(sections, enough=number * len(text))) == number


@each
def test_what_comes_after_one_that_is_left(way: Way) -> None:
    """A run that is refused leaves nothing after in the state of the library."""
    text = TEXTS[12]
    section = compress(way.name, text)
    for size in range(0, len(section), 7):
        assert way.plain([section, section[:size], section]) == [text]
        assert way.plain([section]) == [text]


@pytest.mark.parametrize(
    "section",
    [
        zstandard.ZstdCompressor().compress(b"abc" * 900),  # it declares its size
        zstandard.ZstdCompressor(write_checksum=True).compress(b"abc" * 900),
        compress("zstd", b"abc" * 900) * 2,
        compress("zstd", b"abc" * 900) + b"\0",
        compress("zstd", b""),
        gzip.compress(b"abc" * 900) * 2,
        gzip.compress(b"abc" * 900) + b"\0",
    ],
    ids=["size", "checksum", "twice", "tail", "empty", "gzip twice", "gzip tail"],
)
def test_unusual_runs_are_left_alone(section: bytes) -> None:
    for way in WAYS.values():
        assert way.plain([section]) == []


@pytest.mark.slow
@pytest.mark.share(3, ci=2)
@pytest.mark.parametrize("mutants", [4_000, pytest.param(30_000, marks=pytest.mark.slow)])
@each
@pytest.mark.parametrize("seed", draw_seeds(1, first=4))
def test_nothing_is_taken_that_the_reference_refuses(way: Way, mutants: int, seed: int) -> None:
    r = random.Random(seed)
    small = [text for text in TEXTS if len(text) <= 3000]
    sections = [compress(way.name, text) for text in small]
    sections += [compress(way.name, r.randbytes(300_000) + bytes(300_000))]
    taken = refused = 0
    for _ in range(mutants if compiling.JIT else 300):
        section = mutated(r, r.choice(sections))
        found = way.plain([section], 1_000_000 if len(section) > 5000 else 5000)
        known = CODECS[way.name].read(memoryview(section), LIMIT, None)
        if not found:
            refused += 1
            continue
        taken += 1
        assert (known.data, known.error, known.unused, known.notes) == (found[0], None, 0, ())
    assert taken > 20
    assert refused > 100


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_runs_are_taken_up_to_the_first_that_is_unusual(
    texts: list[bytes], data: st.DataObject
) -> None:
    way = data.draw(st.sampled_from(list(WAYS.values())))
    sections = [compress(way.name, text) for text in texts]
    found = way.plain(sections)
    assert found == texts[: len(found)]
    assert len(found) == len(texts) or not texts[len(found)]


def test_a_library_lies_as_the_kernel_thinks() -> None:
    """Otherwise it is not used."""
    for way in WAYS.values():
        if way.name == "gzip":
            assert gzip_kernel._works(way.library)
            which, begin, _, state = way.library.arguments
            idle = Library((which, begin, begin, state), way.library.kept)
            assert not gzip_kernel._works(idle)


@each
def test_threads_have_states_of_their_own(way: Way) -> None:
    texts = [text for text in TEXTS if text]
    sections = [compress(way.name, text) for text in texts]
    room = sum(map(len, texts))

    def read(_: int) -> bool:
        library = way.kernel.library()
        return all(
            Way(way.name, way.kernel, library).plain(sections, room) == texts for _ in range(3)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(4)))


@pytest.mark.slow
def test_states_are_given_back() -> None:
    for kernel in (gzip_kernel, zstd_kernel):
        library = kernel.library()
        if library is not None:
            gone = weakref.ref(library)
            del library
            gc.collect()
            assert gone() is None


def test_no_library() -> None:
    assert native.library("no_such_package.module", "zstandard.no_such_module") is None
    assert native.library("json.decoder") is None  # a file that is no library
