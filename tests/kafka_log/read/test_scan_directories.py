"""Scans of partitions and directories: what is read, in which order, and the columns that say where it is from."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafka_log
from codecgen.runtime.errors import CodecError
from kafka_log import (
    DirectoryError,
    LogDirectory,
    SegmentReader,
    discover,
    read_table,
    scan,
    scan_batches,
)
from kafka_log.logs.discovery import AllSegmentsExcluded
from tests.paths import ROOT, SAMPLES, VECTORS
from tests.support.partition_logs import rows_of, write_log
from tests.support.scanned_rows import unpacked

NEW = SAMPLES / "kafka-4.x"
DEFAULT = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
TEXT = pa.dictionary(pa.int32(), pa.string())


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return [row for batch in table.to_batches() for row in unpacked(batch)]


def expected(path: Path) -> list[dict[str, Any]]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "key": record.key,
            "segment": str(segment.path),
        }
        for partition in discover(path)
        for segment in partition.segments
        for batch in SegmentReader(segment.path)
        if not batch.is_control
        for record in batch.records
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", [NEW, SAMPLES / "kafka-2.8"], ids=lambda p: p.name)
def test_a_brokers_directory(path: Path) -> None:
    wanted = expected(path)
    columns = list(wanted[0])
    assert rows(read_table(path, columns, deleted_records=True)) == wanted
    assert len({(row["topic"], row["partition"]) for row in wanted}) > 15


def test_topic_and_partition_are_there_when_they_are_needed() -> None:
    one, several = NEW / "segments.small-0", NEW
    assert scan(one).schema.names == DEFAULT
    assert scan(several).schema.names == ["topic", "partition", *DEFAULT]
    assert scan(several, topics="segments.small", partitions=0).schema.names == DEFAULT
    schema = scan(one, ["partition", "value", "topic"]).schema
    assert schema.names == ["partition", "value", "topic"]
    assert (schema.field("topic").type, schema.field("partition").type) == (TEXT, pa.int32())
    assert scan_batches(one).schema.names[0] == "position"
    assert scan_batches(several).schema.names[:3] == ["topic", "partition", "position"]


def test_segments_come_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t-7", random.Random(2), segments=6)
    table = read_table(path, ["topic", "partition", "offset"])
    offsets = table.column("offset").to_pylist()
    assert offsets == sorted(offsets) == [offset for offset, _ in rows_of(path)]
    assert set(table.column("topic").to_pylist()) == {"t"}
    assert set(table.column("partition").to_pylist()) == {7}
    files = sorted(path.glob("*.log"), reverse=True)
    assert read_table(files, ["offset"]).column("offset").to_pylist() == offsets
    assert read_table([path, *files], ["offset"]).num_rows == len(offsets)
    again = [path, path / ".." / path.name, path / ".." / path.name / files[0].name]
    assert read_table(again, ["offset"]).num_rows == len(offsets)


def test_columns_about_the_place_alone() -> None:
    table = read_table(NEW, ["topic"])
    assert table.num_rows == read_table(NEW).num_rows
    assert scan_batches(NEW, ["partition"]).read_all().num_rows == scan_batches(NEW).read_all().num_rows  # fmt: skip


def test_the_dictionary_is_the_same_in_every_batch() -> None:
    """Files of the IPC format, and some readers of streams, take no other."""
    batches = list(scan(NEW, ["topic", "offset"]))
    assert len(batches) > 10
    first = batches[0].column("topic").dictionary
    assert all(batch.column("topic").dictionary.equals(first) for batch in batches)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def test_topics_and_partitions_are_chosen() -> None:
    table = read_table(NEW, ["topic", "partition"], topics=["codecs", "features"], partitions=[0])
    found = {(row["topic"], row["partition"]) for row in rows(table)}
    assert found == {("codecs", 0), ("features", 0)}
    with pytest.raises(ValueError, match=r"there is no topic codec; there are: .*codecs"):
        scan(NEW, topics="codec")
    with pytest.raises(ValueError, match="there is no partition 7, 8; there are: 0, 1, 2, 3, 4"):
        scan(NEW, partitions=[8, 0, 7])


def test_ranges_hold_in_every_partition() -> None:
    wanted = [row for row in expected(NEW) if 10 <= row["offset"] < 20]
    columns = list(wanted[0])
    assert rows(read_table(NEW, columns, offsets=(10, 20))) == wanted


def test_segments_outside_of_a_range_are_not_opened(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t-0", random.Random(1), segments=5)
    names = discover(path)[0].segments
    low, high = names[2].base_offset, names[3].base_offset
    wanted = [offset for offset, _ in rows_of(path) if low <= offset < high]
    for segment in (names[0], names[1], names[3], names[4]):
        segment.path.write_bytes(b"\xff" * segment.size)
    for policy in ("kafka", "strict", "salvage"):
        table = read_table(path, ["offset"], policy, offsets=(low, high))
        assert table.column("offset").to_pylist() == wanted
    with pytest.raises(CodecError):
        read_table(path, ["offset"], offsets=(low - 1, high))


def test_a_file_whose_name_is_no_offset_is_not_passed_over(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t-0", random.Random(1), segments=2)
    first, second = (segment.path for segment in discover(path)[0].segments)
    named = first.rename(path / "saved.log")
    offsets = [row["offset"] for row in rows(read_table(named, ["offset"]))]
    found = read_table([named, second], ["offset"], offsets=(offsets[-1], None))
    assert found.column("offset").to_pylist()[0] == offsets[-1]


def test_nothing_to_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(DirectoryError, match=r"missing: there is no such file or directory"):
        scan(missing)
    with pytest.raises(DirectoryError, match=r"it contains no segments"):
        scan_batches(tmp_path)
    empty = tmp_path / "empty-0"
    empty.mkdir()
    assert read_table(empty).num_rows == 0
    assert read_table(empty).schema.names == DEFAULT
    assert read_table(NEW / "empty-0").num_rows == 0
    assert read_table(empty, ["topic", "key"]).schema.field("topic").type == TEXT


def test_a_partition_that_lies_in_two_directories_is_refused(tmp_path: Path) -> None:
    shutil.copytree(NEW / "features-0", tmp_path / "features-0")
    with pytest.raises(
        DirectoryError, match=r"holds the same partition, so that its records would be read twice"
    ):
        scan([NEW, tmp_path])
    assert scan([NEW, tmp_path], topics="codecs").read_all().num_rows
    copies = []
    for name in ("a", "b"):  # no names of partitions: nobody knows what they are
        (tmp_path / name).mkdir()
        copies.append(shutil.copy(VECTORS / "matrix" / "v2-none-create.log", tmp_path / name / f"{0:020d}.log"))  # fmt: skip
    assert read_table(copies).num_rows == 2 * read_table(copies[0]).num_rows


def test_a_number_that_is_no_partitions_is_refused(tmp_path: Path) -> None:
    shutil.copytree(NEW / "features-0", tmp_path / "features-4294967296")
    with pytest.raises(
        DirectoryError, match="features-4294967296: it has segments, but its name is not"
    ):
        scan(tmp_path)


def test_damage_comes_out_of_the_stream_as_it_is(tmp_path: Path) -> None:
    path = write_log(tmp_path / "t-0", random.Random(1), segments=3)
    last = discover(path)[0].segments[-1]
    last.path.write_bytes(last.path.read_bytes() + b"\xff" * 40)
    reader = scan(path, ["offset"])
    with pytest.raises(CodecError) as raised:
        reader.read_all()
    assert raised.value.where.file == str(last.path)
    assert raised.value.where.position == last.size + 8  # where the length is
    assert read_table(path, ["offset"], on_damage="keep").num_rows == len(rows_of(path))
    assert read_table(path, ["offset"], "salvage").num_rows == len(rows_of(path))


def test_views() -> None:
    plain = read_table(NEW)
    table = read_table(NEW, binary_view=True)
    table.validate(full=True)
    assert table.schema.field("key").type == pa.binary_view()
    assert table.schema.field("value").type == pa.binary_view()
    header = table.schema.field("headers").type.value_type
    assert [header[0].type, header[1].type] == [pa.string_view(), pa.binary_view()]
    assert table.schema.field("topic").type == TEXT
    assert table.to_pylist() == plain.to_pylist()
    part = read_table(NEW, binary_view=True, offsets=(3, 9), timestamps=(1, None))
    part.validate(full=True)
    assert part.to_pylist() == [r for r in plain.to_pylist() if 3 <= r["offset"] < 9 and r["timestamp"].timestamp() > 0]  # fmt: skip


def imported(program: str) -> None:
    """Run a program in a process of its own."""
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    command = f"import sys; sys.path[:0] = {roots}\n" + program
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_package_is_light() -> None:
    imported(
        "import sys, kafka_log\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert set(kafka_log.__all__) <= set(dir(kafka_log))\n"
        "from kafka_log import scan\n"
        "assert 'pyarrow' in sys.modules and kafka_log.scan is scan\n"
        "assert callable(kafka_log.encode) and callable(kafka_log.write_segment)\n"
        "assert all(hasattr(kafka_log, name) for name in kafka_log.__all__)\n"
        "import kafka_codecs\n"
        "assert all(hasattr(kafka_codecs, name) for name in kafka_codecs.__all__)\n"
        "assert set(kafka_codecs.__all__) <= set(dir(kafka_codecs))\n"
        "assert not hasattr(kafka_codecs, 'RECORD_BATCH_V9')\n"
    )
    with pytest.raises(AttributeError, match="no attribute 'scanned'"):
        _ = kafka_log.scanned


NOT_NEEDED = (
    "codecgen.runtime.arrow.encoder",
    "codecgen.runtime.arrow.header_reads",
    "codecgen.runtime.arrow.lz4",
    "codecgen.runtime.arrow.snappy",
    "crc32c",
    "kafka_codecs.arrow.batches_kernels",
    "kafka_codecs.arrow.records_encoders",
    "kafka_log.segment.reference",
    "kafka_log.segment.header_loading",
    "pyarrow.compute",
)
"""What a file without compression and without anything odd is read without. Errors are construct's, so that it is loaded."""


@pytest.mark.slow
def test_a_scan_loads_what_it_needs() -> None:
    path = VECTORS / "matrix" / "v2-none-create.log"
    imported(
        "from kafka_log import scan, scan_batches\n"
        f"assert scan({str(path)!r}).read_all().num_rows\n"
        f"loaded = set({NOT_NEEDED!r}) & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        f"assert scan({str(path)!r}, offsets=(0, 1 << 62)).read_all().num_rows\n"
        f"assert scan_batches({str(path)!r}).read_all().num_rows\n"
        f"assert scan({str(path)!r}, engine='construct').read_all().num_rows\n"
        "assert {'construct', 'kafka_log.segment.header_loading'} <= set(sys.modules)\n"
    )


@pytest.mark.parametrize("nothing", [{"partitions": []}, {"topics": []}])
def test_an_empty_selection_is_not_told_of_excluded_segments(nothing: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AllSegmentsExcluded)
        assert scan(SAMPLES / "kafka-4.x", **nothing).read_all().num_rows == 0
        assert LogDirectory(SAMPLES / "kafka-4.x", **nothing).ls().num_rows == 0
