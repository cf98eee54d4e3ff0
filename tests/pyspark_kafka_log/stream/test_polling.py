"""Segments that are put into a place, or made longer there, when a stream has read newer ones: that is told, not passed over. No Java is needed."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.stream.polling import LogStream
from tests.support.spark_logs import batch, build, write
from tests.support.stream_laws import rows, stream


def some(base: int, count: int) -> bytes:
    """Batches of one record each."""
    return build(*(batch(base + i, [b"%d" % (base + i)]) for i in range(count)))


def polled(of: LogStream, start: Any) -> tuple[Any, list[int]]:
    """A micro-batch: where it ends, and its offsets."""
    end = of.latest(start, limited=True)
    return end, [offset for _, offset, _ in rows(of, start, end)]


def begun(directory: Path, **options: Any) -> tuple[LogStream, Any]:
    """A stream that has read a segment that is not whole, one that is missing, and the newest."""
    write(directory, "t", 0, 0, some(0, 4))
    write(directory, "t", 0, 20, some(20, 3))
    of = stream(directory, **options)
    start = of.initial()
    end, found = polled(of, start)
    assert found == [0, 1, 2, 3, 20, 21, 22]
    return of, end


@pytest.mark.parametrize(
    ("base", "count", "told"),
    [(0, 10, "grew from 280 to 700 bytes"), (10, 10, "00010.log came")],
)
def test_what_comes_late_is_told(directory: Path, base: int, count: int, told: str) -> None:
    of, start = begun(directory)
    assert polled(of, start) == (start, [])
    path = write(directory, "t", 0, base, some(base, count))
    told = told.replace("280", str(len(some(0, 4)))).replace("700", str(len(some(0, 10))))
    said = f"partition t-0 was read beyond the segment, and after that .*{re.escape(told)}: this stream did not read"
    with pytest.raises(DataLossError, match=said):
        polled(of, start)
    assert path.exists()


@pytest.mark.parametrize("bases", [(0, 8), (0, 12), (0, 5, 10), (0, 10, 15), (0, 3, 8, 13), (0,)])
def test_a_replica_with_other_segments_is_not_late(directory: Path, bases: tuple[int, ...]) -> None:
    """It has the same records, and rolled at other offsets: the stream has read all of them."""
    for base, end in ((0, 10), (10, 20), (20, 23)):
        write(directory, "t", 0, base, some(base, end - base))
    of = stream(directory)
    end, found = polled(of, of.initial())
    assert found == [*range(23)]
    for path in (directory / "t-0").iterdir():
        path.unlink()
    for base, until in pairwise((*bases, 20, 23)):
        write(directory, "t", 0, base, some(base, until - base))
    assert polled(of, end) == (end, [])


def test_a_stream_that_may_lose_data_warns_once_and_goes_on(directory: Path) -> None:
    of, start = begun(directory, failOnDataLoss="false")
    write(directory, "t", 0, 0, some(0, 10))
    write(directory, "t", 0, 20, some(20, 4))
    with pytest.warns(UserWarning, match="data is lost: .* grew from"):
        end, found = polled(of, start)
    assert found == [23]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert polled(of, end) == (end, [])


def test_what_comes_before_it_is_read_is_no_loss(directory: Path) -> None:
    """Of a stream whose micro-batches are small, and one that is planned when the rest is there."""
    write(directory, "t", 0, 0, some(0, 4))
    write(directory, "t", 0, 20, some(20, 3))
    of = stream(directory, maxOffsetsPerTrigger=2)
    start, found = polled(of, of.initial())
    assert found == [0, 1]
    write(directory, "t", 0, 0, some(0, 10))
    write(directory, "t", 0, 10, some(10, 10))
    seen = [*found]
    for _ in range(20):
        start, found = polled(of, start)
        seen += found
    assert seen == list(range(23))
    late = stream(directory)
    begin = late.initial()
    end = late.latest(begin, limited=True)
    write(directory, "t", 0, 10, some(10, 10) + b"")
    assert [offset for _, offset, _ in rows(late, begin, end)] == list(range(23))
    assert polled(late, end) == (end, [])


def test_what_brokers_do_is_no_loss(directory: Path) -> None:
    """Rolling, retention, and compaction, which makes one segment of two."""
    write(directory, "t", 0, 0, some(0, 4))
    of = stream(directory)
    start, _ = polled(of, of.initial())
    for base in (4, 8, 12):
        write(directory, "t", 0, base, some(base, 4))
        start, found = polled(of, start)
        assert found == list(range(base, base + 4))
    write(directory, "t", 0, 0, some(0, 8))
    (directory / "t-0" / f"{4:020}.log").unlink()
    assert polled(of, start) == (start, [])
    (directory / "t-0" / f"{0:020}.log").unlink()
    assert polled(of, start) == (start, [])


def test_what_comes_late_right_before_the_next_offset_is_told(directory: Path) -> None:
    """The micro-batch ended where the segment does. Also if the next one is planned before the next poll."""
    for planned_first in (False, True):
        write(directory, "t", 0, 0, some(0, 4))
        write(directory, "t", 0, 20, some(20, 3))
        of = stream(directory)
        begin, middle, end = ({"t": {"0": offset}} for offset in (0, 20, 23))
        assert [row[1] for row in rows(of, begin, middle)] == list(range(4))
        write(directory, "t", 0, 0, some(0, 10))
        if planned_first:
            assert [row[1] for row in rows(of, middle, end)] == [20, 21, 22]
        with pytest.raises(DataLossError, match=r"after that .*0\.log grew from"):
            of.latest(end if planned_first else middle, limited=True)


def test_what_comes_between_two_micro_batches_of_a_segment_is_read(directory: Path) -> None:
    """The next micro-batch goes beyond the segment."""
    write(directory, "t", 0, 0, some(0, 4))
    write(directory, "t", 0, 20, some(20, 3))
    of = stream(directory)
    begin, middle, end = ({"t": {"0": offset}} for offset in (0, 2, 23))
    assert [row[1] for row in rows(of, begin, middle)] == [0, 1]
    write(directory, "t", 0, 0, some(0, 10))
    assert [row[1] for row in rows(of, middle, end)] == [*range(2, 10), 20, 21, 22]
    assert polled(of, end) == (end, [])
