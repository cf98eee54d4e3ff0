"""Times and ranges as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.cli.ranges import join_dashed_values, parse_offset_range
from kafka_log.read.selection import Selection
from kafka_log.segment.times import milliseconds, parse_time_range

NOW = 1_800_000_000_000
SOME = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.none())
ZONES = st.integers(-12 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


def since_1970(when: datetime) -> int:
    return int(when.timestamp()) * 1000 + when.microsecond // 1000


def number(time: int) -> int | None:
    """A time by its number; None where it is refused, as its digits may say something else."""
    try:
        return milliseconds(str(time))
    except ValueError:
        assert 0 <= time < 10**10 and len(str(time)) in (4, 8, 10)
        return None


@given(st.integers(-62135596800000, 253402300799999))
def test_times_are_numbers_or_iso(time: int) -> None:
    seconds, rest = divmod(time, 1000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}".rjust(23, "0")
    assert number(time) in (time, None)
    assert milliseconds(text) == milliseconds(text + "Z") == time


def test_what_is_out_of_range() -> None:
    for text in (str(2**63), str(2**63 - 1), str(-(2**63))):
        with pytest.raises(ValueError, match="is not a time"):
            milliseconds(text)


@given(SOME, ZONES)
def test_iso_times(when: datetime, zone: timezone) -> None:
    there = when.replace(tzinfo=zone)
    assert milliseconds(there.isoformat()) == since_1970(there)
    utc = when.replace(tzinfo=UTC)
    assert milliseconds(when.isoformat()) == milliseconds(when.isoformat() + "Z") == since_1970(utc)
    assert number(since_1970(there)) in (since_1970(there), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("-90s", NOW - 90_000),
        ("-2h", NOW - 7_200_000),
        ("-1d", NOW - 86_400_000),
        ("2026-11-22", 1_795_305_600_000),
        ("2026-11-22T10:15+01:00", 1_795_338_900_000),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert milliseconds(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "12:30", "9" * 30, "1e15", "-999999999999d"]
)
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write 2026-11-22, "):
        milliseconds(text, NOW)


@given(st.lists(SOME, min_size=2, max_size=2).map(sorted), st.booleans(), st.booleans())
def test_ranges_of_times(pair: list[datetime], open_begin: bool, open_end: bool) -> None:
    low, high = (
        "" if is_open else when.isoformat()
        for when, is_open in zip(pair, (open_begin, open_end), strict=True)
    )
    begin, end = (since_1970(when.replace(tzinfo=UTC)) for when in pair)
    expected = (None if open_begin else begin, None if open_end else end)
    assert parse_time_range(f"{low}:{high}") == expected


def test_what_can_be_read_in_two_ways() -> None:
    assert parse_time_range("2026-11-22:2026-11-23") == (1_795_305_600_000, 1_795_392_000_000)
    assert parse_time_range("-2h:now", NOW) == (NOW - 7_200_000, NOW)
    assert parse_time_range(":", NOW) == (None, None)
    with pytest.raises(
        ValueError, match="can be split at more than one colon: write both times with seconds"
    ):
        parse_time_range("1960-01-01:20261122:00")
    with pytest.raises(ValueError, match="is not a range of times"):
        parse_time_range("yesterday")
    with pytest.raises(ValueError, match="2026-11-23 is after 2026-11-22"):
        parse_time_range("2026-11-23:2026-11-22")


DAY = 1_795_305_600_000


@pytest.mark.parametrize(
    ("text", "begin", "length"),
    [
        ("2026-11-22", DAY, 86_400_000),
        ("2026-11-22T10", DAY + 36_000_000, 3_600_000),
        ("2026-11-22 10", DAY + 36_000_000, 3_600_000),
        ("2026-11-22T10:15", DAY + 36_900_000, 60_000),
        ("2026-11-22T10:15:30", DAY + 36_930_000, 1000),
        ("2026-11-22T10:15:30.250", DAY + 36_930_250, 1),
        ("2026-11-22T10:15Z", DAY + 36_900_000, 60_000),
        ("2026-11-22T11:15+01:00", DAY + 36_900_000, 60_000),
        ("2026-11-22T11+01:00", DAY + 36_000_000, 3_600_000),
        ("2026-11-22T11+01", DAY + 36_000_000, 3_600_000),
    ],
)
def test_one_time_is_the_period_that_it_names(text: str, begin: int, length: int) -> None:
    assert parse_time_range(text) == (begin, begin + length)
    assert Selection(timestamps=text).timestamps == (begin, begin + length)


@given(SOME, ZONES)
def test_periods_hold_their_times(when: datetime, zone: timezone) -> None:
    there = when.replace(tzinfo=zone)
    at = since_1970(there)
    for unit, length in (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000), ("milliseconds", 1)):  # fmt: skip
        begin, end = parse_time_range(there.isoformat(timespec=unit))
        assert begin is not None
        assert end == begin + length
        assert begin <= at < end


@pytest.mark.parametrize("text", ["2026-02-30", "2026-11-22T25", "20261122", "2026-11", "2026-W47", "now", "-2h", "1795305600000", "2026-11-22T"])  # fmt: skip
def test_texts_that_are_no_period(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a range of times: .* such as 2026-11-22T10"):
        parse_time_range(text)


def test_a_minute_before_1970_that_may_be_a_range() -> None:
    with pytest.raises(ValueError, match="can be split at more than one colon"):
        parse_time_range("1969-12-31T10:15")


def test_python_takes_times_and_texts() -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    expected = (DAY + 43_200_000, DAY + 86_400_000)
    assert Selection(timestamps=(noon, "2026-11-23")).timestamps == expected
    assert Selection(timestamps=(noon, None)).timestamps == (expected[0], None)
    with pytest.raises(ValueError, match="timestamps: 'soon' is not a range of times"):
        Selection(timestamps="soon")
    with pytest.raises(ValueError, match="timestamps: 'soon' is not a time"):
        Selection(timestamps=("soon", None))
    with pytest.raises(ValueError, match="the first is above the end: give the lower one first"):
        Selection(timestamps=("2026-11-23", noon))


@pytest.mark.parametrize(
    ("text", "what", "meant"),
    [
        ("20261122", "a date", "1970-01-01T05:37:41.122+00:00"),
        ("2026", "a year", "1970-01-01T00:00:02.026+00:00"),
        ("1795154400", "seconds", "1970-01-21T18:39:14.400+00:00"),
    ],
)
def test_numbers_that_may_be_something_else(text: str, what: str, meant: str) -> None:
    for refused in (lambda: milliseconds(text), lambda: parse_time_range(f"{text}:"), lambda: parse_time_range(f":{text}")):  # fmt: skip
        with pytest.raises(ValueError, match=f"{text} may be {what}, or milliseconds since 1970"):
            refused()
    assert milliseconds(meant) == int(text)
    assert milliseconds(f"0{text}") == int(text)


@pytest.mark.parametrize("text", ["0", "1000", "3000", "20261399", "30001122", "1795154400000"])
def test_numbers_that_are_times(text: str) -> None:
    assert milliseconds(text) == int(text)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_ranges_of_offsets(a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert parse_offset_range(f"{low}:{high}") == (low, high)
    assert parse_offset_range(f"{low}:") == (low, None)
    assert parse_offset_range(f":{high}") == (None, high)


@pytest.mark.parametrize(
    "text", ["", "5", "a:b", "5:4", "1:2:3", "1_0:", ":²", f"{2**63}:", f":{-(2**63) - 1}"]
)
def test_no_ranges_of_offsets(text: str) -> None:
    with pytest.raises(ValueError):
        parse_offset_range(text)


def test_values_that_begin_with_a_dash() -> None:
    argv = [
        "export",
        "a-0",
        "--time",
        "-2h:",
        "--offsets",
        "-1:5",
        "--partition",
        "-7",
        "--",
        "--out",
        "-2",
    ]
    joined = [
        "export",
        "a-0",
        "--time=-2h:",
        "--offsets=-1:5",
        "--partition=-7",
        "--",
        "--out",
        "-2",
    ]
    assert join_dashed_values(argv) == joined
    assert join_dashed_values(["--time=-2h:", "-3", "-x"]) == ["--time=-2h:", "-3", "-x"]
    assert join_dashed_values(["dump", "--topic", "-name", "-h"]) == ["dump", "--topic=-name", "-h"]
    for plain in (
        ["--deep", "-h"],
        ["--batches", "-n", "3"],
        ["--topic", "--deep"],
        ["--topic", "-"],
    ):
        assert join_dashed_values(plain) == plain
