"""What Kafka's readers take beyond what its writers write: a lenient reader takes it too, a strict one does not, and neither
takes more.

The bytes, and that Kafka takes them or not, are from runs of Kafka's own classes (DefaultRecord, LegacyRecord,
AbstractLegacyRecordBatch, DefaultRecordBatch of trunk): lengths below 0 are null in records and messages; varints may have
more bytes than they need; names of headers may be no UTF-8; bytes may follow a message's value, but not a record's fields;
a batch whose count is 0 may hold bytes; inner messages may be cut off, of another version, and of a wrong checksum.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from crc32c import crc32c

from codecgen.runtime.compression import compress
from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import ParseError
from codecgen.schema.loader import load, read_files
from kafka_codecs import (
    END_TXN_MARKER_V0,
    HEADER,
    LOG_ENTRY,
    MESSAGE_V0,
    MESSAGE_V1,
    OFFSET_INDEX_ENTRY,
    RECORD,
    RECORD_BATCH,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY_V0,
)
from kafka_codecs.drafts.kip_98 import KIP_98_CONTROL_MESSAGE_KEY
from tests.paths import ROOT, SCHEMAS


def of(text: str) -> bytes:
    return bytes.fromhex(text)


def record(body: str) -> bytes:
    data = of(body)
    return bytes((2 * len(data),)) + data


def message(magic: int, rest: bytes, attributes: int = 0, offset: int = 0) -> bytes:
    """An old message with a right checksum: ``rest`` is what follows the attributes, without the timestamp."""
    body = bytes((magic, attributes)) + (struct.pack(">q", 5) if magic else b"") + rest
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def batch(count: int, run: bytes, attributes: int = 0) -> bytes:
    rest = struct.pack(">hiqqqhii", attributes, 0, 5, 5, -1, -1, -1, count) + run
    head = struct.pack(">qiib", 0, len(rest) + 9, 0, 2)
    return head + struct.pack(">I", crc32c(rest)) + rest


NULL = of("ffffffff")
TAKEN: list[tuple[str, Layout, bytes, dict[str, Any]]] = [
    ("a record's length in two bytes", RECORD, of("8c00 00 00 00 01 01 00"), {"key": None}),
    ("a timestamp delta in two bytes", RECORD, record("00 8200 00 01 01 00"), {"timestamp_delta": 1}),
    ("an offset delta in five bytes", RECORD, record("00 00 8280808000 01 01 00"), {"offset_delta": 1}),
    ("an offset delta with unused bits", RECORD, record("00 00 8280808070 01 01 00"), {"offset_delta": 1}),
    ("a key of -5 bytes", RECORD, record("00 00 00 09 01 00"), {"key": None}),
    ("a value of -3 bytes", RECORD, record("00 00 00 01 05 00"), {"value": None}),
    ("a key's length in two bytes", RECORD, record("00 00 00 8200 6b 01 00"), {"key": b"k"}),
    ("a count of headers in two bytes", RECORD, record("00 00 00 01 01 8000"), {"headers": []}),
    ("attributes of a record", RECORD, record("ff 00 00 01 01 00"), {"key": None}),
    ("a header's value of -2 bytes", HEADER, of("02 68 03"), {"key": "h", "value": None}),
    ("a header's name that is no UTF-8", HEADER, of("04 ff68 01"), {"key": "\ufffdh"}),
    ("a header's length in two bytes", HEADER, of("8200 68 01"), {"key": "h"}),
    ("bytes where the count is 0", RECORD_BATCH, batch(0, b"rest"), {"records": []}),
    ("unused bits of a batch", RECORD_BATCH, batch(0, b"", -128), {"records": []}),
    ("a message's key of -100 bytes", MESSAGE_V0, message(0, of("ffffff9c") + NULL), {"key": None}),
    ("a message's value of -200 bytes", MESSAGE_V1, message(1, NULL + of("ffffff38")), {"value": None}),
    ("bytes behind a message of version 0", MESSAGE_V0, message(0, NULL + NULL + b"x"), {"value": None}),
    ("bytes behind a message of version 1", MESSAGE_V1, message(1, NULL + NULL + b"x"), {"value": None}),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "data", "found"), [t[1:] for t in TAKEN], ids=[t[0] for t in TAKEN])  # fmt: skip
def test_what_kafka_takes(layout: Layout, data: bytes, found: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        layout.parse(data)
    notes: list[ParseError] = []
    parsed = layout.parse(data, strict=False, findings=notes)
    assert {name: parsed[name] for name in found} == found
    assert notes


INNER = message(1, NULL + of("00000001 76"), offset=0)
SECOND = message(1, NULL + of("00000001 77"), offset=1)
WRAPPED: list[tuple[str, bytes, int]] = [
    ("a last message that is cut off", INNER + SECOND[:-1], 1),
    ("a size that is cut off", INNER + SECOND[:11], 1),
    ("a message of the other version", INNER + message(0, NULL + of("00000001 77"), offset=1), 2),
    ("a wrong checksum", INNER + SECOND[:12] + b"\0\0\0\0" + SECOND[16:], 2),
]


def wrapped(run: bytes, key: bytes = NULL) -> bytes:
    packed = compress("gzip", run)
    return message(1, key + struct.pack(">i", len(packed)) + packed, attributes=1, offset=50)


@pytest.mark.parametrize(("run", "count"), [w[1:] for w in WRAPPED], ids=[w[0] for w in WRAPPED])
def test_what_kafka_takes_inside_a_wrapper(run: bytes, count: int) -> None:
    assert len(LOG_ENTRY.parse(wrapped(INNER + SECOND)).messages) == 2
    with pytest.raises(ParseError):
        LOG_ENTRY.parse(wrapped(run))
    assert len(LOG_ENTRY.parse(wrapped(run), strict=False).messages) == count


def test_a_key_of_a_wrapper() -> None:
    """Kafka writes none, and does not look at it."""
    data = wrapped(INNER, of("00000001 6b"))
    with pytest.raises(ParseError):
        LOG_ENTRY.parse(data)
    assert LOG_ENTRY.parse(data, strict=False).key == b"k"


REFUSED: list[tuple[str, Layout, bytes]] = [
    ("no messages in a wrapper", MESSAGE_V1, wrapped(b"")),
    ("the first message cut off", MESSAGE_V1, wrapped(INNER[:-1])),
    ("bytes in a record behind its headers", RECORD, record("00 00 00 01 01 00 00")),
    ("a negative count of headers", RECORD, record("00 00 00 01 01 01")),
    ("a header without a name", HEADER, of("01 01")),
    ("an offset delta in six bytes", RECORD, record("00 00 828080808000 01 01 00")),
    ("a timestamp delta in eleven bytes", RECORD, record("00 8280808080808080808000 00 01 01 00")),
    ("a key's length in six bytes", RECORD, record("00 00 00 828080808000 6b 01 00")),
    ("a value's length in six bytes", RECORD, record("00 00 00 01 828080808000 76 00")),
    ("a count of headers in six bytes", RECORD, record("00 00 00 01 01 808080808000")),
    ("a record's length in six bytes", RECORD, of("8c8080808000 00 00 00 01 01 00")),
    ("a header name's length in six bytes", HEADER, of("828080808000 68 01")),
    ("a header value's length in six bytes", HEADER, of("02 68 828080808000 76")),
    ("a negative count of records", RECORD_BATCH, batch(-1, b"")),
    ("a record fewer than the count", RECORD_BATCH, batch(2, record("00 00 00 01 01 00"))),
    ("a record more than the count", RECORD_BATCH, batch(1, 2 * record("00 00 00 01 01 00"))),
    ("a codec that there is not", RECORD_BATCH, batch(1, record("00 00 00 01 01 00"), 5)),
    ("zstd in a message", MESSAGE_V1, message(1, NULL + of("00000001 76"), attributes=4)),
    ("a key longer than the message", MESSAGE_V0, message(0, of("00000009") + NULL)),
]


@pytest.mark.parametrize(("layout", "data"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_nobody_takes(layout: Layout, data: bytes) -> None:
    for strict in (True, False):
        with pytest.raises(ParseError):
            layout.parse(data, strict=strict)


WHOLE: list[tuple[Layout, bytes]] = [
    (RECORD, record("00 00 00 01 01 00")),
    (HEADER, of("02 68 01")),
    (RECORD_BATCH, batch(1, record("00 00 00 01 01 00"))),
    (OFFSET_INDEX_ENTRY, bytes(8)),
    (TIME_INDEX_ENTRY, bytes(12)),
    (TRANSACTION_INDEX_ENTRY_V0, bytes(34)),
    (KIP_98_CONTROL_MESSAGE_KEY, bytes(4)),
]


@pytest.mark.parametrize(
    ("layout", "data"),
    WHOLE,
    ids=["record", "header", "batch", "offset", "time", "transaction", "control"],
)
def test_what_is_behind_one_is_not_part_of_it(layout: Layout, data: bytes) -> None:
    """Entries stand one after the other, and records and headers too: no byte is passed over."""
    for strict in (True, False):
        assert layout.build(layout.parse(data, strict=strict)) == data
        with pytest.raises(ParseError):
            layout.parse(data + b"\0", strict=strict)


def test_control_values_may_go_on() -> None:
    """Of EndTxnMarker: "version > 0 parsed as 0, trailing bytes ignored"."""
    assert END_TXN_MARKER_V0.parse(bytes(7), strict=False).coordinator_epoch == 0


LISTED: dict[str, set[str]] = {
    "record": {"overlong_varints", "negative_null"},
    "header": {"overlong_varints", "negative_null", "invalid_utf8"},
    "message": {"negative_null", "trailing_bytes"},
    "message.messages": {"truncated_tail", "mixed_versions", "unchecked_elements"},
    "record_batch.records": {"bytes_after_none"},
    "control_record_key": {"trailing_bytes"},
    "end_txn_marker": {"trailing_bytes"},
}
"""What docs/policies.md says about records and messages; a checksum of an inner message is noted, never an error of its own."""


def test_the_pages_list_what_is_taken() -> None:
    """The pages of the formats print these lists: they name all that Kafka takes of the bytes above, and no more."""
    model, _ = load(read_files(SCHEMAS))
    assert model is not None
    found: dict[str, set[str]] = {}
    for layout in model.layouts.values():
        if layout.span.file.startswith("records/"):
            found[layout.name] = set(layout.accepts)
            for field in layout.fields:
                found[f"{layout.name}.{field.name}"] = set(field.accepts - layout.accepts)
    assert {name: accepts for name, accepts in found.items() if accepts} == LISTED
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")
    assert all(
        f"`{tolerance}`" in page for tolerances in LISTED.values() for tolerance in tolerances
    )
