"""What others make of the streams: DuckDB, Polars and pandas, where they are installed."""

from __future__ import annotations

import pytest

from kafka_log import SegmentReader, discover, read_table, scan
from tests.paths import SAMPLES

PATH = SAMPLES / "kafka-4.x"
RECORDS = [
    (partition.topic, partition.partition, record.offset, record.value)
    for partition in discover(PATH)
    for segment in partition.segments
    for batch in SegmentReader(segment.path)
    if not batch.is_control
    for record in batch.records
    if partition.topic != "trimmed" or record.offset >= 7  # the others were deleted
]
COUNTS = sorted({topic: sum(1 for r in RECORDS if r[0] == topic) for topic, *_ in RECORDS}.items())
COLUMNS = ["topic", "partition", "offset", "value"]


@pytest.mark.slow
@pytest.mark.parametrize("views", [False, True])
def test_duckdb(views: bool) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("log", scan(PATH, binary_view=views))
        query = "select topic, count(*) from log group by topic order by topic"
        assert connection.execute(query).fetchall() == COUNTS
        connection.register("rows", scan(PATH, COLUMNS, binary_view=views))
        assert connection.execute("select * from rows").fetchall() == RECORDS
        connection.register("headers", scan(PATH, ["headers"], binary_view=views))
        query = "select count(*) from headers where len(headers) > 0"
        wanted = sum(1 for h in read_table(PATH, ["headers"]).column(0).to_pylist() if h)
        assert connection.execute(query).fetchall() == [(wanted,)]


@pytest.mark.slow
@pytest.mark.parametrize("views", [False, True])
def test_polars(views: bool) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(read_table(PATH, COLUMNS, binary_view=views))
    assert frame.rows() == RECORDS
    counts = frame.group_by("topic").len().cast({"topic": polars.String}).sort("topic")
    assert counts.rows() == COUNTS
    assert polars.DataFrame(scan(PATH, binary_view=views)).height == len(RECORDS)


@pytest.mark.parametrize("views", [False, True])
def test_pandas(views: bool) -> None:
    pytest.importorskip("pandas")
    frame = scan(PATH, COLUMNS, binary_view=views).read_pandas()
    assert list(frame.itertuples(index=False, name=None)) == RECORDS
    assert sorted(frame.groupby("topic", observed=True).size().to_dict().items()) == COUNTS
    everything = read_table(PATH, binary_view=views).to_pandas()
    assert len(everything) == len(RECORDS)
    assert str(everything["timestamp"].dtype) == "datetime64[ms, UTC]"
