"""Segments in splits: of whole batches, by indexes where these can be had, and of those batches alone that are asked for. No Java is needed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_codecs import OFFSET_INDEX_ENTRY
from kafka_log import Segment, discover
from kafka_log.read.plan import Split
from kafka_log.segment.row_selection import RowSelection
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.splits.cuts import find_boundaries, intersect_runs, split_segment
from pyspark_kafka_log.splits.filters import Filter, parse_filters
from pyspark_kafka_log.splits.plan import OPEN_COST_BYTES, pack, plan, target_task_bytes
from tests.paths import VECTORS
from tests.support.lying_headers import with_header
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_plans import broker as broker
from tests.support.spark_plans import offsets, slices


@pytest.mark.slow
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    split_bytes=st.integers(1, 2000),
    first=st.none() | st.integers(0, 100),
    end=st.none() | st.integers(0, 100),
    tail=st.binary(max_size=40),
)
def test_slices_together_are_the_segment(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    split_bytes: int,
    first: int | None,
    end: int | None,
    tail: bytes,
) -> None:
    path = tmp_path_factory.mktemp("split") / f"{0:020}.log"
    batches, base = [], 0
    for i, size in enumerate(sizes):
        if i % 3 == 2:
            batches += [
                {
                    "magic": 1,
                    "offset": base,
                    "attributes": {},
                    "timestamp": 1,
                    "key": None,
                    "value": b"v" * size,
                }
            ]
            base += 1
        else:
            batches.append(batch(base, [b"v"] * size))
            base += size
    data = build(*batches)
    path.write_bytes(data + tail)
    (segment,) = discover(path)[0].segments
    whole = split_segment(segment, split_bytes)
    assert [part.start for part in whole[1:]] == [part.stop for part in whole[:-1]]
    assert (whole[0].start, whole[-1].stop) == (0, segment.size)
    count = ceil(segment.size / split_bytes)
    assert len(whole) <= count, "the last one is no small rest"
    even = ceil(segment.size / count)
    assert all(part.stop - part.start >= even for part in whole[:-1] if part.stop is not None)
    body = [Split(p.segment, p.start, min(p.stop or len(data), len(data))) for p in whole]
    assert offsets(body) == list(range(base))
    some = split_segment(segment, split_bytes, (first, end))
    rows = RowSelection((first, end), control_records=False)
    body = [Split(p.segment, p.start, min(p.stop or len(data), len(data)), rows) for p in some]
    wanted = range(max(first or 0, 0), base if end is None else min(end, base))
    assert offsets(body) == list(wanted)


@pytest.mark.parametrize("old", ["", "v0-gzip-old-cleaner", "v1-snappy-old-cleaner"])
def test_splits_of_a_range_have_all_of_its_offsets(directory: Path, old: str) -> None:
    """The header of an old wrapper has the offset of its last record, not of its first one."""
    path = write(directory, "t", 0, 0, numbered(3, 4))
    if old:
        path = VECTORS / "compacted" / f"{old}.log"
    (segment,) = discover(path)[0].segments
    whole = split_segment(segment, 1)
    every = offsets(whole)
    middle = find_boundaries(segment, 1)[1].offset or 0
    left_out = 0
    for bound in (middle - 1, middle, middle + 1):
        for low, high in ((bound, every[-1] + 1), (every[0], bound)):
            parts = split_segment(segment, 1, (low, high))
            left_out += len(whole) - len(parts)
            rows = RowSelection((low, high), control_records=False)
            found = offsets([replace(part, rows=rows) for part in parts])
            assert found == [n for n in every if low <= n < high], (low, high)
    assert left_out


@pytest.mark.parametrize("records", [None, 2])
def test_no_cut_lies_behind_the_listed_size(directory: Path, records: int | None) -> None:
    """The file has grown since: what came later is of another query."""
    path = write(directory, "t", 0, 0, numbered(2, 3))
    (segment,) = discover(path)[0].segments
    path.write_bytes(numbered(2, 6))
    parts = split_segment(segment, 1, records=records)
    assert (len(parts), parts[-1].stop) == (3, segment.size)
    assert offsets(parts) == list(range(6))


def test_damage_ends_the_search_for_boundaries(directory: Path) -> None:
    good = numbered(2, 4)
    path = write(directory, "t", 0, 0, good + b"\xff" * 500)
    (segment,) = discover(path)[0].segments
    cuts = find_boundaries(segment, 10)
    assert [cut.position for cut in cuts] == [len(good) * i // 4 for i in (1, 2, 3)]
    assert [cut.offset for cut in cuts] == [2, 4, 6]


@given(
    count=st.integers(1, 30),
    split_bytes=st.integers(1, 1500),
    lies=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000)), max_size=3),
    kept=st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_an_index_gives_places_where_batches_begin(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    split_bytes: int,
    lies: list[tuple[int, int]],
    kept: list[bool],
) -> None:
    """Whatever stands in it."""
    parts = [numbered_from(i) for i in range(count)]
    starts = [0, *accumulate(map(len, parts))][:-1]
    path = write(tmp_path_factory.mktemp("log"), "t", 0, 0, b"".join(parts))
    index = sorted({(i, at) for i, at in enumerate(starts) if kept[i]} | set(lies))
    data = b"".join(
        OFFSET_INDEX_ENTRY.build({"relative_offset": i, "position": at}) for i, at in index
    )
    path.with_suffix(".index").write_bytes(data)
    (segment,) = discover(path.parent)[0].segments
    places = [0, *(cut.position for cut in find_boundaries(segment, split_bytes, by_index=True))]
    assert set(places) <= set(starts)
    assert all(b - a >= split_bytes for a, b in pairwise(places))
    assert [c.offset for c in find_boundaries(segment, split_bytes, by_index=True)] == [
        starts.index(at) for at in places[1:]
    ]
    # No stretch is left whole in which a cut is due, but for what the index passes over.
    if not index:
        assert places[1:] == [c.position for c in find_boundaries(segment, split_bytes)]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_an_index_makes_no_cut_behind_damage(directory: Path, mode: str) -> None:
    """A broker's reader gives nothing of a file after damage, in however many tasks it is read."""
    starts = [len(numbered(2, i)) for i in range(8)]
    data = bytearray(numbered(2, 8))
    data[starts[1] + 8 : starts[1] + 12] = b"\xff" * 4  # the length of a batch
    path = write(directory, "t", 0, 0, bytes(data))
    index = b"".join(
        OFFSET_INDEX_ENTRY.build({"relative_offset": 2 * i + 1, "position": at})
        for i, at in enumerate(starts)
    )
    path.with_suffix(".index").write_bytes(index)
    for split_bytes in (str(len(data)), str(len(data) // 2)):
        given = parse(
            {"path": str(directory), "mode": mode, "policy": "kafka", "splitBytes": split_bytes}
        )
        reader = KafkaLogReader(given, ("offset",))
        rows = [b for task in reader.partitions() for b in reader.read_rows(task, Losses())]
        assert [o for b in rows for o in b["offset"].to_pylist()] == [0, 1], split_bytes


def numbered_from(offset: int) -> bytes:
    """A batch of one record."""
    return build(batch(offset, [b"v"], pad=offset))


@pytest.mark.slow
def test_large_segments_are_planned_by_their_indexes(directory: Path) -> None:
    """Files with holes: what is read of them to plan lies where their indexes say, so that a terabyte costs no more than this."""
    size, step = 1 << 30, 128 << 20
    base = 0
    for _ in range(20):
        path = write(directory, "t", 0, base, b"")
        index = []
        with path.open("r+b") as file:
            file.truncate(size)
            for n, at in enumerate(range(0, size, step)):
                two = [build(batch(base + 2 * n + i, [b"v"])) for i in range(2)]
                places = [max(at - len(two[0]), 0), at or len(two[0])]
                for data, place in zip(two, places, strict=True):
                    file.seek(place)
                    file.write(data)
                index += [(2 * n + i, place) for i, place in enumerate(places)]
        path.with_suffix(".index").write_bytes(
            b"".join(
                OFFSET_INDEX_ENTRY.build({"relative_offset": o, "position": at})
                for o, at in index[1:]
            )
        )
        base += len(index)
    tasks = plan(parse({"path": str(directory), "splitBytes": str(step)}), parallelism=2)
    assert [part.size for task in tasks for part in task] == [step] * (20 * size // step)
    assert all(len(task) == 1 for task in tasks)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    gaps=st.lists(st.integers(0, 5), min_size=20, max_size=20),
    most=st.integers(1, 60),
)
def test_tasks_have_so_many_records_at_most(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], gaps: list[int], most: int
) -> None:
    path = tmp_path_factory.mktemp("log")
    base, batches = 0, []
    for size, gap in zip(sizes, gaps, strict=False):
        batches.append(batch(base, [b"v"] * size))
        base += size + gap
    write(path, "t", 0, 0, build(*batches))
    whole = offsets(slices(path=str(path)))
    tasks = plan(parse({"path": str(path), "maxRecordsPerPartition": str(most)}))
    read = [offsets(list(task)) for task in tasks]
    assert [o for task in read for o in task] == whole
    spans = [task[-1] - task[0] + 1 for task in read]
    assert all(span <= max(most, max(sizes)) for span in spans)
    # No two neighbours would have been few enough together.
    assert all(c[0] - a[0] > most for a, c in zip(read, read[2:], strict=False))


def test_a_task_has_neither_too_many_records_nor_too_many_bytes(directory: Path) -> None:
    """Batches of three records each; what does not fit into a task begins the next one. How many the last batch has nobody has counted."""
    parts = [build(batch(first, [b"x" * 1000] * 3)) for first in range(100, 130, 3)]
    write(directory, "t", 0, 100, b"".join(parts))
    size = len(parts[0])
    assert {len(part) for part in parts} == {size}
    for records, split_bytes, batches in [
        (30, 100 * size, [9, 1]),
        (9, 100 * size, [3, 3, 3, 1]),
        (8, 100 * size, [2, 2, 2, 2, 1, 1]),
        (30, 4 * size, [4, 4, 1, 1]),
        (30, 4 * size - 1, [3, 3, 3, 1]),
        (9, 2 * size, [2, 2, 2, 2, 1, 1]),
        (1, 1, [1] * 10),
    ]:
        options = parse({"path": str(directory), "maxRecordsPerPartition": str(records)})
        tasks = plan(replace(options, split_bytes=split_bytes))
        found = [(part.stop or 0) - part.start for task in tasks for part in task]
        assert found == [size * n for n in batches], (records, split_bytes)


def test_parts_of_a_split_that_lie_in_runs(directory: Path) -> None:
    one = Segment(write(directory, "t", 0, 0, bytes(100)), "t", 0, 0, 100)
    runs = [(0, 10), (20, 30), (30, 45), (90, 100)]
    for start, stop, inside in [
        (0, None, runs),
        (0, 100, runs),
        (10, 20, []),
        (9, 21, [(9, 10), (20, 21)]),
        (25, 35, [(25, 30), (30, 35)]),
        (95, None, [(95, 100)]),
    ]:
        found = [(part.start, part.stop) for part in intersect_runs(Split(one, start, stop), runs)]
        assert found == inside, (start, stop)


@dataclass(frozen=True)
class Part:
    """What is read of one file, of which only the size is of interest."""

    size: int


def test_parts_are_packed_by_their_size_and_what_opening_costs() -> None:
    for sizes, enough, packs in [
        ([], 10, []),
        ([3], 1, [[3]]),
        ([5, 5], 10 + OPEN_COST_BYTES, [[5, 5]]),
        ([5, 5], 9 + OPEN_COST_BYTES, [[5], [5]]),
        ([1] * 5, 2 + OPEN_COST_BYTES, [[1, 1], [1, 1], [1]]),
        ([99, 1, 1], 50 + OPEN_COST_BYTES, [[99], [1, 1]]),
    ]:
        found = pack([Part(size) for size in sizes], enough)
        assert [[part.size for part in pack] for pack in found] == packs, sizes


def test_bytes_of_a_task(directory: Path) -> None:
    mib = 1 << 20
    for total, processors, options, expected in [
        (400 * mib, 4, {}, 100 * mib),
        (400 * mib, 4, {"splitBytes": str(10 * mib)}, 10 * mib),
        (4 * mib, 4, {}, 4 * mib),  # too little for several tasks
        (4 * mib, 4, {"minPartitions": "8"}, mib // 2),
        (400 * mib, 4, {"minPartitions": "2"}, 100 * mib),
        (3, 4, {"minPartitions": "8"}, 1),
    ]:
        asked = parse({"path": str(directory), **options})
        assert target_task_bytes(total, asked, processors) == expected, (total, options)
    every = parse({"path": str(directory), "splitBytes": str(1 << 40)})
    assert target_task_bytes(1 << 40, every, None) == (1 << 40) // (os.cpu_count() or 1)


def test_small_slices_share_a_task(broker: Path) -> None:
    assert [len(task) for task in plan(parse({"path": str(broker)}))] == [5]
    assert len(plan(parse({"path": str(broker), "splitBytes": "8"}))) > 5


def places(directory: Path, *filters: Filter, **options: str) -> list[tuple[int, int | None]]:
    tasks = plan(parse({"path": str(directory), **options}), parse_filters(filters), 2)
    return [(part.start, part.stop) for task in tasks for part in task]


def test_a_split_is_of_the_batches_that_are_asked_for(directory: Path) -> None:
    """By their headers; a gap between batches belongs to none of them."""
    parts = [build(batch(first, [b"x"] * 3)) for first in (0, 3, 10, 13)]
    write(directory, "t", 0, 0, b"".join(parts))
    ends = [sum(map(len, parts[:i])) for i in range(5)]
    for low, high, wanted in [
        (0, 99, (0, 4)),
        (2, 2, (0, 1)),
        (3, 5, (1, 2)),
        (5, 10, (1, 3)),
        (8, 9, None),
        (8, 10, (2, 3)),
        (15, 99, (3, 4)),
        (16, 99, None),
    ]:
        found = places(directory, ("offset", ">=", low), ("offset", "<=", high))
        assert found == ([] if wanted is None else [(ends[wanted[0]], ends[wanted[1]])]), low


def test_a_split_stays_as_it_is(directory: Path) -> None:
    """Where headers cannot be read, or damage is to be seen."""
    low = ("offset", ">=", 12)
    good = [build(batch(first, [b"x"] * 3)) for first in (0, 3, 10, 13)]
    whole = b"".join(good)
    last = len(whole) - len(good[3])
    for data, options, start in [
        (whole, {}, len(good[0] + good[1])),
        (whole, {"mode": "PERMISSIVE"}, 0),
        (whole, {"mode": "PERMISSIVE", "policy": "kafka"}, 0),
        (whole, {"policy": "strict"}, 0),
        (whole[:-1], {}, len(good[0] + good[1])),  # half a batch is the end
        (whole[: last + 16] + b"\xff" + whole[last + 17 :], {}, 0),
    ]:
        write(directory, "t", 0, 0, data)
        assert places(directory, low, **options) == [(start, len(data))], options


def test_no_batch_is_left_out_where_offsets_do_not_rise(directory: Path) -> None:
    """Nor where a header contradicts its number of records, and may have any offsets from the first one on."""
    one = len(build(batch(0, [b"x"] * 3)))
    small = {"last_offset_delta": 1}
    for order, fields, wanted in [
        ((0, 10, 3, 13), {}, [(1, 2), (3, 4)]),
        ((0, 0, 13), {}, [(2, 3)]),
        ((10, 0, 3), {}, [(0, 1)]),
        ((0, 3, 10, 13, 20, 23), {3: small, 20: small}, [(1, 5)]),
    ]:
        whole = [build(batch(first, [b"x"] * 3)) for first in order]
        data = [
            with_header(one, **fields.get(first, {}))
            for first, one in zip(order, whole, strict=True)
        ]
        write(directory, "t", 0, 0, b"".join(data))
        asked: list[Filter] = [("offset", ">=", 12), ("offset", "<", 20)]
        found = places(directory, *asked)
        assert found == [(one * low, one * high) for low, high in wanted], order
        each = [(one * i, one * (i + 1)) for low, high in wanted for i in range(low, high)]
        assert places(directory, *asked, splitBytes="1") == each, order


def test_a_list_of_offsets_needs_their_batches_only(directory: Path) -> None:
    parts = [build(batch(first, [b"x"] * 3)) for first in range(0, 30, 3)]
    size = len(parts[0])
    for base in (0, 1000, 2000):
        data = b"".join((base + i * 3).to_bytes(8, "big") + p[8:] for i, p in enumerate(parts))
        write(directory, "t", 0, base, data)
    asked = ("offset", "in", [1, 13, 14, 28, 500, 2009, 1 << 62])
    tasks = plan(parse({"path": str(directory)}), parse_filters([asked]), 2)
    assert [(p.segment.base_offset, p.start, p.stop) for task in tasks for p in task] == [
        (0, 0, size),
        (0, 4 * size, 5 * size),
        (0, 9 * size, 10 * size),
        (2000, 3 * size, 4 * size),
    ]
    assert places(directory, asked, ("offset", "in", [14, 15])) == [(4 * size, 5 * size)]
    assert places(directory, asked, ("offset", "in", [15])) == []


def test_few_bytes_are_of_one_task(directory: Path) -> None:
    batches = [build(batch(first, [b"x" * (1 << 20)])) for first in range(12)]
    for partition in range(4):
        write(directory, "t", partition, 0, b"".join(batches))
    every = plan(parse({"path": str(directory)}), parallelism=4)
    few = plan(parse({"path": str(directory)}), parse_filters([("offset", "=", 7)]), 4)
    assert len(every) == 4
    assert [len(task) for task in few] == [4]
