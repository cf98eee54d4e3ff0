"""Other readers on what is written, and the reference's own bytes, built again from the rows that they give."""

from __future__ import annotations

from typing import Any

import pytest

from codecgen.runtime.arrow.casts import RowRefused
from kafka_codecs import LOG_ENTRY, Compression
from kafka_log.segment.control import read_control
from tests.paths import VECTORS
from tests.support.client_batches import CODECS, READERS, UnsupportedCodecError, read
from tests.support.record_tables import DEFAULT, ON_REQUEST, decoded, table, written
from tests.support.reference_entries import FILES, entries

EVERY = (*DEFAULT, *ON_REQUEST)
TIME = 1_700_000_000_000
ROWS: list[dict[str, Any]] = [
    {
        "offset": 1000 + i,
        "timestamp": TIME + 7 * i,
        "timestamp_type": 0,
        "key": (None, b"k", b"", b"key" * 50)[i % 4],
        "value": (b"a longer value " * i, None)[i % 7 == 3],
        "headers": [{"key": "h\u00e4", "value": (b"1", None)[j % 2]} for j in range(i % 3)],
    }
    for i in range(120)
]


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("codec", CODECS)
def test_they_read_record_batches(client: str, codec: str) -> None:
    data = written(table(ROWS), codec=codec, batch_bytes=2000)
    assert list(read(READERS[client], data)) == [
        (
            r["offset"],
            r["timestamp"],
            r["key"],
            r["value"],
            [(h["key"], h["value"]) for h in r["headers"]],
        )
        for r in ROWS
    ]


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[:4])
def test_they_read_messages(client: str, magic: int, codec: str) -> None:
    rows = table([row | {"headers": []} for row in ROWS])
    if not magic:
        rows = rows.drop_columns(["timestamp", "timestamp_type"])
    data = written(rows, magic=magic, codec=codec, batch_bytes=2000)
    if (client, magic, codec) == ("aiokafka", 0, "lz4"):
        with pytest.raises(UnsupportedCodecError):  # it has no LZ4 for version 0 at all
            list(read(READERS[client], data))
        return
    got = list(read(READERS[client], data))
    assert [(g[0], g[2], g[3]) for g in got] == [(r["offset"], r["key"], r["value"]) for r in ROWS]
    if magic:
        assert [g[1] for g in got] == [r["timestamp"] for r in ROWS]


def tells_all(entry: Any) -> bool:
    """Whether the rows of an entry say everything that is in it."""
    if entry.magic < 2:
        return True
    if not entry.records:
        return False
    first, last = entry.records[0], entry.records[-1]
    stamps = [entry.base_timestamp + r.timestamp_delta for r in entry.records]
    appended = entry.attributes.timestamp_type == 1
    return bool(
        entry.last_offset_delta == last.offset_delta
        and (first.timestamp_delta == 0 or entry.attributes.has_delete_horizon)
        and entry.max_timestamp == (entry.base_timestamp if appended else max(stamps))
        and all(r.timestamp_delta == 0 for r in entry.records if appended)
    )


def is_broken_control(entry: Any) -> bool:
    """Whether a record of a control batch has the key or the value of no control record."""
    if entry.magic < 2 or not entry.attributes.is_control:
        return False
    return any(
        read_control(r.key, r.value, strict=False, file="", position=0).error is not None
        for r in entry.records
    )


@pytest.mark.slow
def test_the_reference_wrote_the_same_bytes() -> None:
    same = others = refused = 0
    versions = set()
    for file in FILES:
        for data in entries((VECTORS / file).read_bytes()):
            entry = LOG_ENTRY.parse(data)
            if entry.attributes.compression != Compression.NONE or not tells_all(entry):
                others += 1
                continue
            rows = decoded(data, EVERY)
            if is_broken_control(entry):
                with pytest.raises(RowRefused, match="not one of a control record"):
                    written(rows)
                refused += 1
                continue
            assert written(rows, batch_bytes=1 << 28) == data, file
            same += 1
            versions.add(entry.magic)
    assert same > 250
    assert others < same
    assert refused < 10
    assert versions == {0, 1, 2}


@pytest.mark.slow
def test_what_is_compressed_holds_the_same_rows() -> None:
    count = 0
    for file in FILES:
        data = (VECTORS / file).read_bytes()
        if len(data) > 100_000 or "inner" in file:
            continue
        for part in entries(data):
            entry = LOG_ENTRY.parse(part)
            if entry.attributes.compression == Compression.NONE:
                continue
            columns = [name for name in EVERY if entry.magic == 2 or name != "base_offset"]
            rows = decoded(part, columns)
            if rows.num_rows:
                again = written(rows, batch_bytes=1 << 28)
                assert decoded(again, columns).equals(rows), file
                count += 1
    assert count > 60
