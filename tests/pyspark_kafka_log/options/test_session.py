"""Settings of a session that hold where options do not: its time zone, and what becomes of files that are corrupt or gone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka_log.options import OptionError, Session, parse
from pyspark_kafka_log.options.session import parse_time_zone
from pyspark_kafka_log.source import DefaultSource
from pyspark_kafka_log.stream.options import parse_stream
from tests.support.spark_logs import flipped, numbered, write

SECOND = 10**9


def after(text: str, session: Session = Session("UTC"), **options: str) -> int:  # noqa: B008
    found = parse({"modifiedAfter": text, **options}, session=session).files.after
    assert found is not None
    return found


@contextmanager
def machine_in(zone: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as inner:
        inner.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:01", 10**6),
        ("1970-01-01 00:00:01", 10**6),
        ("1970-01-01", 0),
        ("1970-01-01T01:00:01+01:00", 10**6),
        ("1970-01-01T00:00:01Z", 10**6),
        ("1970-01-01T01:00:01 Europe/Berlin", 10**6),
        ("1970-01-01T01:00:01Europe/Berlin", 10**6),
        ("1970-01-01T01:00:01 UTC+01:00", 10**6),
        ("1970-01-01T09:00:01 GMT+9", 10**6),
        ("1969-12-31T23:59:59.500", -500_000),
        ("9999-12-31T23:59:59.999999", 253402300799999999),
    ],
)
def test_times_as_they_are_written(text: str, microseconds: int) -> None:
    assert after(text) == microseconds * 1000


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2026", "2026-13-01", "1700000000000", "2026-11-22T10:15:00Z UTC", "10:15"],
)
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(OptionError, match="option modifiedAfter: a time such as"):
        after(text)


@pytest.mark.skipif(os.name == "nt", reason="the zone of the machine is no variable there")
def test_a_time_that_is_too_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        machine_in("Asia/Tokyo", monkeypatch),
        pytest.raises(OptionError, match=r"option modifiedAfter: .* a time zone after it"),
    ):
        after("0001-01-01T00:00:00", Session())
    assert after("0001-01-01T00:00:00", timeZone="+18:00") < after("0001-01-01T00:00:00")


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("Europe/Berlin", 1.0),
        ("Asia/Kolkata", 5.5),
        ("America/New_York", -5.0),
        ("UTC", 0.0),
        ("Z", 0.0),
        ("+05:30", 5.5),
        ("-1:00", -1.0),
        ("+2", 2.0),
        ("+0530", 5.5),
        ("GMT-03:00", -3.0),
        ("UTC+18:00", 18.0),
    ],
)
def test_zones(zone: str, hours: float) -> None:
    at = datetime(2026, 1, 15, 12)
    assert parse_time_zone("timeZone", zone).utcoffset(at) == timedelta(hours=hours)
    in_utc = datetime(2026, 1, 15, 12, tzinfo=UTC) - timedelta(hours=hours)
    expected = int(in_utc.timestamp()) * SECOND
    assert after("2026-01-15T12:00:00", Session(zone)) == expected
    assert after("2026-01-15T12:00:00", Session("Asia/Tokyo"), timeZone=zone) == expected


@pytest.mark.parametrize(
    "zone", ["", "Mars", "Europe", "../etc/passwd", "+19:00", "+1:75", "+1:60", "+1:00:60", "UTC+x"]
)
def test_zones_that_are_none(zone: str) -> None:
    with pytest.raises(OptionError, match="option timeZone: a time zone such as"):
        after("2026-01-15T12:00:00", timeZone=zone)


def test_a_zone_of_its_own_comes_first() -> None:
    for text in ("1970-01-01T01:00:00+01:00", "1970-01-01T01:00:00 Europe/Berlin"):
        assert after(text, Session("Asia/Tokyo"), timeZone="America/New_York") == 0


@pytest.mark.skipif(os.name == "nt", reason="the zone of the machine is no variable there")
def test_without_a_session_it_is_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark has it unless its configuration says another one."""
    with machine_in("Asia/Tokyo", monkeypatch):
        assert after("1970-01-01T09:00:01", Session()) == SECOND
        source = DefaultSource({"path": "/x", "modifiedAfter": "1970-01-01T09:00:01"})
        with pytest.warns(UserWarning, match=r"modifiedAfter has no time zone .* option timeZone"):
            source.reader(source.schema())


def test_nothing_is_said_of_times_with_a_zone(recwarn: pytest.WarningsRecorder) -> None:
    for options in (
        {"modifiedAfter": "1970-01-01T09:00:01Z"},
        {"modifiedBefore": "1970-01-01T09:00:01 Asia/Tokyo"},
        {"modifiedBefore": "1970-01-01T09:00:01", "timeZone": "Asia/Tokyo"},
    ):
        source = DefaultSource({"path": "/x", **options})
        source.reader(source.schema())
    assert not recwarn.list


def test_the_session_is_what_options_do_not_say() -> None:
    told = Session(None, ignore_corrupt=True, ignore_missing=True)
    files = parse({}, session=told).files
    assert (files.ignore_corrupt, files.ignore_missing) == (True, True)
    given = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "FALSE"}
    files = parse(given, session=told).files
    assert (files.ignore_corrupt, files.ignore_missing) == (False, False)
    assert Session.from_settings({"timeZone": "Z", "ignoreCorruptFiles": True}) == Session(
        "Z", True, False
    )
    assert Session.from_settings({}) == Session()
    confs = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.files.ignoreMissingFiles": "true",
    }
    assert Session.from_conf(confs.get) == Session("Asia/Tokyo", False, True)


def test_a_stream_takes_the_zone_alone() -> None:
    told = Session("Asia/Tokyo", ignore_corrupt=True, ignore_missing=True)
    files = parse_stream({"modifiedAfter": "1970-01-01T09:00:01"}, told).reading.files
    assert (files.after, files.ignore_corrupt, files.ignore_missing) == (SECOND, False, False)


# ---------------------------------------------------------------- in Spark


@pytest.fixture
def settings(session: SparkSession) -> Iterator[None]:
    """What a test sets is not set afterwards."""
    names = ("session.timeZone", "files.ignoreCorruptFiles", "files.ignoreMissingFiles")
    before = {name: session.conf.get(f"spark.sql.{name}") for name in names}
    yield
    for name, value in before.items():
        session.conf.set(f"spark.sql.{name}", str(value))


def offsets(
    session: SparkSession, path: Path, source: str = "kafka-log", **options: str
) -> list[int]:
    frame = session.read.format(source).options(**options).load(str(path))
    return sorted(row.offset for row in frame.select("offset").collect())


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Segments that were written at one, two and three o'clock in UTC, beside text files that were too."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "texts").mkdir()
    for hour in (1, 2, 3):
        at = datetime(2026, 1, 15, hour, tzinfo=UTC).timestamp()
        path = write(tmp_path / "logs", "t", hour, 0, numbered(hour, 1))
        text = tmp_path / "texts" / f"{hour}.txt"
        text.write_text(str(hour))
        for one in (path, text):
            os.utime(one, (at, at))
    return tmp_path


@pytest.mark.spark
@pytest.mark.share(2)
@pytest.mark.parametrize("zone", ["PST", "Asia/Kolkata", "UTC", "GMT+2", "-02:30"])
def test_times_are_in_the_zone_of_the_session(
    session: SparkSession, settings: None, written: Path, zone: str
) -> None:
    def of(source: str, path: str = "logs", column: str = "partition", **options: str) -> set[int]:
        frame = session.read.format(source).options(**options).load(f"{written}/{path}")
        return {int(row[0]) for row in frame.select(column).distinct().collect()}

    session.conf.set("spark.sql.session.timeZone", zone)
    # Half past one of the night in UTC, as clocks of the zone show it.
    (shown,) = session.sql("select string(timestamp '2026-01-15 01:30:00+00:00')").collect()[0]
    asked = {"modifiedAfter": shown.replace(" ", "T")}
    assert of("kafka-log", **asked) == {2, 3}
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    if zone != "PST":  # a name of Java's alone
        for source in ("kafka-log", "kafka-log-python"):
            assert of(source, **asked, timeZone=zone) == {2, 3}
    if (
        zone == "UTC"
    ):  # outside of it Spark's file sources shift times by the offset of the zone twice
        assert of("text", "texts", "value", **asked, timeZone=zone) == {2, 3}


@pytest.mark.spark
def test_corrupt_files_by_the_session(
    session: SparkSession, settings: None, directory: Path
) -> None:
    write(directory, "t", 0, 0, flipped(numbered(4, 3), len(numbered(4, 2)) - 2))
    with pytest.raises(Exception, match="stored checksum"):
        offsets(session, directory)
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    assert offsets(session, directory) == [0, 1, 2, 3]
    with pytest.raises(Exception, match="stored checksum"):
        offsets(session, directory, ignoreCorruptFiles="false")
    with pytest.raises(Exception, match="stored checksum"):  # it is not told
        offsets(session, directory, "kafka-log-python")
    assert offsets(session, directory, "kafka-log-python", ignoreCorruptFiles="true") == [
        0,
        1,
        2,
        3,
    ]


@pytest.mark.spark
def test_missing_files_by_the_session(
    session: SparkSession, settings: None, directory: Path
) -> None:
    def rows_without_one() -> list[int]:
        paths = [write(directory, "t", n, 0, numbered(2, 1)) for n in (0, 1)]
        frame = session.read.format("kafka-log").load(str(directory)).select("partition")
        frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()  # planned
        paths[1].unlink()
        return [row[0] for row in frame.collect()]

    with pytest.raises(Exception, match="No such file"):
        rows_without_one()
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    assert rows_without_one() == [0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"startingTimestamp": "2026-01-01T00:00:00"},
        {"startingOffsetsByTimestamp": "now"},
        {"startingOffsetsByTimestampStrategy": "none"},
        {"pathGlobFilter": "{a"},
        {"timeZone": "Mars"},
        {"ignoreCorruptFiles": "maybe"},
        {"maxOffsetsPerTrigger": "x"},
        {"minOffsetsPerTrigger": "0"},
        {"maxTriggerDelay": "soon"},
        {"path": ""},
    ],
)
def test_a_wrong_value_fails_where_columns_are_asked_for(options: dict[str, str]) -> None:
    """That is in load(), also for what batch queries and streams have in common."""
    (name,) = options
    with pytest.raises(OptionError, match=f"option {name}: "):
        DefaultSource({"path": "/x", **options}).schema()
    assert DefaultSource({"path": "/x", "maxOffsetsPerTrigger": "5"}).schema()
