"""Reads and writes batches of a version that was drawn, next to those of the others, with everything that there is.

    python -m tests.codecs.use_random_format DIRECTORY [spark]
    python -m tests.codecs.use_random_format old         what is read of the files that there are

Runs in a process of its own, with the codecs of a tree to which ``tests.codecs.random_format`` has added a version.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from codecgen.runtime.arrow.decoder import load_numpy_reader
from codecgen.runtime.checksums import Crc
from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.records import RECORDS
from kafka_log import (
    SegmentReader,
    discover,
    encode,
    read_table,
    scan,
    scan_batches,
    write_log,
    write_segment,
)
from kafka_log.cli import COMMANDS
from kafka_log.cli import main as kafka_log
from kafka_log.inspect.dump.json_objects import segment_objects
from kafka_log.logs.partitions import Segment
from kafka_log.logs.transactions import AbortedTransaction, read_transactions
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import codec_label
from kafka_log.segment.repair.batch_repair import NoRepair, Repair
from kafka_log.segment.scanner import Scanner, header_scanner
from kafka_log.write.rewrite.repaired_copy import find_segment_repairs
from tests.codecs.random_format import MAGIC
from tests.paths import SAMPLES, VECTORS
from tests.support.browse_sites import Visitor, links
from tests.support.make_schema_registry_sample import SAMPLE as REGISTRY
from tests.support.record_batches import record_batches
from tests.support.scanned_rows import unpacked
from tests.support.unwritten_values import keeps_unwritten_values
from tests.support.writer_faults import refuses

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
        pairs = [[{"key": f"h{i % 4}", "value": b"%d" % i}] * (i % 3) for i in offsets]
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
    if RECORDS.numpy is not None:
        numpy = Scanner(path, ALL, "strict", engine="arrow")
        numpy.kernels = load_numpy_reader(RECORDS)
        tables.append(unpack(numpy))
        assert numpy.fallbacks == 0
    assert all(table == tables[0] for table in tables)
    assert [row["key"] for row in tables[0]] == [row["key"] for row in expected]
    fast = Scanner(path, engine="arrow")
    assert sum(batch.num_rows for batch in fast) == len(expected)
    assert fast.fallbacks == 0
    headers = [scan_batches(path, engine=engine).read_all() for engine in ENGINES]
    assert headers[0].equals(headers[1])
    assert headers[0].num_rows == len(batches)
    third = [b for b in batches if b.magic == MAGIC]
    assert {b.compression for b in third} == {"none", "gzip", "snappy", "lz4", "zstd"}
    small = header_scanner(path, engine="arrow", chunk_bytes=40)
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
    assert parsed.get("topic_epoch", -1) == -1


def prints(path: Path) -> None:
    """``stat`` and ``dump`` say the same with each engine."""
    for command in (
        ["stat", "--format", "jsonl"],
        ["stat", "--deep"],
        ["dump", "--format", "vectors"],
    ):
        found = []
        for engine in ENGINES:
            out = TextIOWrapper(BytesIO(), "utf-8")
            with redirect_stdout(out):
                assert kafka_log([*command, str(path), "--engine", engine]) == 0
            out.seek(0)
            found.append(out.read())
        assert found[0] == found[1]
        if command == ["stat", "--format", "jsonl"]:
            assert json.loads(found[0])["magics"] == "v0 v1 v2 v3"


def survives(path: Path, directory: Path) -> None:
    """Damage costs nothing but the batch that it is in, which is told; what follows is found again."""
    whole = list(SegmentReader(path))
    third = [i for i, b in enumerate(whole) if b.magic == MAGIC]
    at = third[len(third) // 2]
    data = bytearray(path.read_bytes())
    data[whole[at].position + whole[at].size - 1] ^= 1  # in the records
    length = LOG_ENTRY.cases[whole[at + 1].magic].length
    assert length is not None  # with another one, where the next batch begins has to be found
    data[whole[at + 1].position + length.offset] ^= 0x40
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


def is_repaired(path: Path, directory: Path) -> None:
    """One flipped bit is repaired by a linear checksum of 32 bits or more; another checksum says why it is not."""
    layout = LOG_ENTRY.cases[MAGIC]
    crc = layout.by_name["crc"]
    names_bits = isinstance(crc.algorithm, Crc) and crc.algorithm.width >= 32 and crc.mask is None
    whole = path.read_bytes()
    for batch in [b for b in SegmentReader(path) if b.magic == MAGIC][1:3]:
        data = bytearray(whole)
        data[batch.position + batch.size - 9] ^= 0x20
        damaged = directory / "bit.log"
        damaged.write_bytes(data)
        segment = Segment(damaged, "t", 0, 0, len(data), rolled=True)
        [found] = find_segment_repairs(segment, None)
        if not names_bits:
            assert isinstance(found, NoRepair) and found.reason, found
            continue
        assert isinstance(found, Repair) and found.probability is not None, found
        for edit in found.edits:
            data[edit.byte] = edit.new
        assert bytes(data) == whole and found.is_certain


def verifies_records(path: Path, directory: Path) -> None:
    """The checksum of a record is compared, whoever reads."""
    layout = LOG_ENTRY.cases[MAGIC]
    batch = next(b for b in SegmentReader(path) if b.magic == MAGIC and b.codec == 0)
    data = bytearray(path.read_bytes()[batch.position : batch.position + batch.size])
    trace = LOG_ENTRY.parse(bytes(data)).records[-1]
    if "sum" not in trace:
        return
    data[-1] ^= 1  # of the last record
    crc = layout.by_name["crc"]
    assert crc.checksum is not None
    at, covered = layout.offset_of("crc"), layout.offset_of(crc.covers[0][0])
    width = layout.offset_of(layout.fields[layout.fields.index(crc) + 1].name) - at
    data[at : at + width] = crc.checksum(bytes(data[covered:])).to_bytes(width, "big")
    damaged = directory / "record.log"
    damaged.write_bytes(data)
    [found] = SegmentReader(damaged)
    assert found.is_valid
    last = f"records[{batch.record_count - 1}]"
    wrong = [record.crc_error for record in found.records if record.crc_error is not None]
    told = [error.where.path or "" for error in wrong] + [
        p.error.where.path or "" for p in found.problems
    ]
    assert told and all(one.startswith(last) for one in told)
    for engine in ENGINES:
        try:
            unpack(Scanner(damaged, engine=engine))
        except CodecError:
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
                "sequence": pa.array(range(-1, 0) if key else range(offset, offset + count), "i4"),
            }
        )
        given = {"is_transactional": True, "is_control": key is not None, "producer_epoch": 0}
        data += b"".join(encode(table, magic=magic, producer_id=producer, **given))
        offset += count
    path.write_bytes(data)
    return path


def knows_transactions(path: Path) -> None:
    [partition] = discover(path.parent)
    found = read_transactions(partition.segments)
    assert found.aborted == (AbortedTransaction(2, 10, 30),)
    assert found.last_stable_offset is None


ASKED: set[str] = set()
"""The commands that read a log of the version in this process."""


def said(*command: str, code: int = 0) -> str:
    """What a command prints."""
    ASKED.add(command[0])
    out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            found = kafka_log(list(command))
        except SystemExit as stopped:  # arguments that there are not
            found = -1 if stopped.code is None else int(stopped.code)
    for stream in (out, err):
        stream.seek(0)
    text = out.read()
    assert found == code, f"{command}: {found}\n{text[-2000:]}{err.read()[-2000:]}"
    return text


def rows_of(*command: str, code: int = 0) -> list[dict[str, Any]]:
    """The rows that a command prints, without what says where and how large something is."""
    rows = map(json.loads, said(*command, "--format", "jsonl", code=code).splitlines())
    return [{n: v for n, v in row.items() if n not in PLACES and "bytes" not in n} for row in rows]


PLACES = {
    *(
        "directories",
        "directory",
        "path",
        "position",
        "size",
        "ratio",
        "magic",
        "magics",
        "crc",
        "duration_ms",
    ),
    *("smallest_batch", "mean_batch", "largest_batch", "attributes", "topic_epoch"),
}
"""What is said of where and how something is written; of columns with ``bytes`` in their names all."""


QUESTIONS = (
    *(
        ["ls"],
        ["stat"],
        ["stat", "--deep"],
        ["stat", "--by", "hour"],
        ["txn"],
        ["producers"],
        ["keys"],
    ),
    *(
        ["metadata"],
        ["groups"],
        ["groups", "--states"],
        ["coordinator", "group-classic"],
        ["dump", "--control-records"],
        ["dump", "--batches"],
    ),
)


def is_converted(directory: Path) -> Path:
    """The sample of a broker in the new version says what the broker's says, and so does a mix of both. The mix."""
    sample, converted, mixed = SAMPLES / "kafka-4.x", directory / "converted", directory / "mix"
    done = rows_of("convert", str(sample), "--magic", str(MAGIC), "--out", str(converted))
    done_to = {row["what"] for row in done}
    assert "converted" in done_to <= {"converted", "kept", "left out"}
    segments = [segment for partition in discover(converted) for segment in partition.segments]
    assert {b.magic for segment in segments for b in SegmentReader(segment.path)} == {MAGIC}
    shutil.copytree(sample, mixed)
    for path in sorted(mixed.glob("*/*.log")):
        other = converted / path.parent.name / path.name
        if path.stat().st_size and other.exists():
            path.write_bytes(_mixed(path, other))
            for end in (".index", ".timeindex"):  # positions are other ones
                path.with_suffix(end).unlink(missing_ok=True)
    for question in QUESTIONS:
        wanted = rows_of(*question, str(sample))
        assert wanted, question
        for place in (converted, mixed):
            found = rows_of(*question, str(place))
            other = [pair for pair in zip(wanted, found, strict=False) if pair[0] != pair[1]]
            assert found == wanted, (question, place, other[:1])
    query = "select topic, partition, count(*), sum(octet_length(value)) from records group by all order by all"
    wanted = rows_of("sql", str(sample), query)
    for place in (converted, mixed):
        assert rows_of("sql", str(place), query) == wanted
        assert "no problem" in said("overview", str(place))
    for place in (converted, mixed):
        found = said("check", str(place), "--deep", "--format", "jsonl").splitlines()
        serious = [f for f in map(json.loads, found) if f["severity"] != "note"]
        assert serious == [f for f in map(json.loads, said("check", str(sample), "--deep", "--format", "jsonl").splitlines()) if f["severity"] != "note"]  # fmt: skip
        verdicts = {row["verdict"] for row in rows_of("diff", str(sample), str(place))}
        assert "batches" in verdicts <= {"same", "batches"}, verdicts
    return mixed


def _mixed(path: Path, other: Path) -> bytes:
    """Batches of two files in turn. They have the same offsets."""
    pairs = zip(*([(b, p) for b in SegmentReader(p)] for p in (path, other)), strict=True)
    out = b""
    for i, pair in enumerate(pairs):
        batch, place = pair[i % 2]
        out += place.read_bytes()[batch.position : batch.position + batch.size]
    return out


def is_written_again(mixed: Path, directory: Path) -> None:
    """Whatever writes logs writes the mix, and leaves no record out."""
    rows = {p.name: _rows(p) for p in sorted(mixed.iterdir()) if p.is_dir()}

    def compare(out: Path, *others: str) -> None:
        for name, wanted in rows.items():
            if name not in ("__cluster_metadata-0", *others):
                assert _rows(out / name).equals(wanted), (out, name)

    jobs = {
        "salvaged": ["salvage"],
        "kept": ["convert"],
        "gzip": ["convert", "--codec", "gzip"],
        "newest": ["convert", "--codec", "zstd", "--level", "3", "--magic", str(MAGIC)],
        "cut": ["cut", "--offsets", "0:1000000"],
    }
    for name, (job, *options) in jobs.items():
        said(job, str(mixed), *options, "--out", str(directory / name))
        compare(directory / name)
    paths = sorted(mixed.glob("*/*.log"))
    assert len(paths) > 20
    for path in paths:
        for name in ("salvaged", "kept"):
            assert (
                directory / name / path.parent.name / path.name
            ).read_bytes() == path.read_bytes()
    said("merge", str(mixed), str(directory / "kept"), "--out", str(directory / "merged"))
    compare(directory / "merged", "trimmed-0")  # without what DeleteRecords deleted
    merged, kept = (scan(directory / name / "trimmed-0").read_all() for name in ("merged", "kept"))
    assert merged.equals(kept)
    said("report", str(mixed), "--out", str(directory / "report.html"))
    refused = said("convert", str(mixed), "--magic", "2", "--out", str(directory / "two"), code=1)
    assert "refused" in refused
    said("salvage", str(mixed), "--flatten", "--out", str(directory / "flat"))
    assert rows_of("txn", str(directory / "flat")) == []
    said("reindex", str(mixed), "--out", str(directory / "indexes"))
    for name in rows:
        shutil.copytree(
            directory / "indexes" / name, directory / "indexed" / name, dirs_exist_ok=True
        )
        for path in (mixed / name).glob("*.log"):
            shutil.copyfile(path, directory / "indexed" / name / path.name)
    found = map(
        json.loads, said("check", str(directory / "indexed"), "--format", "jsonl").splitlines()
    )
    assert [f for f in found if f["severity"] == "error"] == []
    said(
        "export",
        str(mixed),
        "--topic",
        "codecs",
        "--format",
        "parquet",
        "--out",
        str(directory / "export"),
    )
    count = sum(pq.read_metadata(p).num_rows for p in (directory / "export").rglob("*.parquet"))
    assert count == sum(t.num_rows for n, t in rows.items() if n.startswith("codecs-"))
    (first, *_) = sorted((mixed / "codecs-0").glob("*.log"))
    shown = [said("hexdump", str(first), "--byte", str(b.position)) for b in SegmentReader(first)]
    third = LOG_ENTRY.cases[MAGIC]
    own = "topic_epoch" if "topic_epoch" in third.by_name else f"{third.layout_name} at byte"
    assert 0 < sum(own in one for one in shown) < len(shown)
    again = directory / "again"
    table = rows["codecs-0"].select(["key", "value", "timestamp", "headers"])
    for _ in range(2):  # the second one is moved to other offsets
        write_log(again, table, topic="t", magic=MAGIC, codec="lz4")
    assert read_table(again / "t-0", ["value"]).column("value").to_pylist() == 2 * table.column("value").to_pylist()  # fmt: skip
    assert {b.magic for p in (again / "t-0").glob("*.log") for b in SegmentReader(p)} == {MAGIC}


def lists_schemas(directory: Path) -> None:
    """The schemas of a registry, and the topics that use them, are found in the new version too."""
    converted = directory / "registry"
    said("convert", str(REGISTRY), "--magic", str(MAGIC), "--out", str(converted))
    wanted = rows_of("schemas", str(REGISTRY))
    assert any(row["used_by"] for row in wanted)
    assert rows_of("schemas", str(converted)) == wanted


def follows(path: Path, directory: Path) -> None:
    """``dump --follow`` prints each record once while the log grows by pieces of batches."""
    wanted = rows_of("dump", str(path.parent))
    growing = directory / "growing" / path.parent.name / path.name
    growing.parent.mkdir(parents=True)
    data = path.read_bytes()
    cuts = range(len(data) // 3, len(data), len(data) // 7)
    growing.write_bytes(data[: cuts[0]])

    def append() -> None:
        for start, stop in zip(cuts, [*cuts[1:], len(data)], strict=True):
            sleep(0.1)
            with growing.open("ab") as file:
                file.write(data[start:stop])

    writer = Thread(target=append)
    writer.start()
    found = rows_of("dump", "--follow", "-n", str(len(wanted)), str(growing.parent))
    writer.join()
    assert found == wanted


def is_browsed(path: Path) -> None:
    """The pages of a batch of each version can be opened, and show its bytes and records."""
    ASKED.add("browse")
    visitor = Visitor(path.parent)
    (windows, *_) = links(visitor.see(visitor.partition("mixed")), r"batches\?segment=")
    batches = {b.magic: b for b in SegmentReader(path) if b.codec == 0}
    for magic, batch in batches.items():
        begin = f"{windows.replace('batches?', 'batch?')}&byte={batch.position}"
        pages = list(visitor.crawl(PAGES, begin))
        assert {status for _, status, _ in pages} == {200} and len(pages) == PAGES
        data = path.read_bytes()[batch.position : batch.position + batch.size]
        names = [name for name, value in LOG_ENTRY.parse(data).items() if value is not None]
        assert any(all(name in page.text for name in names) for _, _, page in pages), magic
        assert any(f"k{batch.last_offset}" in page.text for _, _, page in pages), magic
    assert batches.keys() == {0, 1, 2, MAGIC}


PAGES = 10
"""Pages that are opened for a batch: its own, and those that it leads to."""


def refuses_faults(directory: Path) -> None:
    """A writer that changes any one field of a batch or record is found, also one that no view has a column for."""
    sources = {}
    for magic in (2, MAGIC):
        path = directory / f"faults-{magic}" / f"{0:020}.log"
        path.parent.mkdir()
        table = rows(0, magic).slice(0, 4)
        table = table.append_column("sequence", pa.array(range(4), pa.int32()))
        producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": False}
        pieces = encode(table, magic=magic, codec="lz4", **producer)
        path.write_bytes(b"".join(pieces))
        sources[magic] = path.parent
    jobs = {
        MAGIC: {"convert --codec zstd": "recompress", "salvage --flatten": "edit"},
        2: {f"convert --magic {MAGIC}": "upgrade"},
    }

    @settings(max_examples=FAULTS, deadline=None, derandomize=True, database=None)
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        for magic, faults in jobs.items():
            refuses(sources[magic], faults, lambda paths: data.draw(st.sampled_from(paths)))

    law()


def keeps_all_fields(directory: Path) -> None:
    """Salvage keeps each field of damaged batches that it encodes again, also those that no view has a column for."""
    for magic in (2, MAGIC):
        table = rows(0, magic).slice(0, 4)
        data = b"".join(encode(table, magic=magic, codec="gzip", batch_bytes=1 << 20))
        keeps_unwritten_values(magic, data, directory / f"damaged-{magic}")


FAULTS = 30
"""Faults of each writer that are tried."""

NO_LOG = {"explain": "prints what a finding means, and reads no log"}
"""Commands that cannot read a log of the version, and why."""


def _rows(path: Path) -> pa.Table:
    names = [n for n in ALL if n not in ("position", "magic", "codec", "timestamp_delta")]
    return scan(path, names, control_records=True, deleted_records=True).read_all()


def spark_reads(mixed: Path, orders: Path, directory: Path) -> None:
    """Both sources read the rows of ``scan`` by all engines, and read again what they write in the new version."""
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
                read = spark.read.format(source).option("engine", engine)
                every = read.options(includeHeaders=True, includeMetadata=True)
                are_rows_of_scan(every.load(str(mixed.parent)).toArrow(), mixed)
                committed = read.option("isolationLevel", "read_committed")
                values = committed.load(str(orders.parent)).toArrow().column("value").to_pylist()
                assert values == [b"1"] * 20
                small = committed.option("splitBytes", 300).load(str(orders.parent))
                assert small.count() == 20
            shows_crcs(spark.read.format(source), mixed)
            rows = spark.read.format(source).load(str(orders.parent))
            out = directory / source
            for _ in range(2):
                write = rows.select("key", "value", "timestamp").write.format(source)
                write = write.option("topic", "t").option("formatVersion", str(MAGIC))
                write.option("compression", "zstd").mode("append").save(str(out))
            assert spark.read.format(source).load(str(out)).count() == 2 * rows.count() > 0
            assert {b.magic for p in out.rglob("*.log") for b in SegmentReader(p)} == {MAGIC}
        samples = sorted(SAMPLES.glob("kafka-*/transactions-0"))
        assert len(samples) == 2
        for sample in samples:
            whole = spark.read.format("kafka-log").option("isolationLevel", "read_committed")
            assert whole.load(str(sample)).count() == SAMPLE_ROWS
    finally:
        spark.stop()


def are_rows_of_scan(rows: pa.Table, mixed: Path) -> None:
    """Compare all columns of Spark's rows with those that ``scan`` reads from the same segment."""
    from pyspark_kafka_log.columns import COLUMNS

    sources = {column.name: column.source for column in COLUMNS.values() if column.source}
    wanted = scan(mixed.parent, [*sources.values()]).read_all()
    rows = rows.sort_by("offset")
    expected: dict[str, list[Any]] = {
        **{name: [None] * len(wanted) for name in ("controlType", "problem")},
        "topic": ["mixed"] * len(wanted),
        "partition": [0] * len(wanted),
        "segment": [str(mixed)] * len(wanted),
    }
    for name, source in sources.items():
        column = wanted.column(source)
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(
                rows.column_names.index(name), name, rows.column(name).cast(column.type)
            )
        expected[name] = column.to_pylist()
    expected["compression"] = [codec_label(codec) for codec in expected["compression"]]
    expected["headers"] = [headers or None for headers in expected["headers"]]
    assert rows.column_names and set(rows.column_names) == COLUMNS.keys() == expected.keys()
    for name in rows.column_names:
        assert rows.column(name).to_pylist() == expected[name], name


def shows_crcs(reader: Any, mixed: Path) -> None:
    """The view of batches has the checksums as they are stored, also numbers that Spark has no integers for."""
    batches = reader.option("view", "batches").load(str(mixed.parent))
    rows = batches.select("position", "crc").orderBy("position").toArrow()
    wanted = scan_batches(mixed, ["crc"]).read_all().column("crc").to_pylist()
    assert list(map(int, rows.column("crc").to_pylist())) == wanted


def read_before() -> dict[str, str]:
    """What is read from every sample and every reference segment, but those whose magic bytes are of no format: digests."""
    out = {}
    for path in sorted([*VECTORS.rglob("*.log"), *SAMPLES.rglob("*.log")]):
        # Kafka takes these for its newest format; after a wrong length the magic byte is any byte.
        if path.stem in ("v2-magic-3", "v2-magic-127", "v2-length-plus-1"):
            continue
        for reader in (SegmentReader(path), BlockReader(path, policy="strict", engine="arrow")):
            text = json.dumps(list(segment_objects(reader, records=False)))
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
    orders = transactional(directory)
    if "spark" in sys.argv[2:]:
        spark_reads(mixed, orders, directory)
    else:
        reads(mixed, expected)
        shows_columns(mixed)
        writes(mixed, directory)
        prints(mixed)
        survives(mixed, directory)
        is_repaired(mixed, directory)
        verifies_records(mixed, directory)
        knows_transactions(orders)
        is_written_again(is_converted(directory), directory)
        lists_schemas(directory)
        follows(mixed, directory)
        is_browsed(mixed)
        refuses_faults(directory)
        keeps_all_fields(directory)
        assert COMMANDS.keys() - NO_LOG.keys() == ASKED
    print("all of it")


if __name__ == "__main__":
    main()
