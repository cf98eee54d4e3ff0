"""However headers come into memory, the kernels see the same; and a file may change while it is read."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow import header_reads
from codecgen.runtime.arrow.primitives.compiling import JIT
from kafka_codecs import MESSAGE_V1, RECORD_BATCH
from kafka_log import SegmentReader, scan_batches
from kafka_log.segment.header_loading import FAR, FAR_BY_KERNEL, TRIAL, WINDOW, ReadHeaders
from kafka_log.segment.positioned_reads import read_at
from kafka_log.segment.scanner import Scanner, header_scanner
from tests.support.scanned_rows import unpacked

SIZES = (0, 10, 300, FAR_BY_KERNEL - 200, FAR_BY_KERNEL, FAR, 2 * FAR, 200_000)

needs_the_kernel = pytest.mark.skipif(not JIT or header_reads.pread() is None, reason="no kernel")
WAYS = (pytest.param(True, marks=needs_the_kernel, id="kernel"), pytest.param(False, id="python"))


@contextmanager
def reading(compiled: bool) -> Iterator[pytest.MonkeyPatch]:
    """Heads are read by the kernel, or as on a system that has no ``pread``."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr("codecgen.runtime.arrow.header_reads.pread", lambda: None)
        yield patch


@cache
def entry(old: bool, size: int) -> bytes:
    """A batch or an old message of about a size. What their offsets are does not matter here."""
    if old:
        message = {"magic": 1, "offset": 1, "attributes": {}, "timestamp": 1, "key": None}
        return MESSAGE_V1.build(message | {"value": bytes(size)})
    fields = {
        "base_offset": 1,
        "last_offset_delta": 0,
        "records": [{"offset_delta": 0, "value": bytes(size)}],
    }
    return RECORD_BATCH.build({"attributes": {}, "partition_leader_epoch": 0, **fields})


def write(path: Path, sizes: list[int]) -> list[tuple[int, int]]:
    """(position, size) of what was written."""
    data = [entry(i % 7 == 3, size) for i, size in enumerate(sizes)]
    path.write_bytes(b"".join(data))
    lengths = [len(part) for part in data]
    return list(zip(accumulate(lengths, initial=0), lengths))  # noqa: B905 (one place more)


def read(path: Path, **options: Any) -> list[tuple[int, int]]:
    scanner = header_scanner(path, ["position", "size"], engine="arrow", **options)
    rows = [row for batch in scanner for row in unpacked(batch)]
    return [(row["position"], row["size"]) for row in rows]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(SIZES), st.integers(1, 2 * TRIAL)), max_size=4))
def test_batches_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("heads") / "x.log"
    expected = write(path, [size for size, count in runs for _ in range(count)])
    for options in ({}, {"chunk_bytes": 5000}, {"mmap": True}):
        assert read(path, **options) == expected
    with reading(False):
        assert read(path) == expected
    for start, _ in expected[:: len(expected) // 3 + 1]:
        rest = [pair for pair in expected if pair[0] >= start]
        assert read(path, start=start) == rest
        assert read(path, start=start, stop=start + 1) == rest[:1]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes are read from Python, each time."""
    found: list[int] = []

    def counting(file: Any, view: memoryview, position: int) -> int:
        found.append(len(view))
        return read_at(file, view, position)

    monkeypatch.setattr("kafka_log.segment.header_loading.read_at", counting)
    return found


def test_only_the_heads_of_large_batches_are_read(tmp_path: Path, asked: list[int]) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [200_000] * 50)
    with reading(False):
        assert read(path) == expected
        assert max(asked) < 100 and len(asked) < 60
        asked.clear()
        expected = write(path, [10] * 5000 + [200_000] * 200)
        assert read(path, chunk_bytes=4 << 20) == expected
    assert len(asked) < TRIAL + 250
    assert sum(asked) < 9 << 20 < path.stat().st_size / 4


@needs_the_kernel
def test_the_kernel_reads_heads_where_it_pays(tmp_path: Path, asked: list[int]) -> None:
    path = tmp_path / "x.log"
    for size in (FAR_BY_KERNEL, 200_000):
        expected = write(path, [size] * 200)
        assert read(path) == expected
        assert not asked
    expected = write(path, [10] * 5000 + [FAR_BY_KERNEL] * 200)
    assert read(path, chunk_bytes=100_000) == expected
    assert sum(asked) < 2 * sum(size for _, size in expected[:5000])
    assert set(asked) <= {100_000, min(asked)}


@pytest.mark.parametrize("compiled", WAYS)
def test_a_batch_larger_than_the_window(compiled: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [10, 3_000_000, 10, 2_000_000, 2_500_000, 10])
    with reading(compiled) as patch:
        patch.setattr("kafka_log.segment.header_loading.WINDOW", 1 << 20)
        scanner = header_scanner(path, ["size"], engine="arrow", chunk_bytes=1000)
        assert sum(batch.num_rows for batch in scanner) == len(expected)
    assert scanner.fallbacks == 0
    assert WINDOW > 1 << 20


@pytest.mark.parametrize("compiled", WAYS)
def test_the_window_is_not_all_in_memory(compiled: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    written = write(path, [200_000] * 50)
    with reading(compiled), path.open("rb", buffering=0) as file:
        heads = ReadHeaders(file, 4 << 20, compiled)
        heads.fill(0, path.stat().st_size)
        assert heads.chunk.size == path.stat().st_size
        for start, size in written:
            head, rest = np.split(heads.chunk.array[start : start + size], [61])
            assert head.any() and not rest.any()


def evict(file: Any) -> None:
    """Have the system forget what it holds of a file in memory."""
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture
def evicts(tmp_path: Path) -> None:
    """Skip where files stay in memory, or nobody can tell. A file that was asked about is read, so it is another one."""
    path = tmp_path / "other"
    path.write_bytes(bytes(1 << 12))
    with path.open("rb", buffering=0) as file:
        evict(file)
        try:
            os.preadv(file.fileno(), (bytearray(1),), 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return
        except OSError:
            pytest.skip("the file system does not tell what is in memory")
    pytest.skip("the file system keeps files in memory")


@pytest.mark.slow  # a busy disk takes its time to write what is to be forgotten
@pytest.mark.usefixtures("evicts")
@pytest.mark.parametrize("compiled", WAYS)
def test_a_file_that_is_not_in_memory_is_read_ahead(compiled: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [30_000] * 150)
    with reading(compiled), path.open("rb", buffering=0) as file:
        heads = ReadHeaders(file, 4 << 20, compiled)
        heads.fill(0, expected[50][0])
        heads.fill(expected[50][0], expected[100][0])
        assert not heads.ahead.is_cold
        evict(file)
        heads.fill(expected[100][0], path.stat().st_size)
        assert heads.ahead.is_cold
        assert read(path) == expected


@pytest.mark.parametrize("compiled", WAYS)
def test_a_window_that_was_used_before(compiled: bool, tmp_path: Path) -> None:
    """What was read into it for other headers is not taken for those that the file no longer has."""
    path = tmp_path / "x.log"
    written = write(path, [30_000] * 50)
    whole = path.stat().st_size
    with reading(compiled), path.open("r+b", buffering=0) as file:
        heads = ReadHeaders(file, 4 << 20, compiled)
        for number in (40, 30, 0):
            start, _ = written[number]
            for more in (60, 17, 1, 0):
                file.truncate(start + more)
                heads.fill(0, whole)
                assert heads.chunk.size == (start or more)
        file.truncate(0)
        heads.fill(0, whole)
        assert heads.chunk.size == 0


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="errors have no number")
@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize("far", [True, False])
def test_an_error_names_the_file(compiled: bool, far: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with reading(compiled), path.open("wb", buffering=0) as file:  # not for reading
        heads = ReadHeaders(file, 4 << 20, compiled)
        heads.far = far
        with pytest.raises(OSError) as raised:
            heads.fill(0, 1000)
    assert raised.value.filename == str(path)
    assert raised.value.errno == errno.EBADF


def shrinking(scanner: Scanner, path: Path, size: int) -> Iterator[dict[str, Any]]:
    for number, batch in enumerate(scanner):
        if number == 0:
            with path.open("r+b") as file:
                file.truncate(size)
        yield from unpacked(batch)


@pytest.mark.share(4)
@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize("size", [0, 13, 4096, 300_000])
@pytest.mark.parametrize("length", [10, 10_000, 50_000])
def test_a_file_that_becomes_shorter_ends(
    length: int, size: int, compiled: bool, tmp_path: Path
) -> None:
    path = tmp_path / "x.log"
    sizes = [length] * max(400, 1_500_000 // (length + 70))
    expected = write(path, sizes)
    scanner = header_scanner(
        path, ["position", "size"], engine="arrow", chunk_bytes=100_000, on_damage="keep"
    )
    with reading(compiled) as patch:
        patch.setattr("kafka_log.segment.header_loading.WINDOW", 1 << 20)
        rows = [(r["position"], r["size"]) for r in shrinking(scanner, path, size)]
    assert 0 < len(rows) < len(expected)
    assert rows == expected[: len(rows)]


def test_systems_without_positioned_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.preadv", raising=False)
    monkeypatch.setattr("kafka_log.segment.positioned_reads._PREADV", False)
    monkeypatch.setattr("codecgen.runtime.arrow.header_reads.pread", lambda: None)
    path = tmp_path / "x.log"
    expected = write(path, [10] * 300 + [50_000] * 50)
    assert read(path, chunk_bytes=5000) == expected
    assert Scanner(path, ["offset"]).to_reader().read_all().num_rows == len(expected)


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize("mmap", [False, True])
def test_damaged_lengths(mmap: bool, compiled: bool, tmp_path: Path) -> None:
    r = random.Random(1)
    path = tmp_path / "x.log"
    expected = write(path, [r.choice(SIZES) for _ in range(100)])
    data = bytearray(path.read_bytes())
    at = expected[60][0]
    for length in (-(1 << 31), -13, -12, -1, 0, 4, 5, 48, 1 << 30, (1 << 31) - 1):
        data[at + 8 : at + 12] = length.to_bytes(4, "big", signed=True)
        path.write_bytes(data)
        # Kafka's reader takes one that ends within its header for a batch that is damaged, and goes on after it.
        seen = expected[:60] + ([(at, 12 + length)] if length == 48 else [])
        with reading(compiled):
            assert read(path, mmap=mmap, on_damage="keep") == seen
            for chunk_bytes in (17, 100, 1 << 20):
                assert read(path, on_damage="keep", chunk_bytes=chunk_bytes) == seen
        reader = SegmentReader(path, records=False)
        assert sum(1 for _ in reader) == len(seen)


def test_the_function_takes_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [10, 100_000, 10])
    for mmap in (False, True):
        table = scan_batches(path, ["position", "size"], mmap=mmap).read_all()
        assert list(zip(*table.to_pydict().values(), strict=True)) == expected
