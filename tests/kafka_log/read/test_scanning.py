"""What callers of the scan rely on: columns, ranges, damage, limits, parts of a file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c

from codecgen.runtime.errors import ChecksumError, CodecError, LimitError
from codecgen.runtime.located_bytes import Limits
from kafka_log import SegmentReader, read_table, scan, scan_batches
from kafka_log.segment.scanner import Scanner
from tests.paths import VECTORS
from tests.support.random_segments import entries
from tests.support.scanned_rows import ALL, reference, unpacked

PLAIN = VECTORS / "matrix" / "v2-none-create.log"
ENGINES = ("arrow", "construct")


def mixed(tmp_path: Path) -> Path:
    """All the well-formed segments of the matrix one after the other."""
    path = tmp_path / "mixed.log"
    files = sorted((VECTORS / "matrix").rglob("*.log"))
    random.Random(1).shuffle(files)
    path.write_bytes(b"".join(file.read_bytes() for file in files))
    return path


def test_versions_and_codecs_mixed_in_one_file(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    expected = reference(path, "kafka")
    table = read_table(path, ALL, engine="arrow")
    assert [row for batch in table.to_batches() for row in unpacked(batch)] == expected.rows
    assert len({row["magic"] for row in expected.rows}) == 3
    scanner = Scanner(path, ALL, engine="arrow")
    assert sum(batch.num_rows for batch in scanner) == len(expected.rows)
    assert str(scanner.end) == str(expected.end)


def test_the_columns_are_those_that_need_not_be_asked_for(tmp_path: Path) -> None:
    names = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
    reader = scan(mixed(tmp_path))
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema.names == names
    assert reader.schema.field("timestamp").type == pa.timestamp("ms", "UTC")
    assert reader.read_all().num_rows > 0


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            ["offset", "vale"],
            "no column is called 'vale' \\(did you mean 'value'\\?\\); known: topic, ",
        ),
        (["key", "key"], "columns has 'key' twice"),
        ([], "columns is empty: name at least one column"),
        ("key", r"columns is a string: write \['key'\]"),
    ],
)
def test_columns_that_are_not_there_are_refused(columns: list[str], reason: str) -> None:
    for function in (scan, read_table):
        with pytest.raises(ValueError, match=reason):
            function(PLAIN, columns)
    with pytest.raises(ValueError, match="did you mean 'last_offset'"):
        scan_batches(PLAIN, ["last_ofset"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"offsets": (5, 3)},
            r"offsets is \(5, 3\): the first is above the end: give the lower one first",
        ),
        (
            {"timestamps": (5, 3)},
            r"timestamps is \(5, 3\): the first is above the end: give the lower one first",
        ),
        ({"offsets": 5}, r"offsets is 5: it must be \(first, end\), each an integer or None"),
        ({"offsets": (1, 2, 3)}, "it must be"),
        ({"timestamps": (0.5, None)}, "it must be"),
        ({"offsets": (1 << 63, None)}, "must fit 64 bits"),
        ({"engine": "java"}, "engine is 'java'; known: auto, construct, arrow"),
        ({"on_damage": "lose"}, "on_damage is 'lose'; known: raise, keep, drop"),
        ({"policy": "lax"}, "lax"),
        ({"chunk_bytes": 1}, "chunk_bytes is 1"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_at_once(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        scan(PLAIN, **options)


@pytest.mark.share(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bounds", [(None, None), (10, None), (None, 10), (3, 12), (5, 5)])
def test_strict_ranges_are_filters_of_everything(
    engine: str, bounds: tuple[int | None, int | None], tmp_path: Path
) -> None:
    path = mixed(tmp_path)
    rows = reference(path, "kafka").rows
    middle = sorted(row["offset"] for row in rows)[len(rows) // 2]
    low, high = (None if bound is None else middle + bound - 8 for bound in bounds)
    wanted = [r for r in rows if (low is None or r["offset"] >= low) and (high is None or r["offset"] < high)]  # fmt: skip
    table = read_table(path, ["value"], "strict", offsets=(low, high), engine=engine)  # type: ignore[arg-type]
    assert table.column("value").to_pylist() == [row["value"] for row in wanted]
    times = sorted(row["timestamp"] for row in rows)
    first, last = times[len(times) // 4], times[3 * len(times) // 4]
    table = read_table(path, ["offset"], "strict", timestamps=(first, last), engine=engine)  # type: ignore[arg-type]
    wanted = [row for row in rows if first <= row["timestamp"] < last]
    assert table.column("offset").to_pylist() == [row["offset"] for row in wanted]


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_is_raised_after_what_lies_before_it(engine: str, tmp_path: Path) -> None:
    good = PLAIN.read_bytes()
    bad = bytearray(good)
    bad[-1] ^= 1
    path = tmp_path / "bad.log"
    path.write_bytes(good + bytes(bad))
    scanner = Scanner(path, ["offset"], engine=engine)  # type: ignore[arg-type]
    count = 0
    with pytest.raises(ChecksumError) as raised:
        for batch in scanner:
            count += batch.num_rows
    last = max(start for start, _ in entries(bytes(bad)))
    before = sum(len(b.records) for b in SegmentReader(path, stop=len(good) + last))
    assert count == before > 0
    assert raised.value.where.position == len(good) + last + 17
    assert raised.value.where.path == "crc"
    kept = Scanner(path, ["offset"], on_damage="keep", engine=engine)  # type: ignore[arg-type]
    assert sum(batch.num_rows for batch in kept) == len(reference(path, "kafka").rows)


def test_salvage_goes_on_behind_damage(tmp_path: Path) -> None:
    good = PLAIN.read_bytes()
    path = tmp_path / "bad.log"
    path.write_bytes(good[: len(good) // 2] + bytes(100) + good)
    scanner = Scanner(path, ["offset"], "salvage", engine="arrow")
    rows = [row for batch in scanner for row in unpacked(batch)]
    expected = reference(path, "salvage")
    assert rows == [{"offset": row["offset"]} for row in expected.rows]
    assert scanner.end is not None and scanner.end.lost
    assert str(scanner.end) == str(expected.end)


def test_limits_hold(tmp_path: Path) -> None:
    path = VECTORS / "matrix" / "v2-gzip-create.log"
    with pytest.raises(LimitError):
        list(Scanner(path, engine="arrow", limits=Limits(decompressed=10)))
    with pytest.raises(LimitError):
        list(Scanner(PLAIN, engine="arrow", limits=Limits(elements=1)))


def test_a_part_of_a_file(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    ends = [end for _, end in entries(path.read_bytes())]
    for start, stop in ((ends[3], ends[40]), (ends[10], ends[11] + 1), (0, 1), (ends[-1], None)):
        expected = [
            record.offset
            for batch in SegmentReader(path, start=start, stop=stop)
            for record in batch.records
        ]
        scanner = Scanner(path, ["offset"], start=start, stop=stop, engine="arrow")
        assert [row["offset"] for batch in scanner for row in unpacked(batch)] == expected


def test_a_batch_larger_than_the_chunk(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    scanner = Scanner(path, ["value"], chunk_bytes=64, engine="arrow")
    rows = [row["value"] for batch in scanner for row in unpacked(batch)]
    assert rows == [row["value"] for row in reference(path, "kafka").rows]
    assert scanner.fallbacks == 0


def test_batches_without_their_records(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    table = scan_batches(path, ["position", "size"]).read_all()
    pairs = zip(*(table.column(name).to_pylist() for name in ("position", "size")), strict=True)
    assert [(at, at + size) for at, size in pairs] == list(entries(path.read_bytes()))


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        list(Scanner("no-such-file.log"))
    assert not issubclass(FileNotFoundError, CodecError)


def test_batches_of_the_reference_codecs_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scanner, "max_bytes", 1000)
    path = mixed(tmp_path)
    batches = list(Scanner(path, ["key", "value"], engine="construct"))
    assert len(batches) > 20
    assert max(batch.nbytes for batch in batches if batch.num_rows > 1) < 2_000
    rows = [row for batch in batches for row in unpacked(batch)]
    assert rows == [{n: row[n] for n in ("key", "value")} for row in reference(path, "kafka").rows]


@pytest.mark.slow
def test_an_odd_batch_is_cut_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanner, "max_bytes", 1000)
    path = tmp_path / "odd.log"
    magic, crc = 3, 17  # the kernels take only what they know; Kafka reads it as the newest version
    data = bytearray((VECTORS / "large" / "v2-zstd-100k-one-batch.log").read_bytes())
    data[16] = magic
    data[crc : crc + 4] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    path.write_bytes(data)
    scanner = Scanner(path, ["value"], engine="arrow", on_damage="keep")
    batches = list(scanner)
    assert scanner.fallbacks == 1
    assert sum(batch.num_rows for batch in batches) == 100_000
    assert max(batch.nbytes for batch in batches) < 5_000
