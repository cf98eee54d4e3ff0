"""However heads come into memory, the kernels see the same; and a file may change while it is read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import MESSAGE_V1, RECORD_BATCH
from kafka_log import SegmentReader, scan_batches
from kafka_log.heads import FAR, TRIAL, WINDOW, ReadHeads
from kafka_log.scanner import BatchScanner, Scanner
from tests.arrow.rows import unpacked

SIZES = (0, 10, 300, FAR, 2 * FAR, 200_000)


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
    scanner = BatchScanner(path, ["position", "size"], engine="arrow", **options)
    rows = [row for batch in scanner for row in unpacked(batch)]
    return [(row["position"], row["size"]) for row in rows]


@given(st.lists(st.tuples(st.sampled_from(SIZES), st.integers(1, 2 * TRIAL)), max_size=4))
def test_batches_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("heads") / "x.log"
    expected = write(path, [size for size, count in runs for _ in range(count)])
    for options in ({}, {"chunk_bytes": 5000}, {"mmap": True}):
        assert read(path, **options) == expected
    for start, _ in expected[:: len(expected) // 3 + 1]:
        rest = [pair for pair in expected if pair[0] >= start]
        assert read(path, start=start) == rest
        assert read(path, start=start, stop=start + 1) == rest[:1]


def test_only_the_heads_of_large_batches_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.log"
    asked: list[int] = []

    def counting(file: Any, view: memoryview, position: int) -> int:
        asked.append(len(view))
        return real(file, view, position)

    from kafka_log import heads

    real = heads.read_at
    monkeypatch.setattr(heads, "read_at", counting)
    expected = write(path, [200_000] * 50)
    assert read(path) == expected
    assert max(asked) < 100 and len(asked) < 60
    asked.clear()
    expected = write(path, [10] * 5000 + [200_000] * 200)
    assert read(path, chunk_bytes=4 << 20) == expected
    assert len(asked) < TRIAL + 250
    assert sum(asked) < 9 << 20 < path.stat().st_size / 4


def test_a_batch_larger_than_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [10, 3_000_000, 10, 2_000_000, 2_500_000, 10])
    monkeypatch.setattr("kafka_log.heads.WINDOW", 1 << 20)
    scanner = BatchScanner(path, ["size"], engine="arrow", chunk_bytes=1000)
    assert sum(batch.num_rows for batch in scanner) == len(expected)
    assert scanner.odd == 0
    assert WINDOW > 1 << 20


def test_the_window_is_not_all_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    write(path, [200_000] * 50)
    with path.open("rb", buffering=0) as file:
        heads = ReadHeads(file, 4 << 20)
        heads.fill(0, path.stat().st_size)
        assert heads.chunk.size == path.stat().st_size
        assert not heads.chunk.array[1000:4096].any()


def shrinking(scanner: BatchScanner, path: Path, size: int) -> Iterator[dict[str, Any]]:
    for number, batch in enumerate(scanner):
        if number == 0:
            with path.open("r+b") as file:
                file.truncate(size)
        yield from unpacked(batch)


@pytest.mark.parametrize("size", [0, 13, 4096, 300_000])
@pytest.mark.parametrize("length", [10, 50_000])
def test_a_file_that_becomes_shorter_ends(length: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    sizes = [length] * (400 if length > FAR else 20_000)
    expected = write(path, sizes)
    scanner = BatchScanner(
        path, ["position", "size"], engine="arrow", chunk_bytes=100_000, on_damage="keep"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_log.heads.WINDOW", 1 << 20)
        rows = [(r["position"], r["size"]) for r in shrinking(scanner, path, size)]
    assert 0 < len(rows) < len(expected)
    assert rows == expected[: len(rows)]


def test_systems_without_positioned_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.preadv", raising=False)
    path = tmp_path / "x.log"
    expected = write(path, [10] * 300 + [50_000] * 50)
    assert read(path, chunk_bytes=5000) == expected
    assert Scanner(path, ["offset"]).to_reader().read_all().num_rows == len(expected)


@pytest.mark.parametrize("mmap", [False, True])
def test_damaged_lengths(mmap: bool, tmp_path: Path) -> None:
    r = random.Random(1)
    path = tmp_path / "x.log"
    expected = write(path, [r.choice(SIZES) for _ in range(100)])
    data = bytearray(path.read_bytes())
    at = expected[60][0]
    for length in (-1, 0, 5, 1 << 30):
        data[at + 8 : at + 12] = length.to_bytes(4, "big", signed=True)
        path.write_bytes(data)
        assert read(path, mmap=mmap, on_damage="keep") == expected[:60]
        reader = SegmentReader(path, records=False)
        assert sum(1 for _ in reader) == 60


def test_the_function_takes_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    expected = write(path, [10, 100_000, 10])
    for mmap in (False, True):
        table = scan_batches(path, ["position", "size"], mmap=mmap).read_all()
        assert list(zip(*table.to_pydict().values(), strict=True)) == expected
