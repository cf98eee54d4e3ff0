"""Fast parsers: which bytes they take, what they leave to the field-by-field parser, and that nobody sees the difference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codecgen.runtime.errors import ChecksumError, CodecError, LimitError
from codecgen.runtime.fast_path import FastPath, without_fast_paths
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY, MESSAGE, RECORD, RECORD_BATCH
from kafka_codecs.coordinator.consumer_groups import CONSUMER_GROUP_METADATA_VALUE
from kafka_codecs.metadata.metadata_record import METADATA_RECORD
from tests.laws.fast_laws import same_either_way
from tests.laws.mutations import mutated

RECORDS = [
    {"key": b"k", "value": b"v", "headers": [{"key": "h", "value": None}]},
    {"key": None, "value": b"x" * 200, "timestamp_delta": 7000},
]


def batch(compression: str = "none", **fields: Any) -> bytes:
    attributes = {"compression": compression}
    return RECORD_BATCH.build({"attributes": attributes, "records": RECORDS, **fields})


def wrapper(magic: int) -> bytes:
    inner = [
        {"magic": magic, "offset": i, "timestamp": 5, "key": None, "value": b"v"} for i in (0, 1)
    ]
    if magic == 0:
        inner = [{k: v for k, v in item.items() if k != "timestamp"} for item in inner]
    fields = {"magic": magic, "offset": 1, "attributes": {"compression": "gzip"}, "messages": inner}
    return MESSAGE.build(fields | ({"timestamp": 5} if magic else {}))


def taken(layout: Any, data: bytes | memoryview, **options: Any) -> bool:
    """Whether the fast parser of a layout reads bytes itself."""
    path: FastPath = layout.fast_path
    return path.read(Source(data, Session(**options))) is not None


SAMPLES = {
    "none": batch(),
    "gzip": batch("gzip"),
    "zstd": batch("zstd"),
    "lz4": batch("lz4"),
    "snappy": batch("snappy"),
    "no records": RECORD_BATCH.build({"records": [], "last_offset_delta": 3}),
    "message 0": MESSAGE.build({"magic": 0, "offset": 1, "key": b"k", "value": None}),
    "message 1": MESSAGE.build(
        {"magic": 1, "offset": 1, "timestamp": 5, "key": b"k", "value": b""}
    ),
    "wrapper 0": wrapper(0),
    "wrapper 1": wrapper(1),
}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_regular_batch_is_read_by_the_fast_parser(compression: str) -> None:
    assert taken(RECORD_BATCH, SAMPLES[compression])
    assert taken(RECORD_BATCH, SAMPLES[compression], strict=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_both_ways_give_the_same(name: str) -> None:
    data, r = SAMPLES[name], random.Random(name)
    same_either_way(LOG_ENTRY, data, Limits())
    for bad in mutated(data, r, 150):
        same_either_way(LOG_ENTRY, bad, Limits(decompressed=1 << 20, elements=1000))


@pytest.mark.parametrize(
    "options",
    [
        {"trace": []},
        {"trace": [], "begun": {}},
        {"limits": Limits(elements=1)},
        {"limits": Limits(elements=63)},
        {"limits": Limits(depth=4)},
        {"limits": Limits(decompressed=10)},
    ],
)
def test_what_is_asked_for_is_left_to_the_field_by_field_parser(options: dict[str, Any]) -> None:
    assert not taken(RECORD_BATCH, SAMPLES["gzip"], **options)


def test_bytes_that_are_not_regular_are_not_taken() -> None:
    data = bytearray(SAMPLES["none"])
    data[-9] ^= 1
    assert not taken(RECORD_BATCH, bytes(data))
    with pytest.raises(ChecksumError):
        RECORD_BATCH.parse(bytes(data))
    findings: list[Any] = []
    lenient = RECORD_BATCH.parse(bytes(data), strict=False, findings=findings)
    assert [type(finding) for finding in findings] == [ChecksumError]
    assert len(lenient.records) == 2


def test_a_source_that_was_not_taken_stays_as_it_was() -> None:
    data = bytearray(SAMPLES["gzip"])
    data[60] ^= 255
    session = Session()
    source = Source(b"xx" + bytes(data), session, pos=2)
    assert RECORD_BATCH.fast_path.read(source) is None
    assert (source.pos, session.section, session.depth, session.findings) == (2, None, 0, [])


def test_the_end_of_the_window_ends_what_is_read() -> None:
    data = SAMPLES["none"] + SAMPLES["gzip"]
    source = Source(data, Session())
    found: Any = RECORD_BATCH.read(source, None)
    assert found.attributes.compression.name == "NONE"
    assert source.pos == len(SAMPLES["none"])
    short = Source(data, Session(), end=len(SAMPLES["none"]) - 1)
    assert RECORD_BATCH.fast_path.read(short) is None
    with pytest.raises(CodecError):
        RECORD_BATCH.read(short, None)


def test_other_buffers_give_the_same() -> None:
    data = SAMPLES["none"]
    assert taken(RECORD_BATCH, memoryview(data))
    for buffer in (memoryview(data), bytearray(data)):
        found = RECORD_BATCH.parse(buffer)
        assert found == RECORD_BATCH.parse(data)
        assert type(found.records[0].value) is bytes


def test_the_switch_turns_fast_parsers_off() -> None:
    with without_fast_paths():
        assert not taken(RECORD_BATCH, SAMPLES["none"])
        with without_fast_paths():
            pass
        assert not taken(RECORD_BATCH, SAMPLES["none"])
    assert taken(RECORD_BATCH, SAMPLES["none"])


def test_layouts_without_versions_and_with_them_have_fast_parsers() -> None:
    assert RECORD.fast_path is not None
    assert METADATA_RECORD.fast_path is not None
    assert all(message.fast_path is not None for message in MESSAGE.cases.values())
    assert all(
        value.fast_path is not None for value in CONSUMER_GROUP_METADATA_VALUE.cases.values()
    )


def test_too_many_elements_are_refused_as_before() -> None:
    data = RECORD_BATCH.build({"records": [{"key": None, "value": None}] * 100})
    assert taken(RECORD_BATCH, data)
    assert not taken(RECORD_BATCH, data, limits=Limits(elements=99))
    with pytest.raises(LimitError):
        RECORD_BATCH.parse(data, limits=Limits(elements=99))


def test_derived_values_are_those_of_the_batch() -> None:
    found = RECORD_BATCH.parse(batch(base_offset=40, base_timestamp=1000))
    assert [record.offset for record in found.records] == [40, 41]
    assert [record.timestamp for record in found.records] == [1000, 8000]
    assert found.next_offset == 42
