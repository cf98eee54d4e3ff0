"""Offsets that neither copies in tiered storage nor live segments have: queries, streams and exports do not pass over them in silence."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_log.logs import discovery
from kafka_log.logs.names import LOG_START
from kafka_log.segment.ranges import EVERYTHING, Range
from pyspark_kafka_log.export import DataLossError as ExportLossError
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import RowRanges
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.support.spark_tables import Table
from tests.support.stream_laws import rows, stream
from tests.support.tiers import TIER, local, remote

GAPS = [(30, 39), (60, 69)]
"""First and last offset."""


def make_gaps(root: Path, start: int | None = None) -> None:
    """Make two copies and two live segments, with a gap before and after the second copy."""
    remote(root, 0, 0, 30)
    remote(root, 1, 40, 60)
    local(root, 70, 80)
    local(root, 80, 90)
    if start is not None:
        (root / LOG_START).write_text(f"0\n1\nt 0 {start}\n")


OFFSETS = [*range(30), *range(40, 60), *range(70, 90)]


def planned(root: Path, options: Mapping[str, str], offsets: Range = EVERYTHING) -> list[int]:
    """Return the offsets that tasks of a batch query read; ``offsets`` are those of a filter."""

    given = {"path": str(root), "include": "remote", "subscribe": "t", **options}
    tasks = plan(parse(given), RowRanges(offsets=offsets))
    batches = [b for task in tasks for b in read_splits(task, Scan(columns=("offset",)))]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_batch_query_fails_at_a_gap(tmp_path: Path, isolation: str) -> None:
    make_gaps(tmp_path)
    of_all = {"isolationLevel": isolation}
    with pytest.raises(DataLossError) as caught:
        planned(tmp_path, of_all)
    for loss, (first, last) in zip(caught.value.losses, GAPS, strict=True):
        assert f"offsets {first} to {last} are lost: no copy" in loss
    with pytest.warns(UserWarning, match="offsets 60 to 69 are lost"):
        assert planned(tmp_path, {**of_all, "failOnDataLoss": "false"}) == OFFSETS
    # What the query does not ask for is not missing.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned(tmp_path, of_all, (40, 60)) == list(range(40, 60))
        begins = {"startingOffsets": '{"t": {"0": 70}}'}
        assert planned(tmp_path, of_all | begins) == list(range(70, 90))
        only = {"pathGlobFilter": "*70.log"}  # a part of the log
        assert planned(tmp_path, of_all | only) == list(range(70, 80))
        live = {"include": "deleted"}
        assert planned(tmp_path, of_all | live) == list(range(70, 90))
    with pytest.raises(DataLossError) as caught:
        planned(tmp_path, of_all, (35, 65))
    assert [re.findall(r"\d+ to \d+", loss) for loss in caught.value.losses] == [
        ["35 to 39"],
        ["60 to 64"],
    ]


def test_deleted_records_are_no_gap(tmp_path: Path) -> None:
    make_gaps(tmp_path, 65)
    with pytest.raises(DataLossError, match="offsets 65 to 69 are lost"):
        planned(tmp_path, {})
    (tmp_path / LOG_START).write_text("0\n1\nt 0 70\n")
    assert planned(tmp_path, {}) == list(range(70, 90))


def test_a_segment_that_moves_while_directories_are_listed_is_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tier was listed before the copy came, and the live log after the segment had gone: another look finds it."""

    remote(tmp_path, 0, 0, 30)
    local(tmp_path, 50, 60)
    found = discovery.survey

    def surveyed(*given: Any, **options: Any) -> Any:
        there = found(*given, **options)
        if not list((tmp_path / TIER).rglob(f"{30:020}*.log")):
            remote(tmp_path, 1, 30, 50)
        return there

    monkeypatch.setattr("pyspark_kafka_log.splits.logs.survey", surveyed)
    # The plan is that of the first look, which lacks these records: it is not taken.
    assert planned(tmp_path, {}) == list(range(60))


def test_a_stream_fails_at_a_gap(tmp_path: Path) -> None:
    make_gaps(tmp_path)
    options: dict[str, Any] = {"include": "remote", "subscribe": "t"}
    now = stream(tmp_path, **options)
    with pytest.raises(DataLossError) as caught:
        rows(now, now.initial(), now.latest(now.initial(), limited=False))
    assert [re.findall(r"\d+ to \d+", loss) for loss in caught.value.losses] == [
        ["30 to 39"],
        ["60 to 69"],
    ]
    within = [{"t": {"0": 40}}, {"t": {"0": 60}}]
    assert [offset for _, offset, _ in rows(now, *within)] == list(range(40, 60))
    goes_on = stream(tmp_path, **options, failOnDataLoss="false")
    with pytest.warns(UserWarning, match="offsets 30 to 39 are lost"):
        found = rows(goes_on, {"t": {"0": 0}}, {"t": {"0": 90}})
    assert [offset for _, offset, _ in found] == OFFSETS


def test_an_export_fails_at_a_gap(tmp_path: Path) -> None:
    make_gaps(tmp_path / "logs")
    table = Table("parquet", tmp_path)
    options: dict[str, Any] = {"include": "remote", "subscribe": "t"}
    with pytest.raises(ExportLossError) as caught:
        table.export(tmp_path / "logs", **options)
    losses = caught.value.losses
    assert [re.findall(r"\d+ to \d+", loss) for loss in losses] == [["30 to 39"], ["60 to 69"]]
    assert not Path(table.place).exists()
    (tmp_path / "part").mkdir()
    part = Table("parquet", tmp_path / "part")
    done = part.export(tmp_path / "logs", **options, endingOffsets='{"t": {"0": 20}}')
    assert (done.rows, done.missed) == (20, ())
    with pytest.warns(UserWarning, match="offsets 30 to 39 are lost"):
        done = table.export(tmp_path / "logs", ignore=True, **options)
    assert (done.rows, done.missed) == (len(OFFSETS), losses)
    assert table.export(tmp_path / "logs", **options).missed == ()
