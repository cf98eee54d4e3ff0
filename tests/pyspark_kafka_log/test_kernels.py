"""The Arrow kernels below the columns of the data source: the same rows as the reference codecs give."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from tests.paths import SAMPLES, VECTORS
from tests.support.spark_logs import batch, build, write

pa = pytest.importorskip("pyarrow")

from kafka_log import Policy, discover  # noqa: E402
from kafka_log.logs.transactions import read_transactions  # noqa: E402
from kafka_log.read.plan import Split  # noqa: E402
from kafka_log.segment import kernels  # noqa: E402
from kafka_log.segment.row_selection import Aborted, RowSelection  # noqa: E402
from pyspark_kafka_log.columns import DEFAULT_COLUMNS, METADATA_COLUMNS  # noqa: E402
from pyspark_kafka_log.scan import Scan  # noqa: E402
from pyspark_kafka_log.task_reader import read_split  # noqa: E402

WANTED = (*DEFAULT_COLUMNS, *METADATA_COLUMNS)
FILES = sorted([*VECTORS.glob("*/*.log"), *SAMPLES.glob("*/*/*.log")])
SMALL = [path for path in FILES if path.parent.name != "large"]


def takes(part: Split, scan: Scan) -> bool:
    """Whether kernels read a split."""
    return kernels.use_kernels(part.size, scan.engine)


def numbers(batch: Any) -> Any:
    """Timestamps as numbers: some are more than Python's datetime can hold."""
    if "timestamp" not in batch.schema.names:
        return batch
    at = batch.schema.get_field_index("timestamp")
    return batch.set_column(at, "timestamp", batch.column(at).cast(pa.int64()))


def rows(path: Path, engine: str, **options: Any) -> tuple[list[dict[str, Any]], str | None]:
    """All rows, and the error after them."""
    (partition,) = discover(path)
    wanted = {"control_records": options.pop("control_records", False), **options.pop("part", {})}
    part = Split(partition.segments[0], rows=RowSelection(**wanted))
    scan = Scan(**{"columns": WANTED, "engine": engine, **options})
    assert takes(part, scan) == (engine == "arrow")
    found: list[dict[str, Any]] = []
    try:
        for batch in read_split(part, scan):
            assert batch.schema.equals(scan.schema)
            assert batch.num_rows <= scan.batch_rows
            found += numbers(batch).to_pylist()
    except CodecError as error:
        return found, str(error)
    return found, None


MODES: tuple[dict[str, Any], ...] = (
    {"timestamp_unit": "ms"},
    {"policy": "strict", "control_records": True},
    {"control_records": True, "batch_rows": 7},
    {"policy": "salvage", "on_damage": "keep", "control_records": True},
    {"policy": "kafka", "on_damage": "keep", "timestamp_unit": "ms"},
    {"policy": "salvage", "on_damage": "drop", "control_records": True},
    {"policy": "kafka", "on_damage": "drop"},
)


def agree(path: Path, options: dict[str, Any]) -> list[dict[str, Any]]:
    """That both engines give the same; what they give."""
    if "policy" in options:
        options = {**options, "policy": Policy(options["policy"])}
    ours, error = rows(path, "arrow", **dict(options))
    theirs, expected = rows(path, "construct", **dict(options))
    assert error == expected
    if expected is None:
        assert ours == theirs
    else:  # the reference codecs withhold the rows of a batch of rows that is not full
        assert ours[: len(theirs)] == theirs
    return theirs


@pytest.mark.share(18, ci=0)
@pytest.mark.parametrize("path", SMALL, ids=lambda p: f"{p.parent.name}-{p.stem}"[-60:])
def test_the_same_rows(path: Path) -> None:
    """By some of the options, others for the next file."""
    for options in MODES[SMALL.index(path) % 3 :: 3]:
        agree(path, options)


@pytest.mark.slow
@pytest.mark.share(ci=9)
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}"[-60:])
def test_the_same_rows_by_all_options(path: Path) -> None:
    for options in MODES[2:4] if path.parent.name == "large" else MODES:
        agree(path, options)


@pytest.mark.slow
@pytest.mark.share(27, ci=9)
@pytest.mark.parametrize("path", FILES[::3], ids=lambda p: f"{p.parent.name}-{p.stem}"[-60:])
def test_the_same_rows_of_a_range(path: Path) -> None:
    everything, _ = rows(path, "construct", on_damage="keep", policy=Policy.SALVAGE)
    offsets = sorted(row["offset"] for row in everything if row["offset"] is not None)
    if not offsets:
        return
    first, end = offsets[len(offsets) // 3], offsets[2 * len(offsets) // 3]
    for options in MODES[1::2]:
        for bounds in ((first, None), (None, end), (first, end)):
            agree(path, {**options, "part": {"offsets": bounds}})


TRANSACTIONAL = sorted([*VECTORS.glob("control/*.log"), *SAMPLES.glob("*/transactions-*/*.log")])


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("path", TRANSACTIONAL, ids=lambda p: f"{p.parent.name}-{p.stem}"[-60:])
def test_the_same_rows_without_transactions_that_were_aborted(path: Path) -> None:
    (partition,) = discover(path)
    found = read_transactions(partition.segments, damage_raises=False)
    real = tuple((t.producer_id, t.first_offset, t.last_offset) for t in found.aborted)
    part = {"aborted": Aborted(real), "offsets": (None, found.last_stable_offset)}
    everything, _ = rows(path, "construct", on_damage="keep", policy=Policy.SALVAGE)
    data = [row for row in everything if row["isTransactional"]]
    made_up = tuple((row["producerId"], row["offset"], row["offset"] + 5) for row in data[::3])
    for options in (MODES[2], MODES[3], MODES[6]):
        agree(path, {**options, "part": part})
        agree(path, {**options, "part": {"aborted": Aborted(made_up)}})


def test_aborted_transactions_are_left_out() -> None:
    """Those that real producers aborted: what is compared above is not empty."""
    left_out = 0
    for path in TRANSACTIONAL:
        (partition,) = discover(path)
        found = read_transactions(partition.segments, damage_raises=False)
        aborted = tuple((t.producer_id, t.first_offset, t.last_offset) for t in found.aborted)
        everything, _ = rows(path, "arrow")
        left, _ = rows(path, "arrow", part={"aborted": Aborted(aborted)})
        wrong = [row for row in left for producer, first, last in aborted
                 if row["producerId"] == producer and first <= row["offset"] <= last]  # fmt: skip
        assert not wrong
        left_out += len(everything) - len(left)
    assert left_out > 10


@pytest.mark.parametrize(
    "name", ["matrix/v2-gzip-create", "matrix/v1-lz4-append", "matrix/v0-none"]
)
def test_from_an_offset_on(name: str) -> None:
    path = VECTORS / f"{name}.log"
    everything, _ = rows(path, "construct")
    first = everything[len(everything) // 2]["offset"]
    ours, _ = rows(path, "arrow", part={"offsets": (first, None)})
    assert ours == [row for row in everything if row["offset"] >= first]


@pytest.mark.parametrize("column", WANTED)
def test_each_column_alone(column: str) -> None:
    path = SAMPLES / "kafka-4.x" / "features-0" / f"{0:020}.log"
    ours, _ = rows(path, "arrow", columns=(column,))
    theirs, _ = rows(path, "construct", columns=(column,))
    assert ours == theirs
    assert ours


def test_the_kernels_are_taken_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    (partition,) = discover(VECTORS / "matrix" / "v2-none-create.log")
    small = Split(partition.segments[0])
    large = Split(small.segment, stop=kernels.KERNEL_MIN_BYTES)
    for name in ("records_kernels", "records_numpy"):
        monkeypatch.delitem(sys.modules, f"kafka_codecs.arrow.{name}", raising=False)
    assert not takes(small, Scan()), "loading the kernels does not pay"
    assert takes(small, Scan(engine="arrow"))
    assert takes(large, Scan())
    assert not takes(large, Scan(engine="construct"))
    import kafka_codecs.arrow.records_kernels  # noqa: F401

    assert takes(small, Scan()), "they are loaded"


def test_columns_hold_few_bytes() -> None:
    path = VECTORS / "large" / "v2-gzip-1mib.log"
    (partition,) = discover(path)
    scan = Scan(columns=("value",), engine="arrow", batch_bytes=1 << 20)
    sizes = [b.num_rows for b in read_split(Split(partition.segments[0]), scan)]
    assert sizes == [1, 1]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    one = build(batch(0, [b"%d" % i for i in range(20)], pad=5000))

    def most(copies: int) -> int:
        parts = (one if i == 0 else (20 * i).to_bytes(8, "big") + one[8:] for i in range(copies))
        logs = tmp_path / str(copies)
        logs.mkdir()
        path = write(logs, "t", 0, 0, b"".join(parts))
        (partition,) = discover(path)
        top = 0
        for found in read_split(Split(partition.segments[0]), Scan(columns=("offset", "value"))):
            assert found.num_rows
            top = max(top, pa.total_allocated_bytes())
        return top

    assert most(600) < most(150) + (8 << 20)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(
        ValueError, match="there is no engine 'rust'; known: auto, construct, arrow"
    ):
        Scan(engine="rust")  # type: ignore[arg-type]


@pytest.mark.spark
def test_a_large_segment_through_spark(spark: Any, directory: Path) -> None:
    """Large enough for the kernels; with headers, nulls, and a marker that is left out."""
    pytest.importorskip("numba")
    some = (VECTORS / "control" / "txn-flow.log").read_bytes()
    one = build(batch(0, [b"%d" % i for i in range(20)], pad=5000))
    parts = (one if i == 0 else (20 * i).to_bytes(8, "big") + one[8:] for i in range(50))
    path = write(directory, "t", 0, 0, b"".join(parts) + some)
    assert path.stat().st_size > kernels.KERNEL_MIN_BYTES
    frame = spark.read.format("kafka-log").option("includeHeaders", "true").load(str(directory))
    found = frame.selectExpr(
        "count(*) n", "sum(offset) s", "sum(length(value)) b", "count(headers) h"
    )
    theirs, _ = rows(path, "construct", columns=("offset", "value", "headers"))
    assert found.collect()[0].asDict() == {
        "n": len(theirs),
        "s": sum(row["offset"] for row in theirs),
        "b": sum(len(row["value"] or b"") for row in theirs),
        "h": sum(row["headers"] is not None for row in theirs),
    }
