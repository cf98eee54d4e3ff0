"""Streams without Spark: how much a micro-batch takes, where it begins, and what comes and goes."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import SegmentReader, discover
from kafka_log.read.progress import Position
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.moved_files import locate_splits
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.stream.admission import Limits, Pace, lag_metrics, share_offsets
from pyspark_kafka_log.stream.offsets import add_initial, from_json, initial_offsets, to_json
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.support.spark_logs import TIME, batch, build, numbered, write
from tests.support.stream_laws import rows, stream

PARTITIONS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 1 << 40), st.integers(-5, 1 << 40)),
)


@given(PARTITIONS, st.integers(1, 1 << 41))
def test_shares(partitions: dict[tuple[str, int], tuple[int, int]], most: int) -> None:
    start = {key: first for key, (first, _) in partitions.items()}
    end = {key: max(0, first + size) for key, (first, size) in partitions.items()}
    found = share_offsets(most, start, end)
    left = {key: end[key] - start[key] for key in end if end[key] > start[key]}
    for key, offset in found.items():
        assert offset == end[key] if key not in left else start[key] < offset <= end[key]
    taken = sum(found[key] - start[key] for key in left)
    # A float's share of a sum of large numbers is not exact.
    assert taken <= max(most, len(left)) + len(left) + most // (1 << 40)
    assert taken == sum(left.values()) or taken >= min(most, sum(left.values())) - 2 * len(left)


@pytest.mark.parametrize(
    ("most", "left", "taken"),
    [
        (6, [1, 0, 5], [1, 0, 5]),
        (3, [10, 10, 10], [1, 1, 1]),
        (10, [10, 30], [2, 7]),  # 2.5 and 7.5
        (5, [1, 99], [1, 4]),  # none starves: 0.05, and 4.95
        (3, [10, 10], [1, 1]),  # 1.5
        (1, [10, 10], [1, 1]),
        (4, [-3, 8], [0, 4]),
        (100, [10, 20], [10, 20]),
    ],
)
def test_shares_are_those_of_the_kafka_source(most: int, left: list[int], taken: list[int]) -> None:
    """A share of less than one offset is one, and any other is rounded down; what lies behind its start is no size."""
    start = {("t", i): 100 for i in range(len(left))}
    end = {("t", i): 100 + size for i, size in enumerate(left)}
    expected = {
        key: 100 + n if n or end[key] >= 100 else end[key]
        for key, n in zip(start, taken, strict=True)
    }
    assert share_offsets(most, start, end) == expected


def test_offsets_of_new_partitions_count_and_those_that_are_gone_do_not() -> None:
    pace = Pace(Limits(least=10, delay_ms=100))
    assert not pace.should_wait(0, {}, {})
    known, new = ("t", 0), ("t", 1)
    assert pace.should_wait(1, {known: 50}, {known: 50, new: 9})
    assert pace.should_wait(2, {known: 50}, {known: 30, new: 9})
    assert not pace.should_wait(3, {known: 50}, {known: 30, new: 10})
    assert Pace(Limits()).should_wait(4, {known: 0}, {known: 0}) is False


def test_a_least_number_is_waited_for() -> None:
    key = ("t", 0)
    pace = Pace(Limits(least=10, delay_ms=100))
    assert not pace.should_wait(0, {key: 0}, {key: 1})
    assert pace.should_wait(50, {key: 1}, {key: 5})
    assert not pace.should_wait(60, {key: 1}, {key: 11})
    assert pace.should_wait(159, {key: 11}, {key: 12})
    assert not pace.should_wait(160, {key: 11}, {key: 12})


def test_lag() -> None:
    latest = {("t", 0): 10, ("t", 1): 20, ("new", 0): 5}
    assert lag_metrics({("t", 0): 10, ("t", 1): 5}, latest) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "15",
        "avgOffsetsBehindLatest": "7.5",
    }
    assert lag_metrics({}, latest) == {}


def test_offsets_are_those_of_the_kafka_source() -> None:
    positions = {("t", 1): Position(5), ("t", 0): Position(23, 4)}
    told = to_json(positions)
    assert told == {"t": {"0": 23, "1": 5}, "@leaderEpochs t 0:4": {}}
    assert from_json(told) == positions
    assert from_json({"t": {"0": 23}}) == {("t", 0): Position(23)}
    several: list[Any] = [[], {"t": 1}, {"t": {"x": 1}}, {"t": {"0": "1"}}, {"t": {"0": True}}]
    epochs = ("", " t", " t 0:", " t 0:x", " t 0:1 ", " t u 0:1", "t 0:1", " t 0:99999999999")
    several += [{f"@leaderEpochs{wrong}": {}} for wrong in epochs]
    for wrong in several:
        with pytest.raises(ValueError, match="not the offsets of a stream"):
            from_json(wrong)


def test_offsets_of_any_size_are_read_again() -> None:
    """No checksum covers a leader epoch, so that a flipped bit makes any number of it."""
    last = (1 << 31) - 1
    positions = {("t", n): Position((1 << 63) - 1, epoch) for n, epoch in ((0, 0), (last, last))}
    told = to_json(positions)
    assert from_json(told) == positions
    assert initial_offsets(add_initial(told, told)) == {"t": told["t"]}
    impossible = to_json({("t", 0): Position(5, -last)})
    assert from_json(impossible) == {("t", 0): Position(5)}


@pytest.mark.parametrize("bit", [30, 31])
def test_a_flipped_bit_of_a_leader_epoch_ends_no_stream(bit: int, directory: Path) -> None:
    whole = bytearray(numbered(2, 2))
    at = len(whole) // 2 + 12 + (31 - bit) // 8
    whole[at] ^= 1 << bit % 8
    write(directory, "t", 0, 0, bytes(whole))
    now = stream(directory)
    start = json.loads(json.dumps(now.latest(now.initial(), limited=False)))
    assert start["t"] == {"0": 4}
    write(directory, "t", 0, 0, bytes(whole) + build(batch(4, [b"4"])))
    end = json.loads(json.dumps(now.latest(start, limited=False)))
    assert [offset for _, offset, _ in rows(now, start, end)] == [4]


def test_the_end_of_a_first_micro_batch_says_where_the_query_began() -> None:
    start = to_json({("t", 1): Position(5), ("t", 0): Position(23, 4), ("u", 0): Position(0)})
    end = to_json({("t", 1): Position(7, 4), ("t", 0): Position(25, 4), ("u", 0): Position(9)})
    both = add_initial(end, start)
    assert initial_offsets(both) == {"t": {"0": 23, "1": 5}, "u": {"0": 0}}
    assert from_json(both) == from_json(end)
    assert initial_offsets(add_initial(end, {})) == {}
    assert initial_offsets(end) is None
    for wrong in ("@initialOffsets t", "@initialOffsets t 0:-1", "@initialOffsets  0:1"):
        with pytest.raises(ValueError, match="not the offsets of a stream"):
            initial_offsets({"@initialOffsets": {}, wrong: {}})
    given = {"path": "/", "startingOffsets": json.dumps(both)}
    assert parse_stream(given).starting == {("t", 1): 7, ("t", 0): 25, ("u", 0): 9}


def test_a_first_micro_batch_begins_where_its_end_says(directory: Path) -> None:
    first = write(directory, "t", 0, 0, numbered(3, 2))
    write(directory, "t", 0, 6, build(batch(6, [b"6", b"7"])))
    now = stream(directory)
    start = now.initial()
    end = add_initial(now.latest(start, limited=True), start)
    first.unlink()
    write(directory, "t", 1, 0, numbered(1, 1))
    again = stream(directory)
    with pytest.raises(DataLossError, match="partition t-0: the log begins at offset 6"):
        again.tasks(again.initial(), end)
    warned = stream(directory, failOnDataLoss="false")
    with pytest.warns(UserWarning, match="offsets 0 to 5 are gone"):
        tasks = warned.tasks(warned.initial(), end)
    assert len(tasks) == 1


def test_a_micro_batch_reads_only_where_its_offsets_lie(directory: Path) -> None:
    """Whole batches from the first offset to the last, in those segments alone; nothing of a partition without new ones."""
    size = len(numbered(3, 1))
    for base in (0, 9, 18):
        data = b"".join(build(batch(base + i, [b"0", b"1", b"2"])) for i in (0, 3, 6))
        write(directory, "t", 0, base, data)
        size = len(data) // 3
    write(directory, "t", 1, 0, numbered(3, 2))
    now = stream(directory)
    for first, end, parts in [
        (0, 27, [(0, 0, 3), (9, 0, 3), (18, 0, 3)]),
        (6, 9, [(0, 2, 3)]),
        (6, 21, [(0, 2, 3), (9, 0, 3), (18, 0, 1)]),
        (9, 12, [(9, 0, 1)]),
        (13, 14, [(9, 1, 2)]),
        (13, 13, []),
    ]:
        tasks = now.tasks(*({"t": {"0": offset, "1": 6}} for offset in (first, end)))
        found = [(p.segment.base_offset, p.start, p.stop) for task in tasks for p in task]
        assert found == [(base, low * size, high * size) for base, low, high in parts]
        assert {p.segment.partition for task in tasks for p in task} <= {0}


@pytest.mark.parametrize("base", [0, 1, 5])
def test_a_new_partition_is_read_from_its_first_record_or_is_data_loss(
    base: int, directory: Path
) -> None:
    write(directory, "t", 0, 0, numbered(1, 1))
    now = stream(directory)
    start = now.initial()
    write(directory, "t", 1, base, build(batch(base, [b"new"])))
    if base:
        said = f"partition t-1 is new and its first offset is {base}: those before it are gone"
        with pytest.raises(DataLossError, match=said):
            now.latest(start, limited=False)
        return
    assert rows(now, start, now.latest(start, limited=False)) == [
        ("t-0", 0, "0"),
        ("t-1", 0, "new"),
    ]


@pytest.mark.parametrize("count", [1, 10, 11, 13])
def test_losses_are_named_as_far_as_they_fit(count: int) -> None:
    listed = "; ".join(f"loss {i}" for i in range(min(count, 10)))
    more = f"; and {count - 10} more" if count > 10 else ""
    expected = f"kafka-log: data is lost: {listed}{more}. With failOnDataLoss set to false "
    assert str(DataLossError(f"loss {i}" for i in range(count))).startswith(expected)


def test_a_target_is_told_to_the_next_worker(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    target = stream(directory).prepare()
    with path.open("ab") as file:
        file.write(build(batch(4, [b"4"])))
    other = stream(directory)
    other.end_at(target)
    assert other.latest(other.initial(), limited=True)["t"] == {"0": 4}


def test_a_partition_that_comes_again_goes_on(directory: Path, tmp_path: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    write(directory, "u", 0, 0, numbered(2, 2))
    now = stream(directory, failOnDataLoss="false")
    read = now.latest(now.initial(), limited=True)
    away = tmp_path / "away"
    shutil.move(path.parent, away)
    with pytest.raises(DataLossError, match="partition t-0, which was read up to offset 4"):
        stream(directory).latest(read, limited=True)
    with pytest.warns(UserWarning, match="partition t-0"):
        assert now.latest(read, limited=True) == read
    shutil.move(away, path.parent)
    with path.open("ab") as file:
        file.write(build(batch(4, [b"4"])))
    end = now.latest(read, limited=True)
    assert [row[1] for row in rows(now, read, end)] == [4]


def test_a_directory_that_vanishes(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    now = stream(directory)
    read = now.latest(now.initial(), limited=True)
    shutil.rmtree(directory)
    with pytest.raises(DataLossError, match="partition t-0"):
        now.latest(read, limited=True)
    with pytest.raises(DataLossError, match="offsets 0 to 3"):
        stream(directory).tasks({}, read)


def test_where_queries_begin(directory: Path) -> None:
    late = {"base_timestamp": TIME + 10, "max_timestamp": TIME + 10}
    batches: list[tuple[int, int, list[bytes | None], dict[str, int]]] = [
        (0, 0, [b"0", b"1", b"2"], {"max_timestamp": TIME + 2}),
        (1, 5, [b"5"], late),
    ]
    for partition, offset, values, times in batches:
        write(directory, "t", partition, offset, build(batch(offset, values, **times)))
    wanted = {
        "earliest": {"0": 0, "1": 5},
        "latest": {"0": 3, "1": 6},
        '{"t":{"0":2,"1":-1},"@leaderEpochs t 0:0":{}}': {"0": 2, "1": 6},
        '{"t":{"0":-2,"1":-2}}': {"0": 0, "1": 5},
    }
    for starting, offsets in wanted.items():
        assert stream(directory, startingOffsets=starting).initial()["t"] == offsets
    by_time = {"startingTimestamp": TIME + 1, "startingOffsetsByTimestampStrategy": "latest"}
    assert stream(directory, **by_time).initial()["t"] == {"0": 1, "1": 5}
    by_partition = f'{{"t":{{"0":{TIME + 3},"1":{TIME}}}}}'
    with pytest.raises(OptionError, match="partition t-0 has no record"):
        stream(directory, startingOffsetsByTimestamp=by_partition).initial()
    with pytest.raises(OptionError, match="startingOffsetsByTimestamp"):
        stream(directory, startingOffsetsByTimestamp='{"t":{"0":1}}').initial()


@pytest.mark.slow
@pytest.mark.share(8, ci=3)
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("partition", ["v0-1", "v1-3", "v1-compacted-1", "mixed-1"])
def test_micro_batches_that_part_batches(partition: str, mode: str) -> None:
    """Compressed messages of the older formats do not say where they begin; compaction leaves gaps before them."""
    directory = SAMPLES / "kafka-2.8" / partition
    (found,) = discover(directory)
    offsets = [
        record.offset
        for segment in found.segments
        for one in SegmentReader(segment.path)
        for record in one.records
    ]
    now = stream(directory, mode=mode)
    start = now.initial()
    end = now.latest(start, limited=True)
    scan = Scan(("offset",), on_damage=now._reading.selection.damage)

    def read(first: Any, last: Any) -> list[int]:
        tasks = now.tasks(first, last)
        return [
            offset
            for task in tasks
            for batch in read_splits(task, scan)
            for offset in batch["offset"].to_pylist()
        ]

    for parted in range(end[found.topic][str(found.partition)] + 1):
        between = {found.topic: {str(found.partition): parted}}
        assert read(start, between) == [offset for offset in offsets if offset < parted]
        assert read(between, end) == [offset for offset in offsets if offset >= parted]


def test_the_end_is_fixed_for_available_now(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    now = stream(directory, maxOffsetsPerTrigger=3, minOffsetsPerTrigger=2)
    start = now.initial()
    now.prepare()
    with path.open("ab") as file:
        file.write(build(batch(4, [b"4"])))
    write(directory, "t", 1, 0, numbered(2, 2))
    first = now.latest(start, limited=True)
    assert first["t"] == {"0": 3}
    last = now.latest(first, limited=True)
    assert last["t"] == {"0": 4}
    assert now.latest(last, limited=True) == last


def test_files_that_a_broker_deletes_are_read_for_a_minute_yet(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    write(directory, "t", 0, 4, numbered(0, 0))
    now = stream(directory)
    start = now.initial()
    (task,) = now.tasks(start, now.latest(start, limited=True))
    path.rename(f"{path}.deleted")
    scan = Scan(("offset",), engine="construct")
    found = [
        b["offset"].to_pylist()
        for b in read_splits(locate_splits(task, now._reading, fails=True), scan)
    ]
    assert found == [[0, 1, 2, 3]]
    Path(f"{path}.deleted").unlink()
    with pytest.warns(UserWarning, match="is gone"):
        assert locate_splits(task, now._reading, fails=False) == ()
    assert locate_splits(task, now._reading, fails=True) == task


def test_zeros_that_are_being_written_over_are_no_damage(directory: Path) -> None:
    """As a broker with preallocation does it: batch after batch over the zeros of a file, while polls look on."""
    path = write(directory, "t", 0, 0, b"\0" * (1 << 20))
    data = [build(batch(i, [b"%d" % i], pad=5000)) for i in range(150)]

    def fill() -> None:
        with path.open("r+b", buffering=0) as file:
            for one in data:
                file.write(one)

    writer = threading.Thread(target=fill)
    writer.start()
    got: list[int] = []
    now = stream(directory)
    start = now.initial()
    while len(got) < len(data):
        end = now.latest(start, limited=True)
        got += [row[1] for row in rows(now, start, end)]
        start = end
    writer.join()
    assert got == list(range(150))


def test_options_that_streams_refuse(directory: Path) -> None:
    for options, message in (
        ({"replicas": "keep"}, "a stream reads one replica"),
        ({"endingTimestamp": "1"}, "a stream does not end"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "larger than maxOffsets"),
        ({"startingOffsetsByTimestampStrategy": "soon"}, "one of error, latest"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_stream({"path": str(directory), **options})


@pytest.mark.parametrize(
    "fewer", [{"subscribe": "t"}, {"subscribePattern": "^t"}, {"assign": '{"t": [0]}'}]
)
def test_a_partition_that_no_option_names_any_more(directory: Path, fewer: dict[str, str]) -> None:
    """It is there: what helps is not to look away from what is lost."""
    for topic in ("t", "u"):
        write(directory, topic, 0, 0, numbered(2, 2))
    first = stream(directory)
    read = first.latest(first.initial(), limited=False)
    again = stream(directory, **fewer)
    with pytest.raises(
        DataLossError, match=r"partition u-0, .*, is no longer selected by any option"
    ):
        again.latest(read, limited=False)
    shutil.rmtree(directory / "u-0")
    with pytest.raises(DataLossError, match=r"partition u-0, .*, is no longer in any path"):
        stream(directory).latest(read, limited=False)
