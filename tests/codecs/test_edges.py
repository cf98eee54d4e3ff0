"""Numbers at the edges of what the formats allow, as literals: where sequence numbers wrap, where a size is too small, what
a builder writes when nobody says anything.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from crc32c import crc32c

from codecgen.runtime.errors import (
    BuildError,
    LengthError,
    ParseError,
    TruncatedError,
    ValueRefused,
)
from codecgen.schema.loader import load, read_files
from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER_V0,
    LOG_ENTRY,
    MESSAGE_V0,
    MESSAGE_V1,
    RECORD,
    RECORD_BATCH,
)
from kafka_codecs.drafts.kip_98 import KIP_98_MESSAGE_SET
from kafka_codecs.records import message, record_batch
from tests.paths import SCHEMAS

MOST = 2147483647

SEQUENCES = [
    (MOST, 0, MOST),
    (MOST, 1, 0),
    (MOST - 1, 1, MOST),
    (MOST - 1, 2, 0),
    (MOST - 1, 3, 1),
    (0, MOST, MOST),
    (1, MOST, 0),
    (2, MOST, 1),
    (5, 0, 5),
    (0, 0, 0),
    (MOST, MOST, MOST - 1),
    (1073741823, 1073741824, MOST),
    (1073741824, 1073741824, 0),
    (3, -1, -2147483646),
    (0, -1, MOST),
]
"""What ``DefaultRecordBatch.incrementSequence`` of kafka-clients 4.4.0 gives for a number and a step."""


def batch(base_sequence: int, last_offset_delta: int, offset_delta: int) -> Any:
    """A parsed batch of one record: 61 bytes of a header in Kafka's order, then the record."""
    record = RECORD.build({"offset_delta": offset_delta, "key": None, "value": None})
    rest = struct.pack(">hiqqqhii", 0, last_offset_delta, 7, 7, 1, 1, base_sequence, 1) + record
    head = struct.pack(">qiib", 100, len(rest) + 9, 0, 2)
    return RECORD_BATCH.parse(head + struct.pack(">I", crc32c(rest)) + rest, strict=False)


@pytest.mark.parametrize(("base", "step", "expected"), SEQUENCES)
def test_sequences_wrap_where_kafkas_do(base: int, step: int, expected: int) -> None:
    parsed = batch(base, step, step)
    assert record_batch.last_sequence(parsed) == expected
    assert record_batch.records_sequence(parsed, parsed.records[0]) == expected


@pytest.mark.parametrize("step", [0, 1, 5, MOST])
def test_without_a_sequence_there_is_none(step: int) -> None:
    """-1 is Kafka's NO_SEQUENCE. Of another negative one the batch's last is counted on, the records have none."""
    parsed = batch(-1, step, step)
    assert record_batch.last_sequence(parsed) == -1
    assert record_batch.records_sequence(parsed, parsed.records[0]) == -1
    parsed = batch(-2, 5, 5)
    assert record_batch.last_sequence(parsed) == 3
    assert record_batch.records_sequence(parsed, parsed.records[0]) == -1


def test_offsets_of_a_batch() -> None:
    parsed = batch(-1, 9, 4)
    assert record_batch.records_offset(parsed, parsed.records[0]) == 104
    assert record_batch.last_offset(parsed) == 109
    assert record_batch.next_offset(parsed) == 110


def test_what_a_batch_has_when_nobody_says_anything() -> None:
    """Kafka's NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP, NO_PRODUCER_ID, NO_PRODUCER_EPOCH and NO_SEQUENCE are all -1."""
    record = {"offset_delta": 6, "key": None, "value": None}
    built = RECORD_BATCH.build({"records": [record]})
    assert built[:8] == bytes(8)  # the broker sets the offset
    assert built[12:16] == b"\xff" * 4
    assert built[16] == 2
    assert built[21:27] == bytes.fromhex("0000 00000006")
    assert built[27:57] == b"\xff" * 30
    assert built[57:61] == bytes.fromhex("00000001")
    # length 6, no attributes, timestamp delta 0, offset delta 6, two nulls, no headers
    assert built[61:] == bytes.fromhex("0c 00 00 0c 01 01 00")


def test_the_last_offset_delta_is_that_of_the_last_record() -> None:
    records = [{"offset_delta": delta, "key": None, "value": None} for delta in (4, 9, 11)]
    assert RECORD_BATCH.build({"records": records})[23:27] == bytes.fromhex("0000000b")


def test_a_delete_horizon_is_a_time_in_ms() -> None:
    """2023 in milliseconds has 41 bits. Bit 6 of the attributes says that it is in the base timestamp's place."""
    fields = {"base_timestamp": 1700000500000, "last_offset_delta": 0, "records": []}
    for flag, expected in ((True, 1700000500000), (False, None)):
        data = RECORD_BATCH.build(fields | {"attributes": {"has_delete_horizon": flag}})
        assert data[22] == (0x40 if flag else 0)
        assert record_batch.delete_horizon(RECORD_BATCH.parse(data)) == expected


def test_what_a_message_has_when_nobody_says_anything() -> None:
    body = bytes.fromhex("00 00 ffffffff ffffffff")
    crc = struct.pack(">I", zlib.crc32(body))
    assert MESSAGE_V0.build({"key": None, "value": None}) == bytes(11) + b"\x0e" + crc + body
    body = bytes.fromhex("01 00 ffffffffffffffff ffffffff ffffffff")
    crc = struct.pack(">I", zlib.crc32(body))
    assert MESSAGE_V1.build({"key": None, "value": None}) == bytes(11) + b"\x16" + crc + body


def test_control_records_are_of_version_0() -> None:
    assert CONTROL_RECORD_KEY.build({"type": "commit"}).hex() == "00000001"
    assert END_TXN_MARKER_V0.build({"coordinator_epoch": 9}).hex() == "000000000009"


@pytest.mark.parametrize("layout", [CONTROL_RECORD_KEY, END_TXN_MARKER_V0])
def test_versions_of_control_records(layout: Any) -> None:
    """Kafka's readers refuse negative ones, and take later ones for 0, with bytes after what they know."""
    rest = bytes(layout.size - 2)
    assert layout.parse(bytes(2) + rest).version == 0
    for strict in (True, False):
        for version in (-1, -32768):
            with pytest.raises(ValueRefused) as caught:
                layout.parse(struct.pack(">h", version) + rest, strict=strict)
            assert caught.value.where.path == "version"
    for version in (1, 32767):
        with pytest.raises(ValueRefused):
            layout.parse(struct.pack(">h", version) + rest)
        assert layout.parse(struct.pack(">h", version) + rest, strict=False).version == version
    with pytest.raises(ParseError):
        layout.parse(bytes(2) + rest + b"\x07")
    assert layout.parse(bytes(2) + rest + b"\x07", strict=False).version == 0


@pytest.mark.parametrize("size", [13, 14])
@pytest.mark.parametrize(("magic", "path"), [(0, "message_size"), (1, "message_size"), (2, "batch_length")])  # fmt: skip
def test_an_entry_has_at_least_14_bytes(magic: int, path: str, size: int) -> None:
    """Kafka's RECORD_OVERHEAD_V0: below 14 its readers stop before they look at the magic byte."""
    data = struct.pack(">qi", 0, size) + bytes(4) + bytes((magic,)) + bytes(size - 5)
    for strict in (True, False):
        try:
            LOG_ENTRY.parse(data, strict=strict)
            refused = False
        except ParseError as error:
            refused = isinstance(error, ValueRefused) and error.where.path == path
        assert refused == (size < 14)


def test_sizes_have_a_sign() -> None:
    for layout in (MESSAGE_V0, RECORD_BATCH, KIP_98_MESSAGE_SET):
        for size in (-1, -(1 << 31)):
            data = struct.pack(">qi", 0, size) + bytes(60)
            with pytest.raises((LengthError, ValueRefused)) as caught:
                layout.parse(data)
            assert f"{size}" in str(caught.value) or "negative" in str(caught.value)


def limits() -> dict[str, int]:
    arrays = {
        "batch": RECORD_BATCH.by_name["records"],
        "message 0": MESSAGE_V0.by_name["messages"],
        "message 1": MESSAGE_V1.by_name["messages"],
        "draft": KIP_98_MESSAGE_SET.by_name["messages"],
    }
    return {name: field.codec.compressed.limit for name, field in arrays.items()}


def test_a_run_may_decompress_to_256_mib() -> None:
    """As docs/policies.md and docs/spark/options.md promise."""
    assert set(limits().values()) == {256 << 20}


# ---------------------------------------------------------------- wrappers


def wrapper(magic: int, offsets: list[int], offset: int, **more: Any) -> Any:
    """A parsed wrapper of messages with these offsets."""
    inner: list[dict[str, Any]] = [
        {"offset": o, "magic": magic, "key": None, "value": b"v"}
        | ({"timestamp": 50 + i} if magic else {})
        for i, o in enumerate(offsets)
    ]
    layout = (MESSAGE_V0, MESSAGE_V1)[magic]
    value = {"offset": offset, "attributes": {"compression": "gzip"}, "key": None}
    if magic:
        value["timestamp"] = inner[-1]["timestamp"]
    return layout.parse(layout.build(value | {"messages": inner} | more))


def test_offsets_in_a_wrapper() -> None:
    """Of version 1 they are relative to the last one, whose offset is the wrapper's, unless the wrapper's is 0
    (``DeepRecordsIterator`` of AbstractLegacyRecordBatch)."""
    found = wrapper(1, [0, 1, 4], 104)
    assert [message.messages_offset(found, m) for m in found.messages] == [100, 101, 104]
    found = wrapper(1, [7, 8, 9], 0)
    assert [message.messages_offset(found, m) for m in found.messages] == [7, 8, 9]
    found = wrapper(0, [7, 8, 9], 9)
    assert [message.messages_offset(found, m) for m in found.messages] == [7, 8, 9]
    for offset in (1, 5, -1):
        with pytest.raises(BuildError, match="an array of 2 is not allowed"):
            wrapper(1, [5, 6], offset)
    far = 1 << 40
    found = wrapper(1, [0, 1], far)
    assert [message.messages_offset(found, m) for m in found.messages] == [far - 1, far]
    found = wrapper(0, [far, far + 1], far + 1)
    assert [message.messages_offset(found, m) for m in found.messages] == [far, far + 1]


def test_timestamps_in_a_wrapper() -> None:
    found = wrapper(1, [0, 1], 9)
    assert [message.messages_timestamp(found, m) for m in found.messages] == [50, 51]
    with pytest.raises(BuildError, match="largest_timestamp"):
        wrapper(1, [0, 1], 9, timestamp=70)
    append = {"compression": "gzip", "timestamp_type": "log_append_time"}
    found = wrapper(1, [0, 1], 9, timestamp=70, attributes=append)
    assert [message.messages_timestamp(found, m) for m in found.messages] == [70, 70]
    now = 1700000000000
    found = wrapper(1, [0, 1], 9, timestamp=now, attributes=append)
    assert [message.messages_timestamp(found, m) for m in found.messages] == [now, now]
    found = wrapper(0, [0, 1], 1)
    assert [message.messages_timestamp(found, m) for m in found.messages] == [-1, -1]


def test_a_wrapper_has_no_key_and_something_in_it() -> None:
    """The key of a wrapper is null; Kafka's reader asks for the last inner message, and there has to be one."""
    inner = {"magic": 1, "timestamp": 5, "key": None, "value": b""}
    given = {"attributes": {"compression": "gzip"}, "timestamp": 5, "key": None}
    assert len(MESSAGE_V1.parse(MESSAGE_V1.build(given | {"messages": [inner]})).messages) == 1
    with pytest.raises(BuildError):
        MESSAGE_V1.build(given | {"messages": []})
    with pytest.raises(BuildError):
        MESSAGE_V1.build(given | {"key": b"k", "messages": [inner]})
    with pytest.raises(BuildError):
        MESSAGE_V1.build(given | {"messages": [inner | given | {"messages": [inner]}]})


def test_a_header_has_a_name() -> None:
    """Its length is never negative: null is for values."""
    good = RECORD.build(
        {
            "offset_delta": 0,
            "key": None,
            "value": None,
            "headers": [{"key": "h", "value": None}],
        }
    )
    assert good == bytes.fromhex("12 00 00 00 01 01 02 02 68 01")
    bad = bytes.fromhex("10 00 00 00 01 01 02 01 01")
    for strict in (True, False):
        with pytest.raises(ParseError):
            RECORD.parse(bad, strict=strict)


def test_numbers_of_a_record_have_a_sign_and_64_bits() -> None:
    record = RECORD.parse(_record(bytes.fromhex("00 ffffffffffffffffff01 ffffffff0f 01 01 00")))
    assert record.timestamp_delta == -(1 << 63)
    assert record.offset_delta == -(1 << 31)
    with pytest.raises(ParseError):
        RECORD.parse(_record(bytes.fromhex("00 00 00 01 01")))


def _record(body: bytes) -> bytes:
    return bytes((2 * len(body),)) + body


def test_truncated_entries_say_so() -> None:
    with pytest.raises(TruncatedError):
        LOG_ENTRY.parse(bytes(16))


def test_offsets_and_times_have_64_bits_and_sequences_32() -> None:
    """Kafka's ``long offset()``, ``long timestamp()`` and ``int sequence()``; of a batch likewise."""
    model, _ = load(read_files(SCHEMAS))
    assert model is not None
    found = {
        f"{layout.name}.{value.array}.{value.name}"
        if value.array
        else f"{layout.name}.{value.name}": value.type
        for layout in model.layouts.values()
        for value in layout.derived
    }
    sequences = {"record_batch.last_sequence", "record_batch.records.sequence"}
    assert {name for name, type_ in found.items() if type_ == "i32"} == sequences
    assert {type_ for name, type_ in found.items() if name not in sequences} == {"i64"}
