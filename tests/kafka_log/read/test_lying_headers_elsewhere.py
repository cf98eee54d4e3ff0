"""No row of a log in a store, in tiered storage or in a stream is lost because a batch header says something else than the records."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY
from kafka_log import LogDirectory, discover, read_table
from kafka_log.logs import index_files
from kafka_log.logs.replicas import read_end_offset
from kafka_log.segment import scanner
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.urls import is_url
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import LogStream
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.check_plants import PLAIN, pieces
from tests.support.header_files import VECTORS, batch_of, file_of
from tests.support.lying_headers import Row, assert_halves, cuts, lying_segments, rows_and_lies
from tests.support.misplaced_segments import MISPLACED, cuts_of, misplaced_log
from tests.support.scanned_rows import unpacked
from tests.support.tiers import IDS, TIER

pytest.importorskip("fsspec")

from tests.support.stores import counted, put

NAMES = ("offsets", "timestamps")


def rows_of(path: str | Path, **options: Any) -> list[Row]:
    table = read_table(path, ("offset", "timestamp"), **options)
    return [(r["offset"], r["timestamp"]) for batch in table.to_batches() for r in unpacked(batch)]


def halves_of(
    path: str | Path, column: int, cut: int, **options: Any
) -> tuple[list[Row], list[Row]]:
    ranges: tuple[Any, Any] = (None, cut), (cut, None)
    below, above = (rows_of(path, **{NAMES[column]: half}, **options) for half in ranges)
    return below, above


def check_store(data: st.DataObject) -> None:
    """A store has the rows of a disk, also with indexes that repeat what headers say."""
    with tempfile.TemporaryDirectory() as folder, counted():
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        if data.draw(st.booleans()):
            write_indexes(path, data.draw(st.sampled_from([0, 60, 200])))
        there = put(path.parent.parent, "counted://logs")
        engine = data.draw(st.sampled_from(["construct", "arrow"]))
        rows, _ = rows_and_lies(path)
        for column in (0, 1):
            cut = max(data.draw(cuts(rows, column)), 1 - column)  # names exclude offsets below 0
            found = halves_of(there, column, cut, engine=engine)
            assert found == halves_of(path, column, cut)
            assert_halves([*found], path, column, cut)


def check_large_files_in_a_store(data: st.DataObject) -> None:
    """Of files that take several requests, a check reports the log if an index or the order of batches hides rows."""
    with tempfile.TemporaryDirectory() as folder, counted(), pytest.MonkeyPatch.context() as patch:
        for module in (index_files, scanner):
            patch.setattr(module, "needs_several_requests", lambda path, size: is_url(path))
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        if data.draw(st.booleans()):
            write_indexes(path, data.draw(st.sampled_from([0, 60, 200])))
        there = put(path.parent.parent, "counted://logs")
        rows, _ = rows_and_lies(path)
        for column in (0, 1):
            cut = max(data.draw(cuts(rows, column)), 1 - column)
            found = halves_of(there, column, cut)
            expected = halves_of(path, column, cut)
            if found != expected:
                assert not any(
                    Counter(f) - Counter(e) for f, e in zip(found, expected, strict=True)
                )
                assert_reported(path.parent, deep=True)


def write_indexes(path: Path, interval_bytes: int) -> None:
    out = path.parent.parent / "indexes"
    LogDirectory(path.parent).reindex(out, interval_bytes=interval_bytes)
    for index in out.rglob("*index"):
        shutil.copy(index, path.parent)
    shutil.rmtree(out)


def check_tier(data: st.DataObject) -> None:
    """Of a copy that no other segment overlaps, all rows are read, also outside its name and its last batch."""
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        root = Path(folder) / "tiered"
        copy = root / TIER / f"t-0-{IDS[-1]}" / f"{0:020d}-{IDS[0]}.log"
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
        rows, lies = rows_and_lies(path)
        every = rows_of(root, include="remote")
        assert every == rows
        if lies:
            return
        for column in (0, 1):
            cut = data.draw(cuts(rows, column))
            below, above = halves_of(root, column, cut, include="remote")
            assert below == [row for row in every if row[column] < cut]
            assert above == [row for row in every if row[column] >= cut]


def test_a_copy_that_ends_with_its_lowest_batch_has_rows_above_it(tmp_path: Path) -> None:
    """Also where a batch before that one is the highest. Its last batch ends a copy only for other segments."""
    copy = tmp_path / TIER / f"t-0-{IDS[-1]}" / f"{0:020d}-{IDS[0]}.log"
    copy.parent.mkdir(parents=True)
    for order in ((3, 0), (3, 9, 0), (0, 6, 3)):
        copy.write_bytes(b"".join(map(batch_of, order)))
        every = [offset for base in order for offset in range(base, base + 3)]
        for cut in range(max(every) + 2):
            below, above = halves_of(tmp_path, 0, cut, include="remote")
            assert [offset for offset, _ in below] == [o for o in every if o < cut]
            assert [offset for offset, _ in above] == [o for o in every if o >= cut]


def streamed(root: Path, ranges: list[int], **options: str) -> list[list[int]]:
    """Return the offsets of the rows of the micro-batches that end at the offsets ``ranges``, which begin with the start of the first."""
    given = {"path": str(root), "startingOffsets": "earliest", "engine": "construct", **options}
    stream = LogStream(parse_stream(given), 2)
    scan = Scan(columns=("offset",), engine="construct")
    return [
        [
            offset
            for task in stream.tasks(position(start), position(end))
            for batch in read_splits(task, scan)
            for offset in batch.column(0).to_pylist()
        ]
        for start, end in pairwise(ranges)
    ]


def position(offset: int) -> Any:
    return {"t": {"0": offset}}


def check_stream(data: st.DataObject) -> None:
    """Two micro-batches have all rows, and none twice; some may miss if batches are out of order, which a check reports."""
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        (partition,) = discover(path.parent)
        end = read_end_offset(partition.segments)
        rows, lies = rows_and_lies(path)
        if lies or end > MAX_OFFSET:
            return
        cut = min(data.draw(cuts(rows, 0)), end)
        offsets = [offset for offset, _ in rows]
        split_bytes = data.draw(st.sampled_from(["100", "1000000"]))
        found = streamed(path.parent.parent, [0, cut, end], splitBytes=split_bytes)
        if found != [[o for o in offsets if o < cut], [o for o in offsets if o >= cut]]:
            assert not Counter(o for rows in found for o in rows) - Counter(offsets)
            assert offsets != sorted(offsets)
            assert_reported(path.parent)


def assert_reported(path: Path, *, deep: bool = False, include: Any = ()) -> None:
    severities = LogDirectory(path, include=include).check(deep=deep)["severity"].to_pylist()
    assert {"error", "warning"} & {*severities}


LAWS = {
    "store": check_store,
    "large files in a store": check_large_files_in_a_store,
    "tier": check_tier,
    "stream": check_stream,
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=3)
@given(data=st.data())
def test_two_halves_are_all_rows(law: str, data: st.DataObject) -> None:
    LAWS[law](data)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@examples(150)
@given(data=st.data())
def test_two_halves_are_all_rows_at_length(law: str, data: st.DataObject) -> None:
    LAWS[law](data)


# ---------------------------------------------------------------- what is trusted, and which command reports it


def offsets_of(path: str | Path, **options: Any) -> Counter[int]:
    return Counter(read_table(path, ["offset"], **options)["offset"].to_pylist())


def test_a_batch_of_another_segment_in_the_middle_is_reported(tmp_path: Path) -> None:
    """An offset range leaves out its segment, whose ends lie where the names say. A reader of all segments returns it."""
    log = tmp_path / PLAIN
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, log)
    first, last = (log / f"{base:020d}.log" for base in (0, 126))
    batches = pieces(first)
    first.write_bytes(b"".join([batches[0], pieces(last)[0], *batches[1:]]))
    healthy = offsets_of(SAMPLES / "kafka-4.x" / PLAIN)
    added = Counter(range(126, 132))
    assert offsets_of(log, offsets=(126, None)) == Counter(
        {offset: 1 for offset in healthy if offset >= 126}
    )
    for policy in ("kafka", "strict", "salvage"):
        assert offsets_of(log, policy=policy) == healthy + added
    damage = read_table(log, ["offset", "damage"], "salvage").to_pylist()
    assert Counter(row["offset"] for row in damage if row["damage"]) == added
    errors = [row["code"] for row in LogDirectory(log).check().to_pylist() if row["byte"]]
    assert errors == ["batch_in_wrong_segment"]


@pytest.mark.slow
@pytest.mark.share(5)
@pytest.mark.parametrize("name", MISPLACED)
def test_misplaced_segments_in_a_store_are_reported(name: str, tmp_path: Path) -> None:
    """There, names alone decide which segments may hold offsets. Without a range all rows are read."""
    log = misplaced_log(tmp_path / "logs", name)
    with counted():
        there = put(log.parent, "counted://logs")
        every = offsets_of(log)
        assert offsets_of(there) == every
        for cut in cuts_of(log)[1::4]:
            halves = (
                ((None, cut), [o for o in every.elements() if o < cut]),
                ((cut, None), [o for o in every.elements() if o >= cut]),
            )
            for half, wanted in halves:
                assert not offsets_of(there, offsets=half) - Counter(wanted)
        assert_reported(log)
        assert "error" in LogDirectory(there).check()["severity"].to_pylist()


def test_a_small_file_in_a_store_is_read_like_one_on_a_disk(tmp_path: Path) -> None:
    """Also with batches that do not follow each other, and an index that repeats what they say. It takes four requests at most."""
    order = (0, 4096, 6, 9, 12, 3, 15)
    path = file_of(str(tmp_path), b"".join(map(batch_of, order)))
    write_indexes(path, 0)
    with counted() as store:
        there = put(tmp_path, "counted://logs")
        for cut in range(1, 20):
            store.no_requests()
            found = halves_of(there, 0, cut)
            assert found == halves_of(path, 0, cut)
            assert len(store.read) <= 2 * 4


def test_a_micro_batch_ends_within_a_compressed_message(tmp_path: Path) -> None:
    """Its first offset, which no header states, may be lower than that of the message before it."""
    plain: dict[str, Any] = {
        "magic": 1,
        "timestamp": 0,
        "key": None,
        "attributes": {"compression": "none"},
    }
    inner = [{**plain, "offset": offset, "value": b""} for offset in range(3)]
    wrapper: Any = {**plain, "offset": 5, "attributes": {"compression": "gzip"}, "messages": inner}
    entries: list[Any] = [{**plain, "offset": offset, "value": b""} for offset in range(5)] + [
        wrapper
    ]
    file_of(str(tmp_path), b"".join(LOG_ENTRY.build(entry) for entry in entries))
    assert streamed(tmp_path, [0, 5, 6]) == [[0, 1, 2, 3, 4, 3, 4], [5]]


def test_a_batch_far_from_a_cut_of_a_stream_is_read_once(tmp_path: Path) -> None:
    """It belongs to the micro-batch that has the bytes around it, whatever its offsets are."""
    file_of(str(tmp_path), b"".join(map(batch_of, (0, 3, 6, 9, 2, 12))))
    assert streamed(tmp_path, [0, 5, 15]) == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 12, 13, 14],
    ]
