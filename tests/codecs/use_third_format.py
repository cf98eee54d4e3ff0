"""Reads and writes batches of a third format, next to those of the others, with everything that there is.

    python -m tests.codecs.use_third_format DIRECTORY [spark]
    python -m tests.codecs.use_third_format old         what is read of the files that there are

Runs in a process of its own, with the codecs of the tree in ``tests.codecs.third_format``.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import redirect_stdout
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pyarrow as pa
from crc32c import crc32c

from codecgen.runtime.arrow.decoder import load_numpy_reader
from codecgen.runtime.errors import ChecksumError
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.records import RECORDS
from kafka_log import SegmentReader, discover, encode, read_table, scan_batches, write_segment
from kafka_log.cli import main as kafka_log
from kafka_log.disk.transactions import Transaction, transactions
from kafka_log.report.json_dump import objects
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.columnar import BatchScanner, Scanner
from kafka_log.segment.kernels import Engine
from kafka_log.tables.splits import record_batches
from tests.arrow.rows import unpacked
from tests.codecs.third_format import MAGIC
from tests.paths import SAMPLES, VECTORS

TIME = 1_700_000_000_000
ROWS = 150
PARTS = [(0, "none"), (MAGIC, "none"), (1, "gzip"), (2, "zstd"), (MAGIC, "lz4"), (MAGIC, "zstd")]
PARTS += [(0, "snappy"), (2, "none"), (MAGIC, "gzip"), (1, "none"), (MAGIC, "snappy")]
ALL = [column.name for column in RECORDS.columns]
ENGINES: tuple[Engine, ...] = ("construct", "arrow")
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
SAMPLE_ROWS = 28  # committed records in the sample transactions-0


def rows(first: int, magic: int) -> pa.Table:
    offsets = range(first, first + ROWS)
    columns: dict[str, Any] = {
        "offset": pa.array(offsets),
        "key": [None if i % 5 == 0 else b"k%d" % i for i in offsets],
        "value": [None if i % 7 == 0 else b"v" * (i % 300) for i in offsets],
    }
    if magic:
        columns["timestamp"] = pa.array([TIME + i for i in offsets], pa.timestamp("ms", "UTC"))
    if magic >= 2:
        pairs = [[{"key": "h", "value": b"%d" % i}] if i % 3 else [] for i in offsets]
        struct = pa.struct([("key", pa.string()), ("value", pa.binary())])
        columns["headers"] = pa.array(pairs, pa.list_(struct))
    return pa.table(columns)


def written(directory: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A segment with all formats and codecs in turn, and what it holds."""
    path = directory / "mixed-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, expected = b"", []
    for i, (magic, codec) in enumerate(PARTS):
        table = rows(i * ROWS, magic)
        data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=2000))
        expected += [row | {"magic": magic} for row in table.drop(["offset"]).to_pylist()]
    path.write_bytes(data)
    return path, expected


def reads(path: Path, expected: list[dict[str, Any]]) -> None:
    """All engines read the same, and the fast ones leave nothing to the reference codecs."""
    batches = list(SegmentReader(path, policy="strict"))
    records = [(b.magic, r.offset, r.key, r.value) for b in batches for r in b.records]
    assert records == [
        (row["magic"], i, row["key"], row["value"]) for i, row in enumerate(expected)
    ]
    tables = [unpack(Scanner(path, ALL, "strict", engine=engine)) for engine in ENGINES]
    numpy = Scanner(path, ALL, "strict", engine="arrow")
    numpy.kernels = load_numpy_reader(RECORDS)
    tables.append(unpack(numpy))
    assert numpy.fallbacks == 0
    assert tables[0] == tables[1] == tables[2]
    assert [row["key"] for row in tables[0]] == [row["key"] for row in expected]
    fast = Scanner(path, engine="arrow")
    assert sum(batch.num_rows for batch in fast) == len(expected)
    assert fast.fallbacks == 0
    headers = [scan_batches(path, engine=engine).read_all() for engine in ENGINES]
    assert headers[0].equals(headers[1])
    assert headers[0].num_rows == len(batches)
    third = [b for b in batches if b.magic == MAGIC]
    assert {b.compression for b in third} == {"none", "gzip", "snappy", "lz4", "zstd"}
    small = BatchScanner(path, engine="arrow", chunk_bytes=40)
    assert sum(batch.num_rows for batch in small) == len(batches)
    some = read_table(path, ["offset"], offsets=(ROWS + 3, 5 * ROWS - 1))
    assert some.column("offset").to_pylist() == list(range(ROWS + 3, 5 * ROWS - 1))


def unpack(scanner: Scanner) -> list[dict[str, Any]]:
    return [row for batch in scanner for row in unpacked(batch)]


def shows_columns(path: Path) -> None:
    """Columns that were added to the views are everywhere: those of batches, and those of records."""
    if "timestamp_delta" not in ALL:
        return
    tables = [read_table(path, ["offset", "timestamp_delta"], engine=e) for e in ENGINES]
    assert tables[0].equals(tables[1])
    third = sum(ROWS for magic, _ in PARTS if magic == MAGIC)
    assert tables[0].column("timestamp_delta").null_count == tables[0].num_rows - third
    headers = [scan_batches(path, ["topic_epoch"], engine=e).read_all() for e in ENGINES]
    assert headers[0].equals(headers[1])
    assert set(headers[0].column("topic_epoch").to_pylist()) == {None, -1}
    [partition] = discover(path)
    columns = ("offset", "timestampDelta")
    for engine in ENGINES:
        rows = record_batches(partition.segments, columns, engine=engine)
        found = pa.Table.from_batches(rows).to_pydict()
        assert list(found.values()) == list(tables[0].to_pydict().values())
    batches = zip(SegmentReader(path), BlockReader(path, engine="arrow"), strict=True)
    assert all(one == other for one, other in batches)


def writes(path: Path, directory: Path) -> None:
    """A segment is written from a table with the column ``magic``, and is the same again."""
    table = read_table(path, ALL)
    copy = directory / "copy.log"
    write_segment(copy, table)
    assert read_table(copy, ALL).drop(["position"]).equals(table.drop(["position"]))
    entry = next(b for b in SegmentReader(copy) if b.magic == MAGIC)
    parsed = LOG_ENTRY.parse(copy.read_bytes()[entry.position : entry.position + entry.size])
    assert parsed.topic_epoch == -1
    assert all(record.sum > 0 for record in parsed.records)


def prints(path: Path) -> None:
    """``stat`` and ``dump`` say the same with each engine."""
    for command in (
        ["stat", "--output", "jsonl"],
        ["stat", "--deep"],
        ["dump", "--output", "vectors"],
    ):
        found = []
        for engine in ENGINES:
            out = TextIOWrapper(BytesIO(), "utf-8")
            with redirect_stdout(out):
                assert kafka_log([*command, str(path), "--engine", engine]) == 0
            out.seek(0)
            found.append(out.read())
        assert found[0] == found[1]
        if command == ["stat", "--output", "jsonl"]:
            assert json.loads(found[0])["magics"] == "v0 v1 v2 v3"


def survives(path: Path, directory: Path) -> None:
    """Damage costs nothing but the batch that it is in, which is told; what follows is found again."""
    whole = list(SegmentReader(path))
    third = [i for i, b in enumerate(whole) if b.magic == MAGIC]
    at = third[len(third) // 2]
    data = bytearray(path.read_bytes())
    data[whole[at].position + whole[at].size - 1] ^= 1  # in the records
    data[whole[at + 1].position + 8] ^= (
        0x40  # in the length: where the next one begins has to be found
    )
    damaged = directory / "damaged.log"
    damaged.write_bytes(data)
    for engine in ENGINES:
        hit = {r.offset for b in whole[at : at + 2] for r in b.records}
        good = [r.offset for b in whole for r in b.records if r.offset not in hit]
        scanner = Scanner(damaged, ["offset"], "salvage", engine=engine, on_damage="drop")
        assert [row["offset"] for row in unpack(scanner)] == good
        told = list(unpack(Scanner(damaged, ["offset", "damage"], "salvage", engine=engine)))
        assert [row["offset"] for row in told if row["damage"] is None] == good
        assert {row["offset"] for row in told if row["damage"] is not None} <= hit


def verifies_records(path: Path, directory: Path) -> None:
    """The checksum of a record is compared, whoever reads."""
    batch = next(b for b in SegmentReader(path) if b.magic == MAGIC and b.codec == 0)
    data = bytearray(path.read_bytes()[batch.position : batch.position + batch.size])
    layout = LOG_ENTRY.cases[MAGIC]
    data[-3] ^= 1  # a record's value or header
    stored, covered = layout.offset_of("crc"), layout.offset_of("attributes")
    data[stored : stored + 4] = crc32c(bytes(data[covered:])).to_bytes(4, "big")
    damaged = directory / "record.log"
    damaged.write_bytes(data)
    [found] = SegmentReader(damaged)
    assert found.is_valid
    wrong = [record.crc_error for record in found.records if record.crc_error is not None]
    assert [error.where.path for error in wrong] == [f"records[{len(found.records) - 1}].sum"]
    for engine in ENGINES:
        try:
            unpack(Scanner(damaged, engine=engine))
        except ChecksumError:
            continue
        raise AssertionError(f"{engine}: a wrong checksum passed")


def transactional(directory: Path) -> Path:
    """Transactions of two producers in the third format and the second: 1 is committed, 2 aborted."""
    path = directory / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, offset = b"", 0
    for magic, producer, key in (
        (MAGIC, 1, None),
        (2, 2, None),
        (MAGIC, 2, None),
        (MAGIC, 2, ABORT),
        (2, 1, None),
        (MAGIC, 1, COMMIT),
    ):
        count = 10 if key is None else 1
        table = pa.table(
            {
                "offset": pa.array(range(offset, offset + count)),
                "timestamp": pa.array([TIME] * count, pa.timestamp("ms", "UTC")),
                "key": [key or b"k"] * count,
                "value": [b"\0\0\0\0\0\0" if key else b"%d" % producer] * count,
            }
        )
        given = {"is_transactional": True, "is_control": key is not None, "producer_epoch": 0}
        data += b"".join(encode(table, magic=magic, producer_id=producer, **given))
        offset += count
    path.write_bytes(data)
    return path


def knows_transactions(path: Path) -> None:
    [partition] = discover(path.parent)
    found = transactions(partition.segments)
    assert found.aborted == (Transaction(2, 10, 30),)
    assert found.last_stable_offset is None


def spark_reads(mixed: Path, orders: Path, count: int) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("bindAddress", "host"):
        builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
    spark = builder.getOrCreate()
    try:
        for engine in ("construct", "arrow"):
            read = spark.read.format("kafka-log").option("engine", engine)
            assert read.load(str(mixed.parent)).count() == count
            committed = read.option("isolationLevel", "read_committed")
            values = committed.load(str(orders.parent)).toArrow().column("value").to_pylist()
            assert values == [b"1"] * 20
            small = committed.option("splitBytes", 300).load(str(orders.parent))
            assert small.count() == 20
            for broker in sorted(SAMPLES.glob("kafka-*")):
                sample = broker / "transactions-0"
                if sample.exists():
                    whole = committed.option("splitBytes", 32 << 20).load(str(sample))
                    assert whole.count() == SAMPLE_ROWS
    finally:
        spark.stop()


def read_before() -> dict[str, str]:
    """What is read from every sample and every reference segment, but those whose magic bytes are of no format: digests."""
    out = {}
    for path in sorted([*VECTORS.rglob("*.log"), *SAMPLES.rglob("*.log")]):
        if path.stem in ("v2-magic-3", "v2-magic-127"):  # Kafka takes these for its newest format
            continue
        for reader in (SegmentReader(path), BlockReader(path, policy="strict", engine="arrow")):
            text = json.dumps(list(objects(reader, records=False)))
            text = re.sub(r"\.yaml:[0-9]+", "", text)  # errors name lines
            name = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
            out[f"{name} {type(reader).__name__}"] = sha256(text.encode()).hexdigest()
    return out


def main() -> None:
    if sys.argv[1:] == ["old"]:
        print(json.dumps(read_before()))
        return
    directory = Path(sys.argv[1])
    mixed, expected = written(directory)
    reads(mixed, expected)
    shows_columns(mixed)
    writes(mixed, directory)
    prints(mixed)
    survives(mixed, directory)
    verifies_records(mixed, directory)
    orders = transactional(directory)
    knows_transactions(orders)
    if "spark" in sys.argv[2:]:
        spark_reads(mixed, orders, len(expected))
    print("all of it")


if __name__ == "__main__":
    main()
