"""Reads batches with two compressed sections, next to those of versions 0 to 2, with everything that there is.

    python -m tests.codecs.use_two_sections DIRECTORY [spark]

Runs in a process of its own, with the codecs of a tree to which ``tests.codecs.two_sections`` has added the version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codecgen.runtime.arrow.decoder import load_numpy_reader
from codecgen.runtime.errors import CompressionError
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.records import RECORDS
from kafka_log import SegmentReader, encode, read_table, scan_batches, write_log
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Batch
from kafka_log.segment.scanner import Scanner
from kafka_log.write.rewrite.conversion import target
from tests.codecs.two_sections import MAGIC
from tests.codecs.use_random_format import rows, said
from tests.support.scanned_rows import unpacked

TIME = 1_700_000_000_000
ROWS = 150
SPLIT: Any = LOG_ENTRY.cases[MAGIC]
PARTS: list[tuple[int, str, str]] = [
    (0, "", "none"), (MAGIC, "none", "none"), (1, "", "gzip"), (MAGIC, "none", "gzip"), (2, "", "zstd"),
    (MAGIC, "lz4", "zstd"), (MAGIC, "snappy", "none"), (2, "", "none"), (MAGIC, "zstd", "lz4"), (MAGIC, "gzip", "snappy"),
]  # fmt: skip
ENGINES: tuple[Engine, ...] = ("construct", "arrow")


def split(first: int, key_codec: str, value_codec: str, **more: Any) -> bytes:
    """A batch of the version with the records that ``rows`` has for version 2."""
    table = rows(first, 2).to_pylist()
    attributes = {"key_compression": key_codec, "value_compression": value_codec}
    keys = [
        {"timestamp_delta": i, "key": row["key"], "headers": row["headers"]}
        for i, row in enumerate(table)
    ]
    values = [{"value": row["value"]} for row in table]
    found: bytes = SPLIT.build(
        {
            "base_offset": first,
            "base_timestamp": TIME + first,
            "attributes": attributes | more.pop("attributes", {}),
            "record_keys": keys,
            "record_values": values,
        }
        | more
    )
    return found


def written(directory: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A segment with all formats in turn, and what it holds."""
    path = directory / "logs" / "mixed-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    data, expected = b"", []
    for i, (magic, key_codec, codec) in enumerate(PARTS):
        if magic == MAGIC:
            data += split(i * ROWS, key_codec, codec)
        else:
            table = rows(i * ROWS, magic)
            data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=2000))
        expected += [row | {"magic": magic} for row in rows(i * ROWS, min(magic, 2)).to_pylist()]
    path.write_bytes(data)
    return path, expected


def unpack(scanner: Scanner) -> list[dict[str, Any]]:
    return [row for batch in scanner for row in unpacked(batch)]


def reads(path: Path, expected: list[dict[str, Any]]) -> None:
    """All engines read the same. The kernels leave the batches of the version, and no others, to the reference codecs."""
    batches = list(SegmentReader(path, policy="strict"))
    found = [(b.magic, r.offset, r.key, r.value) for b in batches for r in b.records]
    assert found == [(row["magic"], row["offset"], row["key"], row["value"]) for row in expected]
    names = [column.name for column in RECORDS.columns]
    scanners = [Scanner(path, names, "strict", engine=engine) for engine in ENGINES]
    scanners.append(Scanner(path, names, "strict", engine="arrow"))
    scanners[-1].kernels = load_numpy_reader(RECORDS)
    tables = [unpack(scanner) for scanner in scanners]
    assert tables[0] == tables[1] == tables[2]
    of_version = [row for row in tables[0] if row["magic"] == MAGIC]
    assert [[h["key"] for h in row["headers"]] for row in of_version] == [
        [h["key"] for h in row["headers"]] for row in expected if row["magic"] == MAGIC
    ]
    third = [b for b in batches if b.magic == MAGIC]
    assert len(third) == sum(magic == MAGIC for magic, _, _ in PARTS)
    for scanner in scanners[1:]:
        assert scanner.fallbacks == len(third)
        assert scanner.bytes_read == path.stat().st_size  # nothing is read again
    headers = [scan_batches(path, engine=engine).read_all() for engine in ENGINES]
    assert headers[0].equals(headers[1]) and headers[0].num_rows == len(batches)
    for batch, data in ((b, path.read_bytes()[b.position : b.position + b.size]) for b in third):
        entry = LOG_ENTRY.parse(data)
        assert batch.section is not None
        assert batch.section[0] == entry.key_size + entry.value_size
        assert batch.section[1] > 0
    some = read_table(path, ["offset"], offsets=(ROWS + 3, 5 * ROWS - 1))
    assert some.column("offset").to_pylist() == [*range(ROWS + 3, 5 * ROWS - 1)]


def objects(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    lines = said(*arguments, "--format", "jsonl", code=code).splitlines()
    return [json.loads(line) for line in lines]


def commands(path: Path, expected: list[dict[str, Any]], directory: Path) -> None:
    """Each command reads the mix; those that would write the version say that it is only read."""
    logs = str(path.parent.parent)
    for deep in ([], ["--deep"]):
        found = objects("check", logs, *deep)
        assert {finding["severity"] for finding in found} == {"note"}
    dumped = objects("dump", logs)
    assert [row["offset"] for row in dumped] == [row["offset"] for row in expected]
    assert said("dump", logs, "--batches").count(f"magic: {MAGIC} ") == sum(
        magic == MAGIC for magic, _, _ in PARTS
    )
    (stat,) = objects("stat", logs)
    assert stat["records"] == len(expected) and f"v{MAGIC}" in str(stat["magics"])
    (keys,) = objects("keys", logs)
    assert keys["records"] == len(expected)
    said("export", logs, "--topic", "mixed", "--format", "parquet", "--out", str(directory / "export"))  # fmt: skip
    (exported,) = (directory / "export").rglob("*.parquet")
    table = pq.read_table(exported)
    assert table.column("value").to_pylist() == [row["value"] for row in expected]
    for batch in SegmentReader(path):
        if batch.magic == MAGIC:
            shown = said("hexdump", str(path), "--byte", str(batch.position))
            assert "record_keys[0].key" in shown and "record_values[0].value" in shown
            assert f"offset {batch.base_offset}" in shown
    reindexed = directory / "indexed"
    said("reindex", logs, "--out", str(reindexed))
    jobs = {
        "kept": ["convert"],
        "gzip": ["convert", "--codec", "gzip"],
        "salvaged": ["salvage"],
        "flat": ["salvage", "--flatten"],
        "cut": ["cut", "--offsets", "0:1000000"],
    }
    values = [row["value"] for row in expected]
    for name, (job, *options) in jobs.items():
        said(job, logs, *options, "--out", str(directory / name))
        assert read_table(directory / name / "mixed-0", ["value"]).column("value").to_pylist() == values  # fmt: skip
        verdicts = {row["verdict"] for row in objects("diff", logs, str(directory / name))}
        assert verdicts and verdicts <= {"same", "batches"}
    for name in ("salvaged", "cut"):
        assert (directory / name / "mixed-0" / path.name).read_bytes() == path.read_bytes()
    (gzip,) = (directory / "gzip" / "mixed-0").glob("*.log")
    assert {b.compression for b in SegmentReader(gzip) if b.magic == MAGIC} == {"gzip"}
    older = said("convert", logs, "--magic", "2", "--out", str(directory / "two"), code=1)
    assert "refused" in older
    new = directory / "new"
    said("convert", logs, "--magic", str(MAGIC), "--out", str(new), code=2)
    only_read = f"in version {MAGIC}, which is only read"
    with pytest.raises(ValueError, match=only_read):
        target(None, None, MAGIC)
    with pytest.raises(ValueError, match=only_read):
        encode(rows(0, 2), magic=MAGIC)
    table = rows(0, 2).drop(["offset"])
    with pytest.raises(ValueError, match=only_read):
        write_log(new, table, topic="t", magic=MAGIC)
    assert not new.exists()


def damaged(path: Path, directory: Path) -> None:
    """Damage in one section is located in it, under each policy. Records before it are read; salvage writes them."""
    whole = split(0, "gzip", "gzip") + split(ROWS, "gzip", "gzip")
    (first, _) = SegmentReader(_file(directory / "whole", whole))
    entry = LOG_ENTRY.parse(whole[: first.size])
    start = SPLIT.leading_size
    for section, at, begins in (
        ("record_keys", start + entry.key_size - 6, start),
        ("record_values", start + entry.key_size + entry.value_size - 6, start + entry.key_size),
    ):
        data = bytearray(whole)
        data[at] ^= 0xFF
        crc, covered = SPLIT.offset_of("crc"), SPLIT.offset_of("attributes")
        for is_mended in (False, True):
            if is_mended:
                good = SPLIT.by_name["crc"].checksum(bytes(data[covered : first.size]))
                data[crc : crc + 4] = good.to_bytes(4, "big")
            logs = directory / f"{section}-{is_mended}"
            file = _file(logs, bytes(data))
            for engine in ENGINES:
                scanner = Scanner(file, ["offset", "value"], "salvage", engine=engine)
                there = [row["offset"] for row in unpack(scanner)]
                assert set(range(ROWS, 2 * ROWS)) <= set(there), (section, is_mended, engine)
            (batch, after) = SegmentReader(file, policy="kafka")
            assert after.position == first.size and len(after.records) == ROWS
            problem = _compression_problem(batch)
            assert problem.where.path is not None and problem.where.path.startswith(section)
            assert problem.where.position == begins
            assert problem.where.stream_position is not None
            found = objects("check", str(logs), "--deep", code=1)
            errors = [f for f in found if f["severity"] == "error"]
            if is_mended:
                assert any(section in json.dumps(finding) for finding in errors), errors
            else:
                # A broker that builds a missing index truncates the segment at its damage.
                codes = {finding["code"] for finding in errors} - {"index_missing"}
                assert codes == {"batch_checksum"}
            out = directory / f"{logs.name}-salvaged"
            report = objects("salvage", str(logs), "--keep-damaged", "--out", str(out), code=1)
            written_in_2 = [row for row in report if "is only read" in (row["reason"] or "")]
            assert {row["what"] for row in written_in_2} == ({"lost"} if batch.records else set())
            kept = read_table(out / "t-0", ["offset", "value"])
            expected = [*(r.offset for r in batch.records), *range(ROWS, 2 * ROWS)]
            assert kept.column("offset").to_pylist() == expected, (section, is_mended)


def _file(logs: Path, data: bytes) -> Path:
    path = logs / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def _compression_problem(batch: Batch) -> CompressionError:
    errors = [problem.error for problem in batch.problems]
    (found,) = [error for error in errors if isinstance(error, CompressionError)]
    return found


def transactions(directory: Path) -> None:
    """Aborted records of the version are hidden by a marker of version 2."""
    logs, data, at = directory / "orders", b"", 0
    for producer, marker in ((1, 0), (2, 1)):
        more = {
            "producer_id": producer,
            "producer_epoch": 0,
            "base_sequence": 0,
            "attributes": {"is_transactional": True},
        }
        data += split(at, "lz4", "lz4", **more)
        end = pa.table(
            {
                "offset": [at + ROWS],
                "key": [b"\0\0\0" + bytes([marker])],
                "value": [b"\0\0\0\0\0\0"],
                "timestamp": pa.array([TIME], pa.timestamp("ms", "UTC")),
                "producer_id": [producer],
                "producer_epoch": pa.array([0], pa.int16()),
                "is_transactional": [True],
                "is_control": [True],
            }
        )
        data += b"".join(encode(end, magic=2, codec="none"))
        at += ROWS + 1
    _file(logs, data)
    found = objects("dump", str(logs), "--isolation", "read_committed")
    assert [row["offset"] for row in found] == [*range(ROWS + 1, 2 * ROWS + 1)]
    assert len(objects("txn", str(logs))) >= 1
    # The file was written without indexes: a broker builds them.
    assert {f["code"] for f in objects("check", str(logs))} == {
        "index_missing",
        "timeindex_missing",
    }


def spark_reads(path: Path, expected: list[dict[str, Any]]) -> None:
    """Both sources read the mix by all engines, whole and in splits."""
    from pyspark.sql import SparkSession

    from pyspark_kafka_log import DefaultSource
    from pyspark_kafka_log.connector import enable

    class PythonSource(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return "kafka-log-python"

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("bindAddress", "host"):
        builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(PythonSource)
        enable(spark)
        for source in ("kafka-log", "kafka-log-python"):
            for engine in ENGINES:
                for split_bytes in (1 << 20, 3000):
                    read = spark.read.format(source).option("engine", engine)
                    table = read.option("splitBytes", split_bytes).load(str(path.parent.parent))
                    found = table.select("offset", "key", "value").orderBy("offset").toArrow()
                    assert [tuple(row.values()) for row in found.to_pylist()] == [
                        (row["offset"], row["key"], row["value"]) for row in expected
                    ], (source, engine, split_bytes)
    finally:
        spark.stop()


def main() -> None:
    directory = Path(sys.argv[1])
    path, expected = written(directory)
    if "spark" in sys.argv[2:]:
        spark_reads(path, expected)
    else:
        reads(path, expected)
        commands(path, expected, directory)
        damaged(path, directory)
        transactions(directory)
    print("all of it")


if __name__ == "__main__":
    main()
