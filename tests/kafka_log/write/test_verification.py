"""What was written is read again: a fault in whatever writes is an error that says where, and nothing is left in place."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from codecgen.runtime.arrow.structured_dtype import structured
from kafka_codecs import (
    LOG_ENTRY,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY,
)
from kafka_log import LogDirectory, SegmentReader, read_table, write_log
from kafka_log.cli import main
from kafka_log.write import indexes
from kafka_log.write import log_writer as segments
from kafka_log.write.encoding import encode
from kafka_log.write.rewrite import conversion
from kafka_log.write.sink import commit as rebase
from kafka_log.write.sink import staging
from kafka_log.write.verification import WrittenError
from tests.paths import SAMPLES
from tests.support.check_plants import flip

SOURCE = SAMPLES / "kafka-4.x" / "transactions-0"


def _add(name: str) -> Callable[[dict[str, Any]], None]:
    def change(batch: dict[str, Any]) -> None:
        batch[name] += 1

    return change


def _drop_record(batch: dict[str, Any]) -> None:
    del batch["records"][-1]


def _other(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(batch: dict[str, Any]) -> None:
        batch["records"][0][name] = value

    return change


def _flag(batch: dict[str, Any]) -> None:
    batch["attributes"]["is_transactional"] = not batch["attributes"]["is_transactional"]


NUMBERS = ("base_offset", "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id")
FAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    **{name: _add(name) for name in (*NUMBERS, "base_sequence", "partition_leader_epoch")},
    "flag": _flag,
    "record": _drop_record,
    "key": _other("key", b"another"),
    "value": _other("value", None),
    "headers": _other("headers", [{"key": "h", "value": b"x"}]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_conversion_that_changes_something_is_refused(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that is wrong has a right checksum, and reads without a problem."""
    recompress, done = conversion.recompress, []

    def wrong(data: bytes, magic: int, to: Any, *, file: str, position: int) -> bytes:
        made = recompress(data, magic, to, file=file, position=position)
        if done:
            return made
        done.append(position)
        batch = LOG_ENTRY.parse(made)
        FAULTS[fault](batch)
        changed = {n: v for n, v in batch.items() if n != "record_count"}
        return LOG_ENTRY.build(changed, strict=False)

    monkeypatch.setattr(conversion, "recompress", wrong)
    (row,) = LogDirectory(SOURCE).convert(tmp_path / "out", codec="zstd").to_pylist()
    (path,) = SOURCE.glob("*.log")
    (position,) = done
    first = next(b.base_offset for b in SegmentReader(path) if b.position == position)
    assert row["what"] == "refused"
    assert f"byte {position} of {path}" in row["reason"]
    said = re.search(r"at offset (\d+)", row["reason"])
    assert said is not None and int(said[1]) - first in range(8)
    assert list((tmp_path / "out").iterdir()) == []


def test_copies_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = segments.LogWriter.write

    def wrong(log: segments.LogWriter, data: bytes | memoryview) -> None:
        write(log, bytes(data[:-1]) + bytes([data[-1] ^ 1]))

    monkeypatch.setattr(segments.LogWriter, "write", wrong)
    for command in (["convert"], ["salvage"], ["cut", "--offsets", "0:5"]):
        out = tmp_path / command[0]
        assert main([*command, str(SOURCE), "--out", str(out)]) == 1
        told = "".join(capsys.readouterr())
        assert "has other bytes in what was written" in told
        assert [p for p in out.iterdir() if p.is_dir()] == []


@pytest.mark.parametrize("column", ["key", "value", "timestamp"])
def test_records_that_are_encoded_are_compared(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(stream: pa.RecordBatchReader, **options: Any) -> Any:
        table = stream.read_all()
        at = table.schema.get_field_index(column)
        moved = table.column(at).take(pa.array([*range(1, table.num_rows), 0]))
        return encode(table.set_column(at, table.schema.field(at), moved), **options)

    (path,) = SOURCE.glob("*.log")
    source = tmp_path / SOURCE.name
    source.mkdir()
    shutil.copy(path, source)
    flip(source / path.name, 17)  # the checksum of the first batch
    monkeypatch.setattr(segments, "encode", wrong)
    said = LogDirectory(source).salvage(tmp_path / "out", keep_damaged=True).to_pylist()
    (row,) = said
    assert row["what"] == "lost" and row["reason"].startswith(f"{column} of the record at offset ")
    assert [p for p in (tmp_path / "out").iterdir() if p.is_dir()] == []


@pytest.mark.parametrize("fault", [*FAULTS, "max_timestamp"])
def test_headers_that_are_edited_are_compared(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = segments.edit
    change = FAULTS.get(fault, lambda batch: batch.update(max_timestamp=1))

    def wrong(*args: Any) -> bytes:
        batch = LOG_ENTRY.parse(edit(*args))
        change(batch)
        changed = {n: v for n, v in batch.items() if n != "record_count"}
        return LOG_ENTRY.build(changed, strict=False)

    monkeypatch.setattr(segments, "edit", wrong)
    (row,) = LogDirectory(SOURCE).salvage(tmp_path / "out", flatten=True).to_pylist()
    assert row["what"] == "lost" and row["reason"]
    assert [p for p in (tmp_path / "out").iterdir() if p.is_dir()] == []


ROWS = pa.table({"value": [b"a", b"b", b"c"], "key": [b"k", None, b"m"]})


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_rows_of_tables_are_compared(
    magic: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, ROWS, topic="t", magic=magic)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def wrong(rows: pa.RecordBatch, **options: Any) -> Any:
        return encode(rows.slice(0, rows.num_rows - 1), **options)

    monkeypatch.setattr(staging, "encode", wrong)
    with pytest.raises(WrittenError, match="record at offset 2 is missing"):
        write_log(tmp_path, ROWS, topic="t", magic=magic)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    monkeypatch.undo()
    write_log(tmp_path, ROWS, topic="t", magic=magic)
    assert read_table(tmp_path, ["value"]).column("value").to_pylist() == [b"a", b"b", b"c"] * 2


def test_a_batch_that_cannot_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, ROWS, topic="t")
    edit = rebase.edit

    def wrong(layout: Any, source: Any, changes: dict[str, Any]) -> bytes:
        return edit(layout, source, changes | {"last_offset_delta": 9})

    monkeypatch.setattr(rebase, "edit", wrong)
    with pytest.raises(WrittenError, match="was moved by 3 offsets"):
        write_log(tmp_path, ROWS, topic="t")
    monkeypatch.undo()
    assert read_table(tmp_path, ["value"]).num_rows == 3


def _damaged(entries: Any, field: str, by: int) -> bytes:
    changed = entries.copy()
    if len(changed):
        changed[field][-1] += by
    return bytes(changed.tobytes())


INDEX_FAULTS = [
    (".index", structured(OFFSET_INDEX_ENTRY), "position"),
    (".index", structured(OFFSET_INDEX_ENTRY), "relative_offset"),
    (".timeindex", structured(TIME_INDEX_ENTRY), "timestamp"),
    (".timeindex", structured(TIME_INDEX_ENTRY), "relative_offset"),
]


@pytest.mark.parametrize(("end", "kind", "field"), INDEX_FAULTS)
@pytest.mark.parametrize("by", [-1, 1])
def test_indexes_are_looked_up(
    end: str, kind: Any, field: str, by: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever writes them: an entry that leads elsewhere is an error that names file and byte."""
    made = indexes.EntryRule.files

    def wrong(rule: indexes.EntryRule) -> dict[str, bytes]:
        found = made(rule)
        return found | {end: _damaged(np.frombuffer(found[end], kind), field, by)}

    monkeypatch.setattr(indexes.EntryRule, "files", wrong)
    log = LogDirectory(SOURCE)
    rows = log.reindex(tmp_path / "reindex", interval_bytes=200).to_pylist()
    if end == ".timeindex":  # the others have entries only for what is larger
        rows += log.salvage(tmp_path / "salvage").to_pylist()
        rows += log.convert(tmp_path / "convert", codec="zstd").to_pylist()
    for row in rows:
        assert row["what"] in ("lost", "refused")
        assert re.search(
            rf"entry \d+ .* leads to no such batch .*byte \d+ of .*{end}", row["reason"]
        )
    assert list(tmp_path.rglob("*-0")) == []


@pytest.mark.parametrize("field", ["producer_id", "first_offset", "last_offset"])
def test_transaction_indexes_are_looked_up(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = indexes.ProducerStates.end

    def wrong(states: indexes.ProducerStates, *arguments: Any) -> bytes:
        data = made(states, *arguments)
        if not data:
            return data
        entry = TRANSACTION_INDEX_ENTRY.parse(data)
        entry[field] += 1
        return TRANSACTION_INDEX_ENTRY.build(entry)

    monkeypatch.setattr(indexes.ProducerStates, "end", wrong)
    (row,) = LogDirectory(SOURCE).reindex(tmp_path / "out").to_pylist()
    assert row["what"] == "lost"
    assert re.search(r"entry 0 .* leads to no such batch .*byte 0 of .*\.txnindex", row["reason"])


def test_an_index_that_is_cut_off_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = indexes.write_file
    monkeypatch.setattr(indexes, "write_file", lambda path, data: write(path, data[:-1]))
    (row,) = LogDirectory(SOURCE).reindex(tmp_path / "out", interval_bytes=200).to_pylist()
    assert row["what"] == "lost" and "ends with an incomplete entry" in row["reason"]
