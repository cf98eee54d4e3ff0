"""Logs as Arrow, without Spark: the reference's own results, bounds, and what damage does."""

from __future__ import annotations

import base64
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import ChecksumError, CodecError, LimitError, ValueRefused
from codecgen.runtime.located_bytes import Limits
from tests.paths import VECTORS
from tests.support.arrow_limits import LARGEST
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, vector, write

pa = pytest.importorskip("pyarrow")

from kafka_log import Segment, discover  # noqa: E402
from kafka_log.read.plan import Split  # noqa: E402
from kafka_log.segment.model import Policy  # noqa: E402
from kafka_log.segment.row_selection import Aborted, RowSelection  # noqa: E402
from pyspark_kafka_log.columns import COLUMNS, DEFAULT_COLUMNS, METADATA_COLUMNS, schema  # noqa: E402
from pyspark_kafka_log.scan import Scan  # noqa: E402
from pyspark_kafka_log.task_reader import read_split  # noqa: E402
from tests.support.record_batches import record_batches  # noqa: E402

FILES = sorted(path.relative_to(VECTORS).as_posix()[:-4] for path in VECTORS.glob("*/*.log"))
TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


def segment(path: Path) -> Segment:
    (partition,) = discover(path)
    (found,) = partition.segments
    return found


def table(
    source: Path | Split | list[Split], columns: Any = DEFAULT_COLUMNS, **options: Any
) -> Any:
    """All rows of a file, or of splits."""
    columns = tuple(columns)
    slices: list[Any] = [segment(source)] if isinstance(source, Path) else []
    slices = slices or (source if isinstance(source, list) else [source])
    unit = options.get("timestamp_unit", "us")
    found = list(record_batches(slices, columns, **options))
    return pa.Table.from_batches(found, schema(columns, timestamp_unit=unit))


def values(source: Any, **options: Any) -> list[bytes | None]:
    found: list[bytes | None] = table(source, ["value"], **options).column("value").to_pylist()
    return found


# ---------------------------------------------------------------- what the reference reads


def expected(name: str) -> tuple[list[dict[str, Any]], bool]:
    """(rows that Apache Kafka's reader gives for a file, was the file without any fault?)."""
    rows: list[dict[str, Any]] = []
    whole = True
    head: dict[str, Any] = {}
    for line in (VECTORS / f"{name}.expected.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["type"] == "batch":
            head = found
            whole = whole and found["isValid"] and not found.get("errors")
        elif found["type"] == "record":
            whole = whole and "crcError" not in found
            if not head["isControl"]:
                rows.append(row_of(head, found))
        elif found["type"] == "end":
            whole = whole and found["stop"] != "error"
    return rows, whole


def row_of(head: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    def data(text: str | None) -> bytes | None:
        return None if text is None else base64.b64decode(text)

    return {
        "key": data(record["key"]),
        "value": data(record["value"]),
        "offset": record["offset"],
        "timestamp": record["timestamp"],
        "timestampType": TYPES[head["timestampType"]],
        "headers": [{"key": k, "value": data(v)} for k, v in record["headers"]] or None,
        "baseOffset": head["baseOffset"],
        "position": head["position"],
        "magic": head["magic"],
        "compression": head["compression"],
        "producerId": head["producerId"],
        "producerEpoch": head["producerEpoch"],
        "sequence": record["sequence"],
        "partitionLeaderEpoch": head["partitionLeaderEpoch"],
        "isTransactional": head["isTransactional"],
    }


def is_deep(name: str) -> bool:
    first = (VECTORS / f"{name}.expected.jsonl").open(encoding="utf-8").readline()
    return bool(json.loads(first)["mode"] == "deep")


NOT_AS_THE_REFERENCE = {
    "features/v2-empty-compressed-attr",  # it fails on a batch that holds no records
    "malformed/v1-gzip-inner-size-huge",  # it runs out of memory
}


ZEROS = {f"truncated/v2-zero-tail-{size}" for size in (61, 4096, 65536)}
"""At the end of these are zeros, as in segments that are made longer in advance: an error for the reference, but not for us."""


UNKNOWN_VERSIONS = {"malformed/v2-magic-3", "malformed/v2-magic-127"}
"""Kafka's reader of files does not look at the magic byte; its consumer does, and so do we."""


@pytest.mark.share(6, ci=3)
@pytest.mark.parametrize(
    "name", [name for name in FILES if is_deep(name) and name not in NOT_AS_THE_REFERENCE]
)
def test_rows_are_those_of_apache_kafka(name: str) -> None:
    rows, whole = expected(name)
    path = VECTORS / f"{name}.log"
    columns = list(rows[0]) if rows else ["offset"]
    options: dict[str, Any] = {"timestamp_unit": "ms", "batch_rows": 7}
    found = table(path, columns, on_damage="keep", **options)
    if "timestamp" in columns:
        at = found.schema.get_field_index("timestamp")
        found = found.set_column(at, "timestamp", found.column(at).cast(pa.int64()))
    assert found.to_pylist() == rows
    if (whole and name not in UNKNOWN_VERSIONS) or name in ZEROS:
        assert table(path, columns, **options).num_rows == len(rows)
    else:
        with pytest.raises(CodecError) as caught:
            table(path, columns, **options)
        assert caught.value.where.file == str(path)
        assert caught.value.where.position is not None
        assert str(path) in str(caught.value)


def test_the_whole_schema() -> None:
    path = VECTORS / "features" / "v2-lz4-headers.log"
    found = table(path, COLUMNS)
    assert found.schema.equals(schema(COLUMNS), check_metadata=True)
    assert all(field.nullable for field in found.schema)
    assert set(COLUMNS) == {*DEFAULT_COLUMNS, *METADATA_COLUMNS}
    assert found.column("segment").unique().to_pylist() == [str(path)]
    assert found.column("topic").unique().to_pylist() == ["v2-lz4-headers"]


# ---------------------------------------------------------------- which rows


def test_control_records_come_on_request(directory: Path) -> None:
    path = vector(directory, "t", "control/txn-flow")
    assert table(path, ["controlType"]).column(0).to_pylist() == [None] * 10
    found = table(path, ["offset", "isControl", "controlType"], control_records=True)
    markers = [row for row in found.to_pylist() if row["isControl"]]
    assert [(row["offset"], row["controlType"]) for row in markers] == [
        (9, "COMMIT"),
        (10, "ABORT"),
    ]


def without(*aborted: tuple[int, int, int]) -> RowSelection:
    return RowSelection(aborted=Aborted(aborted), control_records=False)


def test_aborted_transactions_are_left_out(directory: Path) -> None:
    found = segment(vector(directory, "t", "control/txn-flow"))
    kept = table(Split(found, rows=without((2, 3, 10))), ["offset"]).column(0).to_pylist()
    assert kept == [0, 1, 2, 7, 8, 11]
    assert table(Split(found, rows=without((2, 11, 20))), ["offset"]).num_rows == 10


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    first=st.none() | st.integers(0, 45),
    end=st.none() | st.integers(0, 45),
    rows=st.integers(1, 9),
)
def test_offsets_are_a_filter(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    first: int | None,
    end: int | None,
    rows: int,
) -> None:
    path = tmp_path_factory.mktemp("offsets") / "a.log"
    batches, base = [], 0
    for count in counts:
        batches.append(batch(base, [b"v"] * count))
        base += count
    path.write_bytes(build(*batches))
    part = Split(segment(path), rows=RowSelection((first, end), control_records=False))
    found = table(part, ["offset"], batch_rows=rows).column(0)
    wanted = range(max(first or 0, 0), base if end is None else min(end, base))
    assert found.to_pylist() == list(wanted)
    assert all(len(chunk) <= rows for chunk in found.chunks)


def test_bytes_after_the_end_offset_are_not_read(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(3, 2) + b"\xff" * 100)
    part = Split(segment(path), rows=RowSelection((None, 3)))
    assert table(part, ["offset"]).num_rows == 3


# ---------------------------------------------------------------- bounds


def test_rows_and_bytes_are_bounded(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(50, 4, pad=100))
    by_rows = list(record_batches([segment(path)], ["offset", "value"], batch_rows=16))
    assert [b.num_rows for b in by_rows] == [16] * 12 + [8]
    by_bytes = list(record_batches([segment(path)], ["value"], batch_bytes=1100))
    assert sum(b.num_rows for b in by_bytes) == 200
    assert max(b.nbytes for b in by_bytes) < 2 * 1100
    assert max(b.num_rows for b in by_bytes) > 5
    one = list(record_batches([segment(path)], ["value"], batch_bytes=1))
    assert [b.num_rows for b in one] == [1] * 200


@pytest.mark.parametrize(
    "options", [{"batch_rows": 0}, {"batch_bytes": 0}, {"batch_bytes": 1 << 31}]
)
def test_bounds_have_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} is"):
        list(record_batches([], **options))


def test_the_limit_of_decompressed_bytes_holds() -> None:
    path = VECTORS / "large" / "v2-lz4-8mib-zeros.log"
    with pytest.raises(LimitError, match=str(path)):
        table(path, limits=Limits(decompressed=1 << 20))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(directory: Path) -> None:
    one = build(batch(0, [b"%d" % i for i in range(20)], pad=5000))
    copies = (one if i == 0 else (20 * i).to_bytes(8, "big") + one[8:] for i in range(200))
    path = write(directory, "t", 0, 0, b"".join(copies))
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    try:
        rows = 0
        for found in record_batches(
            [segment(path)], ["offset", "value"], batch_bytes=1 << 20, engine="construct"
        ):
            rows += found.num_rows
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 4000
    assert peak < 6_000_000


def test_a_batch_of_the_log_is_held_not_the_file(directory: Path) -> None:
    """The first rows come before the end of the file is looked at."""
    path = write(directory, "t", 0, 0, numbered(20, 3) + b"\xff" * 100)
    stream = record_batches([segment(path)], ["offset"], batch_rows=10)
    assert next(stream).num_rows == 10


# ---------------------------------------------------------------- damage


@pytest.fixture
def damaged(directory: Path) -> Path:
    """Three batches of three records; a value in the second one is not what its checksum says."""
    good = numbered(3, 3, pad=10)
    size = len(good) // 3
    return write(directory, "t", 0, 0, flipped(good, 2 * size - 5))


def test_raise_names_file_byte_and_field(damaged: Path) -> None:
    with pytest.raises(ChecksumError) as caught:
        table(damaged)
    where = caught.value.where
    size = damaged.stat().st_size // 3
    assert (where.file, where.position, where.path) == (str(damaged), size + 17, "crc")
    assert "record_batch.yaml" in str(caught.value)


def test_drop_leaves_out_the_batch(damaged: Path) -> None:
    kept = [b"%d.........." % i for i in (0, 1, 2, 6, 7, 8)]
    assert values(damaged, on_damage="drop") == kept
    assert values(damaged, on_damage="drop", policy="salvage") == kept


def test_keep_keeps_what_can_be_read(damaged: Path) -> None:
    assert len(values(damaged, on_damage="keep")) == 9
    assert len(values(damaged, on_damage="keep", policy="salvage")) == 9
    columns = ["value", "offset", "topic", "position", "problem"]
    size = damaged.stat().st_size // 3
    rows = table(damaged, columns, on_damage="keep").to_pylist()
    assert [row["problem"] is not None for row in rows] == [False] * 3 + [True] * 3 + [False] * 3
    assert table(damaged, columns, on_damage="keep", policy="salvage").to_pylist() == rows
    data = bytearray(damaged.read_bytes())
    data[size + 61] = 1  # no length that a record can have
    damaged.write_bytes(data)
    lost = table(damaged, columns, on_damage="keep", policy="salvage").to_pylist()
    assert [row["offset"] for row in lost] == [0, 1, 2, 6, 7, 8, None]
    assert (lost[-1]["topic"], lost[-1]["position"], lost[-1]["value"]) == ("t", size, None)
    assert f"bytes {size} to {2 * size} are lost" in lost[-1]["problem"]
    assert table(damaged, ["offset"], on_damage="keep", policy="salvage").num_rows == 6


def test_records_before_the_damage_in_a_batch(directory: Path) -> None:
    path = vector(directory, "t", "malformed/v2-gzip-truncated")
    rows = table(path, ["offset", "problem"], on_damage="keep").to_pylist()
    said = [row for row in rows if row["problem"]]
    assert said
    assert all("byte" in row["problem"] for row in said)
    dropped = table(path, ["offset"], on_damage="drop").column(0).to_pylist()
    assert not {row["offset"] for row in said} & set(dropped)
    assert 500 in dropped
    assert 900 in dropped


def test_garbage_between_batches(directory: Path) -> None:
    half = numbered(2, 1), build(batch(7, [b"after"]))
    path = write(directory, "t", 0, 0, half[0] + b"\xff" * 50 + half[1])
    with pytest.raises(CodecError, match=f"message_size, byte {len(half[0]) + 8} of"):
        table(path)
    assert values(path, on_damage="drop") == [b"0", b"1"]
    assert values(path, on_damage="drop", policy="salvage") == [b"0", b"1", b"after"]
    said = table(path, ["offset", "problem"], on_damage="keep").to_pylist()[-1]
    assert said["offset"] is None
    assert "the rest is not read" in said["problem"]


def test_an_unfinished_batch_at_the_end_is_no_damage(directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2)[:-5])
    assert values(path) == [b"0", b"1"]
    with pytest.raises(CodecError, match="not a complete batch"):
        table(path, policy="strict")


@pytest.mark.parametrize(
    ("policy", "on_damage"), [("strict", "keep"), ("strict", "drop"), ("salvage", "raise")]
)
def test_policies_that_do_not_go_with_it(policy: str, on_damage: Any) -> None:
    with pytest.raises(ValueError, match=f"the policy {policy}"):
        list(record_batches([], policy=policy, on_damage=on_damage))


def test_an_unknown_column_is_an_error_before_any_file_is_read() -> None:
    with pytest.raises(ValueError, match="there is no column 'ofset'; known: key, value"):
        next(read_split(Split(Segment(Path("nowhere"), "t", 0, 0, 0)), Scan(columns=("ofset",))))


# ---------------------------------------------------------------- timestamps


@pytest.fixture
def late(directory: Path) -> Path:
    """Records at the last millisecond that microseconds hold, and one after it."""
    one = batch(0, [b"fits", b"does not"], base_timestamp=LARGEST, max_timestamp=LARGEST + 1)
    return write(directory, "t", 0, 0, build(one, batch(2, [b"after"])))


def test_a_timestamp_that_does_not_fit(late: Path) -> None:
    with pytest.raises(ValueRefused, match=rf"{LARGEST + 1} ms of offset 1 .*timestamp"):
        table(late)
    kept = table(late, ["timestamp"], on_damage="keep").column(0).cast(pa.int64()).to_pylist()
    assert kept == [LARGEST * 1000, None, TIME * 1000]
    assert values(late, on_damage="keep") == [b"fits", b"does not", b"after"]
    assert table(late, on_damage="drop").column("value").to_pylist() == [b"fits", b"after"]


def test_a_timestamp_that_is_not_asked_for_may_be_anything(late: Path) -> None:
    assert values(late) == [b"fits", b"does not", b"after"]
    assert values(late, on_damage="drop") == [b"fits", b"does not", b"after"]


def test_milliseconds_always_fit(late: Path) -> None:
    found = table(late, ["timestamp"], timestamp_unit="ms")
    assert found.schema.field(0).type == pa.timestamp("ms", "UTC")
    assert found.column(0).cast(pa.int64()).to_pylist() == [LARGEST, LARGEST + 1, TIME]


def test_policies_that_contradict_on_damage_are_named() -> None:
    with pytest.raises(ValueError, match=r"^the policy salvage continues after damage"):
        Scan(policy=Policy.SALVAGE, on_damage="raise")
