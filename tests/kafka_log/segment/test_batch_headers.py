"""The walk over headers: what it gives, where it ends, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.errors import LengthError, TruncatedError
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import SegmentReader
from kafka_log.segment.batch_headers import entries, headers
from kafka_log.segment.framing import HeaderColumns
from tests.paths import SAMPLES

COLUMNS = ("position", "size", "magic", "base_offset", "last_offset", "producer_id", "is_control")


def message(offset: int, attributes: int = 0) -> bytes:
    data = LOG_ENTRY.build({"magic": 0, "offset": offset, "key": None, "value": b"v"})
    return data[:17] + bytes([attributes]) + data[18:]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.log")), ids=lambda p: p.parent.name)
def test_they_are_those_of_the_batches(path: Path) -> None:
    found = list(headers(path, COLUMNS))
    expected = [
        tuple(getattr(batch, name) for name in COLUMNS)
        for batch in SegmentReader(path, records=False)
    ]
    wrappers = [batch.base_offset for batch in SegmentReader(path) if not batch.has_base_offset]
    assert [row for row in found if row[3] is not None] == [
        row for row, whole in zip(expected, found, strict=True) if whole[3] is not None
    ]
    assert len([row for row in found if row[3] is None]) == len(wrappers)


def test_it_ends_where_an_entry_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "tail.log"
    path.write_bytes(message(1) + message(2)[:-1])
    assert [row[0] for row in headers(path, ("last_offset",))] == [1]
    path.write_bytes(message(1) + b"\0" * 17)
    assert len(list(entries(path))) == 1


def test_what_is_no_entry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(message(1) + b"\0" * 40)
    found = entries(path)
    assert next(found).position == 0
    with pytest.raises(LengthError, match="message_size is 0"):
        next(found)


def test_a_header_that_its_length_cuts_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.log"
    data = RECORD_BATCH.build({"last_offset_delta": 0, "records": []})
    path.write_bytes(data[:8] + (20).to_bytes(4, "big") + data[12:32])
    assert list(headers(path, ("base_offset",))) == [(0,)]
    with pytest.raises(TruncatedError, match="the header is cut off"):
        list(headers(path, ("record_count",)))


def test_oddities_do_not_add_up(tmp_path: Path) -> None:
    path = tmp_path / "unknown.log"
    path.write_bytes(b"".join(message(i, attributes=5) for i in range(4)))
    columns = HeaderColumns(("codec", "base_offset"), str(path))
    assert [columns.read(entry) for entry in entries(path)] == [(5, None)] * 4
    assert columns.session.findings == []
