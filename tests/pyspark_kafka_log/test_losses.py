"""Rows that are not there for damage are told: a warning where the task's logs go, and metrics of the scan."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_log import Segment
from kafka_log.read.plan import Split
from kafka_log.segment.model import Lost
from kafka_log.segment.ranges import Range
from kafka_log.segment.row_selection import RowSelection
from pyspark_kafka_log.losses import NAMED, Losses
from pyspark_kafka_log.options import default_columns, parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.task_reader import within_split
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.spark_damage import DAMAGES, ENGINES, checksum, damaged, segment, too_late
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, write
from tests.support.spark_metrics import metrics


def three(directory: Path) -> tuple[int, int]:
    """A log of three batches, the second with a wrong checksum. Where that lies."""
    ends = [len(numbered(4, n)) for n in (1, 2)]
    write(directory, "t", 0, 0, flipped(numbered(4, 3), ends[1] - 3))
    return ends[0], ends[1]


def said(directory: Path, mode: str, view: str | None = None) -> list[str]:
    options = parse({"path": str(directory), "mode": mode})
    reader = KafkaLogReader(options, default_columns(options))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for task in reader.partitions():
            list(reader.read(task))
    return [str(one.message) for one in found]


def test_a_batch_that_is_left_out(directory: Path) -> None:
    start, end = three(directory)
    (told,) = said(directory, "DROPMALFORMED")
    assert told.startswith(
        f"kafka-log: {end - start} bytes in 1 place could not be read, or were left out, with at most 4 records: "
    )
    assert f": bytes {start} to {end}: a batch that is left out: stored checksum" in told


def test_bytes_that_are_no_batch(directory: Path) -> None:
    good = numbered(4, 2)
    middle = len(good) // 2
    write(directory, "t", 0, 0, good[:middle] + b"\xff" * 100 + good[middle:])
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        (told,) = said(directory, mode)
        assert told.startswith(
            "kafka-log: 100 bytes in 1 place could not be read, or were left out, with at most 0 records: "
        )
        assert f": bytes {middle} to {middle + 100}: " in told


def test_what_is_good_says_nothing(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(4, 2))
    for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
        assert said(directory, mode) == []


def test_many_places_are_counted() -> None:
    losses = Losses()
    for i in range(NAMED + 5):
        losses.add(Path("x.log"), Lost(i, i + 1, f"why {i}"))
    with pytest.warns(UserWarning, match=rf"^kafka-log: {NAMED + 5} bytes in .*; and 5 more$"):
        losses.warn()


def test_each_place_is_counted_once() -> None:
    """Places that lie together have the same offsets around them; a record in a batch that is there has a place without bytes."""
    losses = Losses()
    whole = Lost(10, 20, "why", after_offset=4, before_offset=9)
    for lost, counted in [
        (whole, (10, 1, 4, 0)),
        (whole, (10, 1, 4, 0)),
        (replace(whole, start=20, end=25), (15, 2, 4, 0)),
        (replace(whole, start=10, end=10), (15, 3, 4, 0)),
        (replace(whole, start=10, end=10, after_offset=5), (15, 4, 4, 0)),
        (Lost(30, 40, "why", after_offset=11, before_offset=12), (25, 5, 4, 0)),
        (Lost(40, 50, "why", after_offset=8, before_offset=14), (35, 6, 9, 0)),
        (Lost(50, 60, "why", after_offset=20, before_offset=20), (45, 7, 9, 1)),
        (Lost(60, 70, "why", after_offset=21), (55, 8, 9, 2)),
        (Lost(70, 80, "why", before_offset=30), (65, 9, 9, 3)),
        (Lost(80, 90, "why", after_offset=40, before_offset=50, read=2), (75, 10, 16, 3)),
    ]:
        losses.add(Path("x.log"), lost)
        found = losses.byte_count, losses.places, losses.record_count, losses.uncounted
        assert found == counted, lost
    losses.add(Path("y.log"), whole)
    losses.add_read(100, 7)
    losses.add_read(20, 1)
    assert losses.metrics == {
        "lostBytes": 85,
        "lostRanges": 11,
        "lostRows": 20,
        "uncountedRanges": 3,
        "readBytes": 120,
        "skippedBatches": 8,
    }
    assert len(losses.first) == NAMED
    with pytest.warns(
        UserWarning, match="with at most 20 records in 8 of them, and an unknown number"
    ):
        losses.warn()


# ---------------------------------------------------------------- how many records


WAYS: tuple[dict[str, str], ...] = (
    {"mode": "PERMISSIVE"},
    {"mode": "DROPMALFORMED"},
    {"mode": "PERMISSIVE", "policy": "kafka"},
    {"mode": "DROPMALFORMED", "policy": "kafka"},
    {"ignoreCorruptFiles": "true"},
)


def lost(directory: Path, **options: str) -> tuple[list[int], Losses]:
    """The offsets that come, and what is said to be lost."""
    reader = KafkaLogReader(parse({"path": str(directory), **options}), ("offset", "timestamp"))
    losses = Losses()
    rows = [
        offset
        for task in reader.partitions()
        for part in reader.read_rows(task, losses)
        for offset in part["offset"].to_pylist()
    ]
    return rows, losses


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [0, 1, 3])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_as_many_records_as_are_not_there(
    directory: Path, damage: Callable[[bytes, int], bytes], bad: int, engine: str
) -> None:
    """In a log without gaps, between segments whose names tell offsets."""
    damaged(directory, damage, bad)
    counted = 0
    for way in WAYS:
        rows, losses = lost(directory, subscribe="t", engine=engine, **way)
        missing = 60 - len(rows)
        if losses.uncounted:
            assert losses.record_count <= missing, way
        else:
            assert losses.record_count == missing, way
            counted += 1
    assert counted >= 3


def test_of_a_record_whose_time_does_not_fit(directory: Path) -> None:
    damaged(directory, too_late, 1)
    rows, losses = lost(directory, subscribe="t", mode="DROPMALFORMED")
    assert (len(rows), losses.places, losses.record_count, losses.byte_count) == (55, 5, 5, 0)
    assert "a record that is left out: " in losses.first[0]
    rows, losses = lost(directory, subscribe="t", mode="PERMISSIVE")
    assert (len(rows), losses.places) == (60, 0)


def test_compaction_makes_it_at_most(directory: Path) -> None:
    """Offsets 0, 10, 20 and 30 are there, in a batch each."""
    batches = [build(batch(offset, [b"v"], pad=40)) for offset in (0, 10, 20, 30)]
    write(directory, "t", 0, 0, b"".join([batches[0], flipped(batches[1], 90), *batches[2:]]))
    rows, losses = lost(directory, mode="DROPMALFORMED")
    assert rows == [0, 20, 30]
    assert (losses.record_count, losses.uncounted) == (19, 0)


def test_at_the_end_of_a_log_nobody_knows(directory: Path) -> None:
    data = numbered(4, 3)
    write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    for way in WAYS:
        rows, losses = lost(directory, **way)
        assert losses.record_count == 0
        if len(rows) < 12:
            assert losses.uncounted == losses.places == 1
            with pytest.warns(UserWarning, match="left out, with an unknown number of records: "):
                losses.warn()
    # One place that is known, and one that is not.
    at = len(numbered(4, 1))
    write(directory, "t", 0, 0, flipped(flipped(data, len(data) - 3), at - 3))
    rows, losses = lost(directory, mode="DROPMALFORMED")
    assert (rows, losses.record_count, losses.uncounted) == ([4, 5, 6, 7], 4, 1)
    told = "with at most 4 records in 1 of them, and an unknown number in the others: "
    with pytest.warns(UserWarning, match=told):
        losses.warn()


def test_only_of_what_is_asked_for(directory: Path) -> None:
    damaged(directory, checksum, 1)  # offsets 25 to 29
    for starting, ending, count in ((0, 27, 2), (27, 60, 3), (26, 28, 2), (30, 60, 0), (38, 60, 0)):
        rows, losses = lost(
            directory,
            subscribe="t",
            mode="DROPMALFORMED",
            startingOffsets=f'{{"t":{{"0":{starting}}}}}',
            endingOffsets=f'{{"t":{{"0":{ending}}}}}',
        )
        assert rows == [n for n in range(starting, ending) if not 25 <= n < 30]
        assert (losses.record_count, losses.uncounted) == (count, 0)


@pytest.mark.parametrize(
    ("around", "selected", "counted"),
    [
        ((24, 30), (None, None), (5, 0)),
        ((24, 30), (27, 29), (2, 0)),
        ((24, 30), (25, 30), (5, 0)),
        ((24, 30), (None, 25), (0, 0)),
        ((24, 30), (None, 20), (0, 0)),
        ((24, 30), (30, None), (0, 0)),
        ((24, 30), (40, 50), (0, 0)),
        ((24, 30), (40, None), (0, 0)),
        ((50, 30), (None, 100), (0, 1)),
        ((50, 30), (10, None), (0, 1)),
        ((30, 30), (None, 100), (0, 1)),
        ((24, None), (None, 30), (0, 1)),
        ((None, 30), (20, None), (0, 1)),
    ],
)
def test_offsets_around_a_place_and_those_that_are_selected(
    around: tuple[int | None, int | None], selected: Range, counted: tuple[int, int]
) -> None:
    """Offsets that contradict each other bound nothing, whatever is selected."""
    of_split = Split(Segment(Path("x.log"), "t", 0, 0, 1000), rows=RowSelection(selected))
    for lost in (Lost(100, 200, "why", *around), Lost(100, 200, "why", 0, 99, around=around)):
        losses = Losses()
        losses.add(Path("x.log"), within_split(lost, of_split))
        assert (losses.record_count, losses.uncounted) == counted


@pytest.mark.parametrize(("selected", "count"), [((None, None), 3), ((27, 29), 2), ((0, 30), 3)])
def test_records_that_were_read_in_a_place_may_be_others_than_those_that_are_selected(
    selected: Range, count: int
) -> None:
    of_split = Split(Segment(Path("x.log"), "t", 0, 0, 1000), rows=RowSelection(selected))
    losses = Losses()
    lost = within_split(Lost(100, 200, "why", 24, 30, read=2), of_split)
    losses.add(Path("x.log"), lost)
    assert losses.record_count == count


@pytest.mark.parametrize(
    ("first", "start", "end", "around", "counted"),
    [
        (0, 100, 200, (25, 30), (4, 0)),
        (0, 100, 200, (19, 60), (40, 0)),
        (0, 100, 200, (18, 30), (0, 1)),
        (0, 100, 200, (25, 61), (0, 1)),
        (0, 0, 200, (None, 30), (10, 0)),
        (0, 100, 200, (None, 30), (0, 1)),
        (100, 100, 200, (None, 30), (0, 1)),
        (0, 100, 1000, (25, None), (34, 0)),
        (0, 100, 999, (25, None), (0, 1)),
    ],
)
def test_names_of_segments_bound_offsets_too(
    first: int,
    start: int,
    end: int,
    around: tuple[int | None, int | None],
    counted: tuple[int, int],
) -> None:
    """No checksum covers the offset of a batch: one outside of its segment is not right."""
    named = Segment(Path(f"{20:020}.log"), "t", 0, 20, 1000)
    losses = Losses()
    lost = within_split(Lost(start, end, "why", *around), Split(named, first, next_offset=60))
    losses.add(named.path, lost)
    assert (losses.record_count, losses.uncounted) == counted


def garbled(data: bytes, draw: random.Random) -> bytes:
    """The bytes with damage in some places. None are cut out: where that makes whole batches of the halves of two, nothing tells it."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, size = draw.randrange(len(out)), draw.choice([1, 1, 4, 50, 400])
        size = min(size, len(out) - at)
        out[at : at + size] = draw.randbytes(size + draw.choice([0, 0, 30]))
    return bytes(out)


def has_its_offsets(made: bytes, data: bytes) -> bool:
    """Whether the entries that are whole have the offsets that they had. No checksum covers these."""
    begins: dict[bytes, set[bytes]] = {}
    at = 0
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        begins.setdefault(data[at + 8 : end], set()).add(data[at : at + 8])
        at = end
    for rest, offsets in begins.items():
        at = made.find(rest)
        while at >= 0:
            if made[max(0, at - 8) : at] not in offsets:
                return False
            at = made.find(rest, at + 1)
    return True


def never_fewer_than_are_not_there(path: Path, draw: random.Random, times: int) -> int:
    """Garble a segment of a log again and again. How often it is said how many records that made missing."""
    data = path.read_bytes()
    told = 0
    for _ in range(times):
        # Of PERMISSIVE nobody can say it: of a batch with a wrong checksum rows stay, as many as its header says by now.
        way = {"engine": draw.choice(ENGINES)}
        way |= draw.choice([{"mode": "DROPMALFORMED"}, {"ignoreCorruptFiles": "true"}])
        way["splitBytes"] = draw.choice(["100000", "300"])
        path.write_bytes(data)
        whole = len(lost(path.parent, **way)[0])
        made = garbled(data, draw)
        while not has_its_offsets(made, data):
            made = garbled(data, draw)
        path.write_bytes(made)
        rows, losses = lost(path.parent, **way)
        missing = whole - len(rows)
        if "mode" not in way and not losses.places:
            # What is left by a broker that was killed is no damage: nothing fails the query either.
            assert rows == lost(path.parent, engine=way["engine"])[0]
            continue
        assert losses.uncounted or losses.record_count >= missing, (way, made, losses)
        told += not losses.uncounted
    path.write_bytes(data)
    return told


@pytest.mark.parametrize("times", [12, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize("seed", draw_seeds(1, first=5))
def test_never_fewer_than_are_not_there(directory: Path, times: int, seed: int) -> None:
    for n in range(3):
        path = write(directory, "t", 0, n * 20, segment(n * 20))
    middle = path.with_name(f"{20:020}.log")
    assert never_fewer_than_are_not_there(middle, random.Random(seed), times) > times / 2


@pytest.mark.slow
@pytest.mark.parametrize("broker", [pytest.param("kafka-2.8", marks=pytest.mark.soak), "kafka-4.x"])
def test_never_fewer_of_what_brokers_wrote(tmp_path: Path, broker: str) -> None:
    """Old formats, compaction, transactions and every codec."""
    draw = random.Random(broker)
    told = 0
    shutil.copytree(SAMPLES / broker, tmp_path / broker)
    for path in sorted((tmp_path / broker).glob("*-*/*.log")):
        if path.stat().st_size and not path.parent.name.startswith("__"):
            told += never_fewer_than_are_not_there(path, draw, 8)
    assert told


@pytest.mark.spark
def test_metrics_of_the_scan(session: SparkSession, directory: Path) -> None:
    start, end = three(directory)
    source = session.read.format("kafka-log").option("mode", "DROPMALFORMED")
    size = len(numbered(4, 3))
    for frame in (source.load(str(directory)), source.load(str(directory)).select("value")):
        lost = {"lostBytes": end - start, "lostRanges": 1, "lostRows": 4, "uncountedRanges": 0}
        assert metrics(frame) == {**lost, "readBytes": size, "skippedBatches": 0}
    good = session.read.format("kafka-log").option("mode", "PERMISSIVE").load(str(directory))
    assert metrics(good)["lostRanges"] in (0, 1)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_what_counting_reads(
    session: SparkSession, directory: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    session.conf.set("spark.sql.adaptive.enabled", "false")  # whose plans show no scans
    request.addfinalizer(lambda: session.conf.unset("spark.sql.adaptive.enabled"))
    write(directory, "t", 0, 0, numbered(4, 40, pad=4096))
    source = session.read.format("kafka-log").option("engine", engine).load(str(directory))
    size = len(numbered(4, 40, pad=4096))
    counted = metrics(source.groupBy().count())
    assert counted == {**Losses().metrics, "readBytes": size}
    # Times that producers set are not in headers: batches are read for them once more.
    assert size <= metrics(source.groupBy().agg({"timestamp": "max"}))["readBytes"] <= 2 * size


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_batches_that_no_row_can_come_from(
    session: SparkSession, directory: Path, engine: str
) -> None:
    """A run of batches that is long enough to be worth it to either engine."""
    write(directory, "t", 0, 0, numbered(4, 40, pad=4096))
    source = session.read.format("kafka-log").option("engine", engine).load(str(directory))
    none = metrics(source.where(f"timestamp > timestamp_millis({TIME + 100})"))
    assert none["skippedBatches"] == 40
    first = metrics(source.where(f"timestamp <= timestamp_millis({TIME + 1})"))
    assert first["skippedBatches"] == 0


@pytest.mark.spark
def test_the_ui_has_the_metrics(session: SparkSession, directory: Path) -> None:
    """Spark makes them by their names in a thread of its own, with the application's class loader."""
    write(directory, "t", 0, 0, numbered(4, 3))
    mark = f"ui {directory}"
    session.sparkContext.setJobDescription(mark)
    session.read.format("kafka-log").load(str(directory)).select("value").collect()
    session.sparkContext.setJobDescription(None)
    context: Any = session.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    spark: Any = session._jsparkSession
    store = spark.sharedState().statusStore()
    executions = store.executionsList()
    told: dict[str, str] = {}
    for i in range(executions.size()):
        execution = executions.apply(i)
        if execution.description() != mark:
            continue
        names = {
            one.accumulatorId(): one.name()
            for one in (execution.metrics().apply(k) for k in range(execution.metrics().size()))
        }
        values = store.executionMetrics(execution.executionId()).iterator()
        while values.hasNext():
            value = values.next()
            told[names[value._1()]] = value._2()
    assert told["bytes of segments that were read"] == str(len(numbered(4, 3)))
    assert told["places that could not be read whole, or were left out"] == "0"
