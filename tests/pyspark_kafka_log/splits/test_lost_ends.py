"""An incomplete batch at the end of a log that a broker had written: queries, streams and exports do not leave it out in silence."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK
from kafka_log.segment.ranges import EVERYTHING, Range
from pyspark_kafka_log import ending_offsets
from pyspark_kafka_log.export import DataLossError as ExportLossError
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import RowRanges
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.support.batches import batch
from tests.support.segment_files import put
from tests.support.spark_queries import load
from tests.support.spark_tables import Table
from tests.support.stream_laws import rows, stream
from tests.support.torn_logs import torn_log

OFFSETS = [0, 1, 2, 10, 11, 12]
PROOFS = ["clean shutdown", "high watermark"]
LOST = "are lost: of a batch that was not written to its end; "
IGNORED = {"failOnDataLoss": "false"}


def planned(root: Path, options: Mapping[str, str], offsets: Range = EVERYTHING) -> list[int]:
    """Return the offsets that tasks of a batch query read; ``offsets`` are those of a filter."""
    tasks = plan(parse({"path": str(root), **options}), RowRanges(offsets=offsets))
    batches = [b for task in tasks for b in read_splits(task, Scan(columns=("offset",)))]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.slow
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_batch_query_fails(proof: str, isolation: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path, proof)
    of_all = {"isolationLevel": isolation}
    for asked in (of_all, of_all | {"pathGlobFilter": "0*"}):
        with pytest.raises(DataLossError, match=LOST):
            planned(root, asked)
        with pytest.warns(UserWarning, match=f"data is lost: .*{LOST}"):
            assert planned(root, {**asked, **IGNORED}) == OFFSETS
    with pytest.raises(DataLossError):
        planned(root, of_all, (13, None))
    with no_warning():  # what the query does not ask for is not missing
        assert planned(root, of_all, (0, 12)) == OFFSETS[:-1]
        ends = {"endingOffsets": '{"t": {"0": 13}}'}
        assert planned(root, of_all | ends) == OFFSETS
        assert planned(root, {"mode": "PERMISSIVE"})[: len(OFFSETS)] == OFFSETS  # its tasks tell


@pytest.mark.parametrize("proof", PROOFS)
def test_present_ends_do_not_hide_it(proof: str, tmp_path: Path) -> None:
    """A query that ends there asks for nothing behind it."""
    root = torn_log(tmp_path, proof)
    with pytest.raises(DataLossError, match=LOST):
        ending_offsets(root)
    with pytest.warns(UserWarning, match=f"data is lost: .*{LOST}"):
        assert ending_offsets(root, IGNORED) == '{"t":{"0":13}}'
    with no_warning():
        assert ending_offsets(torn_log(tmp_path / "written", "")) == '{"t":{"0":13}}'


@pytest.mark.parametrize("proof", ["", "lower high watermark"])
def test_a_batch_that_a_broker_may_be_writing_is_no_loss(proof: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path, proof)
    with no_warning():
        assert planned(root, {}) == OFFSETS
        now = stream(root)
        end = now.latest(now.initial(), limited=False)
        assert [offset for _, offset, _ in rows(now, now.initial(), end)] == OFFSETS
        assert now.latest(end, limited=False) == end


def test_a_cached_plan_hides_no_loss(tmp_path: Path) -> None:
    root = torn_log(tmp_path, "")
    assert planned(root, {}) == OFFSETS
    (root / CLEAN_SHUTDOWN).touch()
    with pytest.raises(DataLossError):
        planned(root, {})


@pytest.mark.slow
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_a_stream_fails(proof: str, mode: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path, proof)
    now = stream(root, mode=mode)
    for start in (now.initial(), {"t": {"0": 13}}):
        with pytest.raises(DataLossError, match=LOST):
            now.latest(start, limited=False)
    goes_on = stream(root, mode=mode, **IGNORED)
    with pytest.warns(UserWarning, match=f"data is lost: .*{LOST}"):
        end = goes_on.latest(goes_on.initial(), limited=False)
    assert [offset for _, offset, _ in rows(goes_on, goes_on.initial(), end)] == OFFSETS
    with no_warning():  # each poll finds it
        assert goes_on.latest(end, limited=False) == end


def test_a_stream_with_an_end_is_not_told_of_later_records(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    put(root / "t-0", (0, batch(0)))
    now = stream(root)
    end = now.prepare()
    torn_log(root, "clean shutdown")
    assert now.latest(now.initial(), limited=False) == end
    later = stream(root)
    later.prepare()
    with pytest.raises(DataLossError, match=LOST):
        later.latest(now.initial(), limited=False)


def test_a_stream_reads_on_after_the_broker_has_started(tmp_path: Path) -> None:
    """It cuts the incomplete batch off, and the next record takes its offset."""
    root = torn_log(tmp_path, "high watermark")
    now = stream(root)
    with pytest.raises(DataLossError, match=LOST):
        now.latest({"t": {"0": 13}}, limited=False)
    put(root / "t-0", (0, batch(0) + batch(10) + batch(13)))
    with no_warning():
        end = now.latest({"t": {"0": 13}}, limited=False)
    assert [offset for _, offset, _ in rows(now, {"t": {"0": 13}}, end)] == [13, 14, 15]


def test_a_stream_is_not_told_of_a_batch_that_is_complete_at_the_next_look(tmp_path: Path) -> None:
    """A broker completes it, and then writes its high watermark. A file of the same size is preallocated."""
    whole = batch(0) + batch(10) + batch(20)
    for preallocated in (0, 4096):
        log = put(tmp_path / f"{preallocated}" / "t-0", (0, whole[:-30] + bytes(preallocated)))
        now = stream(log.parent)
        with no_warning():
            end = now.latest(now.initial(), limited=False)
            put(log, (0, whole + bytes(max(0, preallocated - 30))))
            entries = [{"topic": "t", "partition": 0, "offset": 23}]
            checkpoint = OFFSET_CHECKPOINT.build({"entries": entries})
            (log.parent / HIGH_WATERMARK).write_bytes(checkpoint)
            after = now.latest(end, limited=False)
        assert [offset for _, offset, _ in rows(now, end, after)] == [20, 21, 22]


@pytest.mark.slow
@pytest.mark.parametrize("proof", PROOFS)
def test_an_export_fails(proof: str, tmp_path: Path) -> None:
    root = torn_log(tmp_path / "logs", proof)
    table = Table("parquet", tmp_path)
    with pytest.raises(ExportLossError, match=LOST) as caught:
        table.export(root)
    assert not Path(table.place).exists()
    with pytest.warns(UserWarning, match=LOST):
        done = table.export(root, ignore=True)
    assert (done.rows, done.missed) == (len(OFFSETS), caught.value.losses)
    with pytest.raises(ExportLossError, match=LOST):
        table.export(root)
    shutil.rmtree(root)
    put(root / "t-0", (0, batch(0) + batch(10) + batch(13)))
    assert table.export(root).rows == 3


def test_both_sources_fail(spark: SparkSession, tmp_path: Path) -> None:
    root = torn_log(tmp_path / "logs", "clean shutdown")
    with pytest.raises(PySparkException, match=LOST):
        load(spark, root).collect()
    found = load(spark, root, **IGNORED).collect()
    assert [row["offset"] for row in found] == OFFSETS
    source = spark.conf.get("spark.tests.format")
    assert source is not None
    options: dict[str, Any] = {"startingOffsets": "earliest"}
    reader = spark.readStream.format(source).options(**options)
    writer = reader.load(str(root)).writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(PySparkException, match=LOST):
        query.awaitTermination()
