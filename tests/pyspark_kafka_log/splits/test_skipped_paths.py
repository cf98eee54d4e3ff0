"""What is no segment or no partition, in a path that Spark reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.logs import find_logs
from tests.support.batches import batch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kinds of files of POSIX")


def test_it_is_warned_of_and_all_else_is_read(tmp_path: Path) -> None:
    for name in ("t-0", "d-99999999999"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020d}.log").write_bytes(batch(0))
    os.mkfifo(tmp_path / "t-0" / "x.log")
    with pytest.warns(UserWarning, match="skipped") as warned:
        (log,) = find_logs(parse({"path": str(tmp_path)}))
    assert (log.topic, log.partition, len(log.segments)) == ("t", 0, 1)
    (said,) = [str(one.message) for one in warned]
    for text in ("a FIFO", "d-99999999999 (it has segments, but its name is not"):
        assert text in said


def _link(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


@pytest.mark.parametrize("make", [_link, os.mkfifo, Path.mkdir])
@pytest.mark.parametrize("base", [0, 20])
def test_a_segment_that_is_no_file_is_an_error(
    tmp_path: Path, make: Callable[[Path], None], base: int
) -> None:
    """Also before segments that are files, as one that retention removed."""
    place = tmp_path / "t-0"
    place.mkdir()
    (place / f"{10:020d}.log").write_bytes(batch(10))
    path = place / f"{base:020d}.log"
    make(path)

    def read(**options: str) -> list[int]:
        reader = KafkaLogReader(
            parse({"path": str(tmp_path)} | options), ("offset",), parse_filters(())
        )
        parts = [part for task in reader.partitions() for part in reader.read(task)]
        return [offset for part in parts for offset in part["offset"].to_pylist()]

    with pytest.raises(UnreadableError, match=path.name):
        read()
    with pytest.raises(UnreadableError, match=path.name):
        read(ignoreMissingFiles="true")
    with pytest.warns(UserWarning, match=path.name):
        assert read(mode="PERMISSIVE", policy="salvage") == [10, 11, 12]


def test_a_partition_that_is_a_dangling_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(batch(0))
    _link(tmp_path / "u-0")
    with pytest.raises(OSError, match="u-0"):
        find_logs(parse({"path": str(tmp_path)}))
    with pytest.warns(UserWarning, match="u-0.*dangling link|dangling link.*u-0"):
        (log,) = find_logs(parse({"path": str(tmp_path), "mode": "PERMISSIVE"}))
    assert log.topic == "t"


@pytest.mark.parametrize("place", ["", "t-0"])
def test_a_file_whose_name_no_segment_has_is_an_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(batch(0))
    (tmp_path / "t-0" / "5.log").write_bytes(batch(5))
    with pytest.raises(UnreadableError, match=r"5\.log"):
        find_logs(parse({"path": str(tmp_path / place)}))
    with pytest.warns(UserWarning, match=r"5\.log"):
        (log,) = find_logs(parse({"path": str(tmp_path / place), "mode": "PERMISSIVE"}))
    assert len(log.segments) == 1
