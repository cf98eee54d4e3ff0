"""A writer that changes any one field of a batch which legacy messages become is found, also if messages have no such field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader
from kafka_log.write.rewrite import conversion
from tests.support.writer_faults import FaultyWriter, format_path, list_fields

TIME = 1_700_000_000_000
SOURCES: dict[str, tuple[int, dict[str, Any]]] = {
    "v0": (0, {}),
    "v1": (1, {"timestamp": TIME}),
    "v1 without times": (1, {"timestamp": -1}),
    "v1 of the broker": (
        1,
        {"timestamp": TIME, "attributes": {"timestamp_type": "log_append_time"}},
    ),
}


def write_source(directory: Path, name: str) -> Path:
    """Write a segment of two messages, which become one batch; return its directory."""
    magic, more = SOURCES[name]
    messages = [
        LOG_ENTRY.cases[magic].build({"offset": i, "key": b"k%d" % i, "value": b"v", **more})
        for i in range(2)
    ]
    path = directory / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(messages))
    return path.parent


def paths_of_a_batch() -> list[str]:
    """Return the paths of all fields of such a batch that builders do not compute."""
    data = RECORD_BATCH.build({"records": [{"key": b"k", "value": b"v"}] * 2})
    parsed = RECORD_BATCH.read(Source(data, Session(strict=False)), None)
    return [format_path(path) for path in list_fields(RECORD_BATCH, parsed)]


WITHOUT_A_COLUMN = {
    *("attributes.has_delete_horizon", "attributes.unused", "records[1].attributes.unused"),
    *("last_offset_delta", "max_timestamp", "base_sequence"),
}
UNREAD = ("v1 of the broker", "records[0].timestamp_delta")
"""A delta that no reader adds to anything: all records have the time of the append."""


def cases() -> Iterator[Any]:
    """Each source with a fault in each field; the quick run has one source, and the fields without a column."""
    for name in SOURCES:
        for path in paths_of_a_batch():
            if (name, path) != UNREAD:
                is_quick = name == "v1" and path in WITHOUT_A_COLUMN
                yield pytest.param(name, path, marks=[] if is_quick else [pytest.mark.slow])


@pytest.mark.parametrize(("name", "path"), list(cases()))
def test_a_fault_in_any_field_is_refused(
    name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_source(tmp_path, name)
    write = conversion.convert_messages
    change = FaultyWriter(bytes, lambda paths: path)

    def write_wrong(*args: Any) -> Iterator[memoryview]:
        return (memoryview(change(piece)) for piece in write(*args))

    monkeypatch.setattr(conversion, "convert_messages", write_wrong)
    (row,) = LogDirectory(source).convert(tmp_path / "out", magic=2).to_pylist()
    assert change.path == path
    assert row["what"] == "refused" and "at offset " in row["reason"], row
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", SOURCES)
def test_without_a_fault_all_is_written(name: str, tmp_path: Path) -> None:
    source = write_source(tmp_path, name)
    (row,) = LogDirectory(source).convert(tmp_path / "out", magic=2).to_pylist()
    assert row["what"] == "converted", row
    (batch,) = SegmentReader(next((tmp_path / "out").rglob("*.log")))
    assert (batch.magic, len(batch.records)) == (2, 2)
