"""Ranges give the rows that a filter of everything gives, with index files, without them, and with wrong ones."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codecgen.runtime.errors import ChecksumError
from kafka_codecs import RECORD_BATCH
from kafka_log import Policy, Segment, SegmentReader, discover, read_table
from kafka_log.logs.index_files import (
    OFFSET_ENTRY_DTYPE,
    TIME_ENTRY_DTYPE,
    find_position_by_index,
    read_index_entries,
)
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.partition_logs import (
    START,
    get_offsets,
    get_times,
    put_offsets,
    put_times,
    rows_of,
    write_log,
)
from tests.support.scanned_rows import unpacked

KINDS: list[dict[str, Any]] = [
    {"ordered": True, "gaps": False},
    {"ordered": True, "whole_sets": True, "batches": 20},
    {"gaps": True, "batches": 20, "every": 0},
    {"every": 400, "batches": 30, "preallocated": 5},
    {"ordered": True, "segments": 5, "every": 0, "preallocated": 40},
    {"segments": 4, "whole_sets": True, "every": 0},
]


@dataclass(frozen=True)
class Log:
    path: Path
    rows: list[tuple[int, int]]

    def within(self, offsets: Bounds, timestamps: Bounds) -> list[tuple[int, int]]:
        return [r for r in self.rows if inside(r[0], offsets) and inside(r[1], timestamps)]

    def bound(self, draw: st.DrawFn, column: int) -> int | None:
        near = st.sampled_from([row[column] for row in self.rows]).flatmap(
            lambda v: st.integers(max(v - 3, 0), v + 3)
        )
        low = [] if column == 0 else [-(1 << 63), -1]  # negative offsets count from the end
        wide = st.sampled_from([*low, 0, (1 << 63) - 1])
        return draw(st.none() | near | near | near | wide)

    def bounds(self, draw: st.DrawFn, column: int) -> Bounds:
        pair = self.bound(draw, column), self.bound(draw, column)
        low, high = pair
        return (high, low) if low is not None and high is not None and low > high else pair


Bounds = tuple[int | None, int | None]
ANY: Bounds = (None, None)


def inside(value: int, bounds: Bounds) -> bool:
    low, high = bounds
    return (low is None or value >= low) and (high is None or value < high)


def read(path: Path, offsets: Bounds, timestamps: Bounds, **options: Any) -> list[tuple[int, int]]:
    columns = ("offset", "timestamp")
    table = read_table(path, columns, offsets=offsets, timestamps=timestamps, **options)
    rows = [row for batch in table.to_batches() for row in unpacked(batch)]
    return [(row["offset"], row["timestamp"]) for row in rows]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    root = tmp_path_factory.mktemp("logs")
    made = []
    for i, kind in enumerate(KINDS):
        path = write_log(root / f"topic-{i}", random.Random(i), **kind)
        made.append(Log(path, rows_of(path)))
    return made


@pytest.fixture(scope="module")
def bare(logs: list[Log]) -> list[Log]:
    """The same without index files."""
    made = []
    for log in logs:
        path = log.path.parent / "bare" / log.path.name
        shutil.copytree(log.path, path, ignore=shutil.ignore_patterns("*index"))
        made.append(Log(path, log.rows))
    return made


@pytest.mark.slow
@given(st.data())
def test_ranges_are_filters_of_everything(
    logs: list[Log], bare: list[Log], data: st.DataObject
) -> None:
    i = data.draw(st.integers(0, len(logs) - 1))
    offsets = logs[i].bounds(data.draw, 0)
    timestamps = logs[i].bounds(data.draw, 1)
    engine = data.draw(st.sampled_from(["arrow", "arrow", "construct"]))
    chunk_bytes = data.draw(st.sampled_from([100, 4 << 20]))
    expected = logs[i].within(offsets, timestamps)
    for log in (logs[i], bare[i]):
        for indexes in (True, False):
            options = {"engine": engine, "chunk_bytes": chunk_bytes, "indexes": indexes}
            assert read(log.path, offsets, timestamps, **options) == expected


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("count", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_ranges_of_what_brokers_wrote(policy: Policy, count: int, seed: int) -> None:
    r = random.Random(seed)
    for partition in discover([SAMPLES / "kafka-4.x"]) + discover([SAMPLES / "kafka-2.8"]):
        log = Log(partition.directory, rows_of(partition.directory))
        if not log.rows:
            continue
        for _ in range(count):
            (a, b), (c, d) = (
                sorted(r.choice(log.rows)[column] for _ in range(2)) for column in (0, 1)
            )
            for offsets, times in (((a, b + 1), ANY), (ANY, (c, d + 1)), ((a, None), (c, None))):
                found = read(log.path, offsets, times, policy=policy, deleted_records=True)
                assert found == log.within(offsets, times)


def segments(logs: list[Log]) -> Iterator[Segment]:
    for log in logs:
        yield from discover(log.path)[0].segments


@pytest.mark.slow
def test_reading_begins_where_the_index_says(logs: list[Log]) -> None:
    """For every entry, and the offset before the next one."""
    count = 0
    for segment in segments(logs):
        found = [e for e in get_offsets(segment.path) if e != (0, 0)]
        following = [offset for offset, _ in found[1:]] + [1 << 31]
        for (offset, position), after in zip(found, following, strict=True):
            for relative in (offset, after - 1):
                assert (
                    find_position_by_index(segment, segment.base_offset + relative, None)
                    == position
                )
                count += 1
        assert find_position_by_index(segment, segment.base_offset, None) == 0
    assert count > 200


def test_reading_begins_behind_what_is_too_old(logs: list[Log]) -> None:
    """At the first batch with such a timestamp after the one that the index names."""
    skipped = 0
    for segment in segments(logs):
        batches = list(SegmentReader(segment.path))
        for timestamp, relative in get_times(segment.path):
            if not timestamp:
                continue
            for wanted in (timestamp, timestamp + 1):
                found = find_position_by_index(segment, None, wanted)
                passed = [b for b in batches if b.position < found]
                assert all(b.max_timestamp < wanted for b in passed)
                assert relative + segment.base_offset in [
                    b.last_offset for b in batches if b.position <= found
                ]
                skipped += len(passed)
    assert skipped > 200


def test_a_segment_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t-0", random.Random(3), segments=4, batches=40, ordered=True)
    segment = discover(path)[0].segments[2]
    batches = list(SegmentReader(segment.path))
    largest = max(batch.max_timestamp for batch in batches)
    assert find_position_by_index(segment, None, largest + 1) == batches[-1].position


def test_an_index_that_ends_early_does_not_hide_what_follows(tmp_path: Path) -> None:
    """A broker adds the last entry when it closes a segment."""
    path = write_log(tmp_path / "t-0", random.Random(5), segments=3, batches=30)
    rows = rows_of(path)
    for segment in discover(path)[0].segments:
        times = get_times(segment.path)
        for count in range(len(times)):
            put_times(segment.path, times[:count])
            for low in {t for t, _ in times} | {t + 1 for t, _ in times}:
                assert read(path, ANY, (low, None)) == [row for row in rows if row[1] >= low]


def lies(draw: st.DrawFn, segment: Segment) -> None:
    """Index files that say something else: random, shifted, in disorder, of other places, or cut."""
    batches = list(SegmentReader(segment.path))
    base = segment.base_offset
    size = segment.size
    last = st.sampled_from([b.last_offset - base for b in batches])
    small = st.integers(-2, batches[-1].last_offset - base + 2)
    places = st.sampled_from([b.position for b in batches]) | st.integers(-1, size + 1)
    clocks = st.sampled_from([b.max_timestamp for b in batches])
    clock = clocks | clocks.flatmap(lambda t: st.integers(t - 3, t + 3)) | st.integers(-2, 1 << 62)
    offsets = draw(st.lists(st.tuples(last | small, places), max_size=12))
    times = draw(st.lists(st.tuples(clock, last | small), max_size=12))
    if draw(st.booleans()):
        offsets, times = sorted(set(offsets)), sorted(set(times))
    # What a batch says itself cannot be told from the truth without reading all before it.
    said = {(b.max_timestamp, b.last_offset - base) for b in batches}
    inner = {
        (b.max_timestamp, offset)
        for b in batches
        for offset in range((b.base_offset or 0) - base, b.last_offset - base)
    }
    put_offsets(segment.path, offsets)
    put_times(segment.path, [time for time in times if time not in said | inner])
    for suffix in (".index", ".timeindex"):
        path = segment.path.with_suffix(suffix)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) - draw(st.integers(0, min(9, len(content))))])


@pytest.mark.soak
@given(st.data())
def test_lying_indexes_change_nothing(logs: list[Log], data: st.DataObject) -> None:
    log = data.draw(st.sampled_from(logs))
    path = log.path.parent / "lying" / log.path.name
    shutil.copytree(log.path, path, dirs_exist_ok=True)
    for segment in discover(path)[0].segments:
        lies(data.draw, segment)
    for _ in range(4):
        offsets, timestamps = log.bounds(data.draw, 0), log.bounds(data.draw, 1)
        assert read(path, offsets, timestamps) == log.within(offsets, timestamps)


@pytest.mark.slow
@given(st.binary(max_size=80))
@example(b"")
@example(bytes(7))
@example(bytes(800))
def test_any_bytes_can_lie_where_an_index_should(logs: list[Log], data: bytes) -> None:
    log = logs[1]
    path = log.path.parent / "bytes" / log.path.name
    shutil.copytree(log.path, path, dirs_exist_ok=True)
    for segment in discover(path)[0].segments:
        for suffix in (".index", ".timeindex"):
            segment.path.with_suffix(suffix).write_bytes(data)
    low, time = log.rows[len(log.rows) // 2]
    assert read(path, (low, None), ANY) == log.within((low, None), ANY)
    assert read(path, ANY, (time, None)) == log.within(ANY, (time, None))


def test_a_batch_inside_of_a_value_is_no_place_to_begin(tmp_path: Path) -> None:
    """An index that points at bytes that look like a batch, with offsets that fit."""

    def batch(base: int, values: list[bytes]) -> bytes:
        records = [{"offset_delta": i, "value": v} for i, v in enumerate(values)]
        fields = {"base_offset": base, "last_offset_delta": len(values) - 1, "records": records}
        return RECORD_BATCH.build({"partition_leader_epoch": 0, "attributes": {}, **fields})

    inner = batch(3, [b"not a record"])
    data = [batch(0, [b"a", b"b"]), batch(2, [inner, b"c", b"d", b"e"]), batch(6, [b"f"])]
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(data))
    position = path.read_bytes().index(inner)
    put_offsets(path, [(3, position)])
    assert read_table(path, ["value"], offsets=(3, None)).column("value").to_pylist() == [b"c", b"d", b"e", b"f"]  # fmt: skip
    put_offsets(path, [(1, 0), (3, position)])
    assert read_table(path, ["value"], offsets=(4, None)).column("value").to_pylist() == [b"d", b"e", b"f"]  # fmt: skip


def test_entries_are_those_that_are_in_order(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"

    def offsets(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
        put_offsets(path, pairs)
        return [
            (int(o), int(p))
            for o, p in read_index_entries(path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
        ]

    assert offsets((1, 10), (2, 20), (0, 0), (0, 0)) == [(1, 10), (2, 20)]
    assert offsets((1, 10), (0, 0), (2, 20)) == []
    assert offsets((2, 10), (2, 20)) == []
    assert offsets((1, 20), (2, 20)) == []
    assert offsets((-1, 10), (2, 20)) == []
    assert offsets((1, -10), (2, 20)) == []
    assert offsets((0, 0)) == []
    assert offsets((3, 0)) == [(3, 0)]
    assert offsets((0, 0), (0, 5)) == []
    put_times(path, [(START, 0)])
    assert read_index_entries(path.with_suffix(".timeindex"), TIME_ENTRY_DTYPE).tolist() == [
        (START, 0)
    ]
    put_times(path, [(START, 4), (START + 1, 9)])
    path.with_suffix(".timeindex").open("ab").write(b"torn")
    found = read_index_entries(path.with_suffix(".timeindex"), TIME_ENTRY_DTYPE)
    assert [(int(t), int(o)) for t, o in found] == [(START, 4), (START + 1, 9)]
    assert len(read_index_entries(tmp_path / "none.index", OFFSET_ENTRY_DTYPE)) == 0


@pytest.mark.parametrize("size", [8 * 20_000, 10 << 20, 16 << 20])
def test_all_entries_of_a_large_index_file(size: int, tmp_path: Path) -> None:
    """More of them than are read at a time; brokers make the file of the segment that they write to 10 MiB long."""
    path = tmp_path / "large.index"
    pairs = np.arange(1, 40_001, dtype=">i4").reshape(-1, 2)
    path.write_bytes(pairs.tobytes())
    os.truncate(path, size)
    found = read_index_entries(path, OFFSET_ENTRY_DTYPE)
    assert found["relative_offset"].tolist() == list(range(1, 40_001, 2))
    assert found["position"].tolist() == list(range(2, 40_001, 2))


def test_an_index_file_of_more_than_16_mib_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.index"
    pairs = np.arange(1, (16 << 20) // 4 + 3, dtype=">i4")
    path.write_bytes(pairs[:-2].tobytes())
    assert len(read_index_entries(path, OFFSET_ENTRY_DTYPE)) == 2 << 20
    path.write_bytes(pairs.tobytes())
    assert len(read_index_entries(path, OFFSET_ENTRY_DTYPE)) == 0


def test_an_index_file_that_is_too_large_is_not_read(
    logs: list[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = next(iter(segments(logs[2:])))
    last = get_offsets(segment.path)[-1]
    assert find_position_by_index(segment, segment.base_offset + last[0], None) == last[1]
    monkeypatch.setattr("kafka_log.logs.index_files.MAX_BYTES", 8)
    assert find_position_by_index(segment, segment.base_offset + last[0], None) == 0


# ---------------------------------------------------------------- damage, and offsets that do not rise


def damaged(log: Log, path: Path, number: int) -> tuple[Segment, int, int]:
    """A copy of the last segment with a wrong checksum in one batch: its first and its next offset."""
    shutil.copytree(log.path, path)
    segment = discover(path)[0].segments[-1]
    batch = list(SegmentReader(segment.path))[number]
    data = bytearray(segment.path.read_bytes())
    data[batch.position + batch.size - 1] ^= 1
    segment.path.write_bytes(data)
    assert batch.base_offset is not None
    return segment, batch.base_offset, batch.next_offset


def test_damage_outside_of_a_range(logs: list[Log], tmp_path: Path) -> None:
    segment, first, after = damaged(logs[2], tmp_path / "topic-2", 3)
    path = segment.path
    wanted = [row for row in logs[2].rows if row[0] >= after + 60]
    assert wanted and read(path, (after + 60, None), ANY) == wanted
    before = [row for row in logs[2].rows if segment.base_offset <= row[0] < first]
    for engine in ("arrow", "construct"):
        assert before and read(path, (None, first), ANY, engine=engine) == before
    cases: list[tuple[Bounds, dict[str, Any]]] = [
        ((after + 60, None), {"indexes": False}),
        ((after + 60, None), {"policy": "strict"}),
        ((None, first), {"policy": "strict"}),
        ((first, None), {}),
        ((None, first + 1), {}),
    ]
    for bounds, options in cases:
        with pytest.raises(ChecksumError):
            read(path, bounds, ANY, **options)


@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_offsets_that_do_not_rise(engine: Literal["arrow", "construct"], tmp_path: Path) -> None:
    """No row of the range is lost, and reading ends before what follows the last batch of the range."""
    path = tmp_path / "disorder.log"
    parts = []
    for number in (5, 1, 9, 2):
        folder = write_log(tmp_path / f"t-{number}", random.Random(number), segments=1)
        parts.append(discover(folder)[0].segments[0].path.read_bytes())
    path.write_bytes(b"".join(parts))
    offsets = [row[0] for row in rows_of(path)]
    assert offsets != sorted(offsets)
    high = sorted(offsets)[len(offsets) // 2]
    low = sorted(offsets)[len(offsets) // 4]
    for policy in Policy:
        for chunk_bytes in (64, 300, 4 << 20):
            scanner = Scanner(
                path,
                ["offset"],
                policy,
                selection=RowSelection((low, high)),
                engine=engine,
                chunk_bytes=chunk_bytes,
            )
            found = [row["offset"] for batch in scanner for row in unpacked(batch)]
            assert found == [offset for offset in offsets if low <= offset < high]
            assert (scanner.end is None) == (policy == "kafka" and offsets[-1] >= high)


@pytest.mark.parametrize("policy", ["strict", "kafka", "salvage"])
@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_offsets_count_from_the_largest_one(tmp_path: Path, count: int, policy: Any) -> None:
    """The end of such a log is no offset, but the places before it are."""
    largest = (1 << 63) - 1
    path = tmp_path / "t-0" / f"{largest - 9:020d}.log"
    path.parent.mkdir()
    bases = (largest - 9, largest - 3)
    data = [RECORD_BATCH.build({"base_offset": base, "last_offset_delta": 3, "records": [{"offset_delta": i} for i in range(4)]}) for base in bases]  # fmt: skip
    path.write_bytes(b"".join(data))
    every = [base + i for base in bases for i in range(4)]
    for low, high in ((-count, None), (None, -count), (-count, -1)):
        found = read_table(tmp_path, ["offset"], policy, offsets=(low, high))["offset"].to_pylist()
        first, end = (largest + 1 + n if n is not None else None for n in (low, high))
        assert found == [o for o in every if inside(o, (first, end))]
