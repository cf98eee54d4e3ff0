"""Fast parsers and builders: what they take, what they leave to the field-by-field codec, and that nobody sees the difference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import BuildError, ChecksumError, CodecError, LimitError
from codecgen.runtime.fast_path import FastPath, without_fast_paths
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY, MESSAGE, RECORD, RECORD_BATCH
from kafka_codecs.coordinator.consumer_groups import CONSUMER_GROUP_METADATA_VALUE
from kafka_codecs.metadata.metadata_record import METADATA_RECORD
from kafka_codecs.records.enums import Compression
from tests.laws.fast_laws import built_either_way, same_either_way
from tests.laws.mutations import mutated, mutated_values

RECORDS: list[dict[str, Any]] = [
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


@pytest.mark.slow
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


# ------------------------------------------------------------ building

BATCH: dict[str, Any] = {"attributes": {"compression": Compression.GZIP}, "records": RECORDS}
GIVEN: dict[str, Any] = {
    "offsets": {
        **BATCH,
        "records": [{**RECORDS[0], "offset": 7, "timestamp": 5}, {**RECORDS[1], "offset": 8}],
    },
    "no records": {"records": [], "last_offset_delta": 3},
    "a name": {"attributes": {"compression": "zstd"}, "records": RECORDS},
    "a tuple": {"records": tuple(RECORDS)},
    **{name: LOG_ENTRY.parse(data) for name, data in SAMPLES.items() if name != "no records"},
}


def built(layout: Any, value: Any, level: int | None = None, depth: int = 32) -> bytes | None:
    """What the fast builder of a layout makes of a value itself, or None."""
    path: FastPath = layout.fast_path
    return path.write(value, level, depth)


@pytest.mark.parametrize(
    "name", [name for name in GIVEN if "wrapper" not in name and "message" not in name]
)
def test_a_regular_batch_is_built_by_the_fast_builder(name: str) -> None:
    data = built(RECORD_BATCH, GIVEN[name])
    assert data is not None
    with without_fast_paths():
        assert data == RECORD_BATCH.build(GIVEN[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_both_ways_build_the_same(name: str) -> None:
    value, r = GIVEN[name], random.Random(name)
    codec: Any = LOG_ENTRY if "magic" in value else RECORD_BATCH
    assert built_either_way(codec, value)
    for other in mutated_values(value, r, 150):
        built_either_way(codec, other)


@pytest.mark.parametrize(
    "change",
    [
        {"base_offset": True},
        {"base_offset": 1 << 63},
        {"base_offset": 1.0},
        {"base_offset": Compression.GZIP},
        {"base_offset": None},
        {"magic": True},
        {"magic": 2.5},
        {"magic": 1},
        {"unknown": 1},
        {"_known": 1},
        {"attributes": {"compression": 5}},
        {"attributes": {"compression": True}},
        {"attributes": {"is_control": 1}},
        {"attributes": {"unused": 1}},
        {"attributes": {"unknown": 0}},
        {"attributes": []},
        {"producer_id": 5},
        {"last_offset_delta": 0},
        {"max_timestamp": 1},
        {"records": None},
        {"records": iter(RECORDS)},
        {"records": [*RECORDS, None]},
        {"records": [{**RECORDS[0], "key": bytearray(b"k")}]},
        {"records": [{**RECORDS[0], "key": memoryview(b"k")}]},
        {"records": [{**RECORDS[0], "key": "k"}]},
        {"records": [{**RECORDS[0], "headers": [{"key": "\ud800", "value": None}]}]},
        {"records": [{**RECORDS[0], "timestamp_delta": 1 << 63}]},
        {"records": [{**RECORDS[0], "offset": 5, "offset_delta": 4}], "base_offset": 0},
        {"records": [{**RECORDS[0], "offset_delta": i} for i in (1, 0)]},
    ],
)
def test_values_that_are_not_regular_are_left_to_the_field_by_field_builder(
    change: dict[str, Any],
) -> None:
    value = {"records": RECORDS, **change}
    assert built(RECORD_BATCH, value) is None
    built_either_way(RECORD_BATCH, value)


def test_lengths_counts_and_checksums_that_are_given_are_worked_out_anew() -> None:
    value = {"records": RECORDS, "batch_length": 1, "crc": "any", "record_count": -5}
    assert built(RECORD_BATCH, value) == RECORD_BATCH.build({"records": RECORDS})


def test_a_lenient_build_breaks_rules_field_by_field() -> None:
    value = {"records": RECORDS, "last_offset_delta": 0}
    assert RECORD_BATCH.build(value, strict=False)
    with pytest.raises(BuildError, match="offsets_of_count"):
        RECORD_BATCH.build(value)


def test_a_compression_level_is_that_of_the_session() -> None:
    value = {
        "attributes": {"compression": "gzip"},
        "records": [{"key": None, "value": b"ab" * 9000}],
    }
    for level in (1, 9):
        data = built(RECORD_BATCH, value, level=level)
        assert data == RECORD_BATCH.build(value, level=level)
        with without_fast_paths():
            assert data == RECORD_BATCH.build(value, level=level)
    assert built(RECORD_BATCH, value, level=1) != built(RECORD_BATCH, value, level=9)


def test_the_depth_of_a_session_limits_fast_builders() -> None:
    assert built(RECORD_BATCH, BATCH, depth=5) is not None
    assert built(RECORD_BATCH, BATCH, depth=4) is None
    assert RECORD_BATCH.write(BATCH, None, Session(limits=Limits(depth=5)))
    with pytest.raises(BuildError, match="nested more than 4 deep"):
        RECORD_BATCH.write(BATCH, None, Session(limits=Limits(depth=4)))


def test_the_switch_turns_fast_builders_off() -> None:
    with without_fast_paths():
        assert built(RECORD_BATCH, BATCH) is None
    assert built(RECORD_BATCH, BATCH) is not None


def test_given_values_stay_as_they_are() -> None:
    records = [{"key": None, "value": None, "offset": 4}, {"key": None, "value": None, "offset": 9}]
    assert RECORD_BATCH.parse(RECORD_BATCH.build({"records": records})).last_offset == 9
    assert records[0] == {"key": None, "value": None, "offset": 4}


def test_a_subclass_of_a_mapping_is_built_field_by_field() -> None:
    class Upper(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            return super().get(name.upper(), default)

    value = Upper(RECORDS[0], offset_delta=0)
    assert built(RECORD, value) is None
    assert RECORD.build(value) == RECORD.build(dict(value))


def test_a_member_of_another_enum_is_a_number() -> None:
    class Other(Enumeration):
        ONE = 1

    assert built_either_way(
        RECORD_BATCH, {"attributes": {"compression": Other.ONE}, "records": RECORDS}
    )


def test_nearly_all_layouts_have_fast_builders() -> None:
    assert MESSAGE.cases[1].fast_path.build is not None
    assert METADATA_RECORD.fast_path.build is not None
    assert all(v.fast_path.build is not None for v in CONSUMER_GROUP_METADATA_VALUE.cases.values())
