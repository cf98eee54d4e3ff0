"""Fields that no view writes keep their values in damaged batches that salvage encodes again, or are reported as lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import ValueRefused
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.write import log_writer
from tests.support.segment_files import put
from tests.support.unwritten_values import (
    keeps_unwritten_values,
    salvage_damaged,
    unwritten_values,
)

RECORDS: list[dict[str, Any]] = [
    {"attributes": {"unused": 3 + i}, "offset_delta": i, "key": b"k", "value": b"v%d" % i}
    for i in range(4)
]


def batch(codec: str = "none") -> bytes:
    values: Any = {"base_offset": 7, "records": RECORDS}
    values["attributes"] = {"unused": 9, "compression": codec}
    return RECORD_BATCH.build(values, strict=False)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_bits_without_a_column_are_kept(codec: str, tmp_path: Path) -> None:
    keeps_unwritten_values(2, batch(codec), tmp_path)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_bits_of_messages_are_kept(magic: int, codec: str, tmp_path: Path) -> None:
    entry: Any = {"magic": magic, "offset": 9}
    entry["attributes"] = {"unused": 5, "compression": codec}
    inner = [
        {"magic": magic, "offset": 7 * (1 - magic) + i, "attributes": {"unused": i}, "value": b"v"}
        for i in range(3)
    ]
    entry |= {"value": b"v"} if codec == "none" else {"messages": inner}
    data = LOG_ENTRY.build(entry, strict=False)
    written, rows = salvage_damaged(data, tmp_path)
    assert {row["what"] for row in rows} == {"rewritten"}
    before, after = (LOG_ENTRY.parse(one, strict=False) for one in (data, written))
    assert after.attributes == before.attributes
    messages = [[m.attributes.unused for m in one.get("messages") or ()] for one in (before, after)]
    assert messages[0] == messages[1] == ([] if codec == "none" else [0, 1, 2])


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("delete_horizon", [False, True])
def test_timestamps_of_producers_under_the_time_of_the_append_are_kept(
    codec: str, delete_horizon: bool, tmp_path: Path
) -> None:
    """No column has them, because consumers get the time of the append."""
    records = [{**one, "timestamp_delta": 1000 * i - 5} for i, one in enumerate(RECORDS)]
    values: Any = {"base_offset": 7, "records": records, "base_timestamp": 1_700_000_000_000}
    values |= {"max_timestamp": 1_800_000_000_000}
    values["attributes"] = {"timestamp_type": "log_append_time", "compression": codec}
    values["attributes"]["has_delete_horizon"] = delete_horizon
    data = RECORD_BATCH.build(values, strict=False)
    written, rows = salvage_damaged(data, tmp_path)
    assert {row["what"] for row in rows} == {"rewritten"}
    assert LOG_ENTRY.parse(written, strict=False) == LOG_ENTRY.parse(data, strict=False)


def test_timestamps_of_messages_under_the_time_of_the_append_are_kept(tmp_path: Path) -> None:
    plain: Any = {"magic": 1, "attributes": {"compression": "none"}}
    inner = [{**plain, "offset": i, "timestamp": 1000 + i, "value": b"v"} for i in range(3)]
    entry: Any = {"magic": 1, "offset": 9, "timestamp": 5000, "messages": inner}
    entry["attributes"] = {"timestamp_type": "log_append_time", "compression": "gzip"}
    data = LOG_ENTRY.build(entry, strict=False)
    written, rows = salvage_damaged(data, tmp_path)
    assert {row["what"] for row in rows} == {"rewritten"}
    assert LOG_ENTRY.parse(written, strict=False) == LOG_ENTRY.parse(data, strict=False)


def test_a_wrong_largest_timestamp_is_computed_again(tmp_path: Path) -> None:
    """No column has it either, but it must follow from the records."""
    values: Any = {"base_offset": 7, "records": RECORDS, "base_timestamp": 1000}
    data = RECORD_BATCH.build(values | {"max_timestamp": 9000}, strict=False)
    written, _ = salvage_damaged(data, tmp_path)
    assert LOG_ENTRY.parse(written, strict=False).max_timestamp == 1000


def test_a_torn_batch_keeps_the_bits_of_its_whole_records(tmp_path: Path) -> None:
    data = batch()
    source = put(tmp_path / "t-0", (7, data[:-5]))
    rows = LogDirectory(source).salvage(tmp_path / "out").to_pylist()
    assert {row["what"] for row in rows} == {"kept", "unfinished", "rewritten"}
    (path,) = (tmp_path / "out" / "t-0").glob("*.log")
    wanted = unwritten_values(data)
    del wanted["records[3].attributes.unused"]
    assert unwritten_values(path.read_bytes()) == wanted


def test_values_that_cannot_be_kept_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def restore_fields(*_: object) -> list[bytes]:
        raise ValueRefused("attributes.unused cannot be 9")

    monkeypatch.setattr(log_writer, "restore_fields", restore_fields)
    _, rows = salvage_damaged(batch(), tmp_path)
    assert [(row["what"], row["records"]) for row in rows] == [("rewritten", 4), ("lost", None)]
    assert "attributes.unused cannot be 9" in rows[1]["reason"]
    options = ["--keep-damaged", "--out", str(tmp_path / "again")]
    assert main(["salvage", str(tmp_path / "t-0"), *options]) == 1
    assert "that have no column are not kept" in " ".join(capsys.readouterr().out.split())
