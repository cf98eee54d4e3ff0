"""What Kafka's readers take in its own topics beyond what its writers write: a lenient reader takes it too, a strict one does
not, and neither takes more.

Its generated classes all read alike: a varint may have more bytes than it needs; any negative length or count is null where
null is allowed; any number but a negative one says that a structure is there; text may be no UTF-8; tagged fields may stand
in any order. Readers of the coordinators' topics ignore bytes after a key or a value, that of the metadata log refuses
them. ``tests/brokers/test_messages.py`` holds all of it against Kafka's classes.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError
from codecgen.schema.types import ArrayType, BytesType, Reference, ScalarType, StructType, TagsType
from kafka_codecs import METADATA_RECORD, REMOTE_LOG_METADATA_RECORD
from tests.brokers.message_shapes import plan
from tests.support.topic_messages import FOLDERS

TEXT = "@@@"
FRAMES = ("metadata_record", "remote_log_metadata_record")
PLANS = [
    found
    for name, layout in plan().model.layouts.items()
    if layout.span.file.startswith(FOLDERS) and not layout.is_local and name not in FRAMES
    for found in plan().versions[name]
]
NAMED = [f"{p.name}-{p.version}" for p in PLANS]
every_layout = pytest.mark.parametrize("found", PLANS, ids=NAMED)


def codec(found: LayoutPlan) -> Layout:
    import kafka_codecs

    suffix = "" if found.version is None else f"_V{found.version}"
    layout: Layout = getattr(kafka_codecs, found.name.upper() + suffix)
    return layout


def value(found: LayoutPlan) -> dict[str, Any]:
    """A value of a layout, with one element in each array and nothing null."""
    return {
        fp.name: one(fp, found)
        for fp in found.fields
        if not isinstance(fp.field.type, TagsType)
        and not fp.field.is_version
        and fp.field.const is None
    }


def one(fp: FieldPlan, found: LayoutPlan) -> Any:
    match fp.field.type:
        case ArrayType(element):
            return [item(element, found)]
        case StructType(ref):
            return item(ref, found)
        case type_:
            return item(type_, found)


def item(type_: object, found: LayoutPlan) -> Any:
    match type_:
        case Reference(name):
            plans = plan().versions[name]
            return value(next((p for p in plans if p.version == found.version), plans[0]))
        case BytesType(_, text):
            return TEXT if text else b"###"
        case ScalarType("bool"):
            return True
        case ScalarType("uuid"):
            return uuid.UUID(int=1)
        case ScalarType("f64"):
            return 0.5
        case ScalarType():
            return 85
        case other:
            raise AssertionError(other)


def refused(layout: Layout, data: bytes, *, strict: bool) -> bool:
    try:
        layout.parse(data, strict=strict)
    except CodecError:
        return True
    return False


def taken(layout: Layout, data: bytes) -> Any:
    """What a lenient reader makes of what a strict one refuses."""
    assert refused(layout, data, strict=True)
    return layout.parse(data, strict=False)


def is_flexible(found: LayoutPlan) -> bool:
    return any(isinstance(fp.field.type, TagsType) for fp in found.fields)


def has_prefix(found: LayoutPlan) -> bool:
    """Whether it is a key or a value of a coordinator, or of a consumer."""
    first = found.fields[0].field if found.fields else None
    return first is not None and (first.is_version or first.const is not None)


@every_layout
def test_what_is_built_is_parsed(found: LayoutPlan) -> None:
    layout = codec(found)
    data = layout.build(value(found))
    assert layout.build(layout.parse(data)) == data


@every_layout
def test_bytes_after_it(found: LayoutPlan) -> None:
    layout = codec(found)
    data = layout.build(value(found)) + b"x"
    assert refused(layout, data, strict=True)
    assert refused(layout, data, strict=False) is not has_prefix(found)


@every_layout
def test_text_that_is_no_utf_8(found: LayoutPlan) -> None:
    layout = codec(found)
    data = layout.build(value(found))
    if TEXT.encode() in data:
        again = taken(layout, data.replace(TEXT.encode(), b"@\xff@"))
        assert "@\ufffd@" in str(again)


@every_layout
def test_varints_with_more_bytes_than_they_need(found: LayoutPlan) -> None:
    """The number of tagged fields ends every flexible layout."""
    layout = codec(found)
    plain = {n: v for n, v in value(found).items() if found.field(n).field.tag is None}
    data = layout.build(plain)
    if is_flexible(found):
        assert data.endswith(b"\0")
        assert taken(layout, data[:-1] + b"\x80\0") == layout.parse(data)
    else:
        assert refused(layout, data[:-1], strict=False)


@every_layout
def test_tagged_fields_in_any_order(found: LayoutPlan) -> None:
    layout = codec(found)
    plain = {n: v for n, v in value(found).items() if found.field(n).field.tag is None}
    if is_flexible(found):
        data = layout.build(plain)[:-1]
        in_order = layout.parse(data + bytes.fromhex("02 e907 00 ea07 01 78"))
        assert [tag.tag for tag in in_order.unknown_tags] == [1001, 1002]
        loose = taken(layout, data + bytes.fromhex("02 ea07 01 78 e907 00"))
        assert [tag.tag for tag in loose.unknown_tags] == [1002, 1001]


NEGATIVE: dict[str, tuple[str, str]] = {
    "group_metadata_value@0": ("protocol leader", "0000 0000 00000007 fffe 8000 00000000"),
    "group_metadata_value@1": ("protocol leader", "0001 0000 00000007 fffe 8000 00000000"),
    "group_metadata_value@2": (
        "protocol leader",
        "0002 0000 00000007 fffe 8000 0000000000000000 00000000",
    ),
    "group_metadata_value@3": (
        "protocol leader",
        "0003 0000 00000007 fffe 8000 0000000000000000 00000000",
    ),
    "transaction_log_value@0": (
        "transaction_partitions",
        "0000 0000000000000001 0002 00000003 00 fffffffb 0000000000000004 0000000000000005",
    ),
    "consumer_protocol_assignment@0": ("user_data", "0000 00000000 fffffffe"),
    "consumer_protocol_assignment@3": ("user_data", "0003 00000000 80000000"),
    "consumer_protocol_subscription@0": ("user_data", "0000 00000000 fffffffe"),
    "consumer_protocol_subscription@3": (
        "user_data rack_id",
        "0003 00000000 fffffffe 00000000 00000001 fffe",
    ),
    "streams_group_member_metadata_value@0": (
        "user_endpoint",
        "0000 00 00 01 01 00000001 00000002 01 fe 01 00",
    ),
}
"""Lengths and counts below -1: the fields that are null."""


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_lengths_are_null(name: str) -> None:
    base, _, version = name.partition("@")
    [found] = [p for p in PLANS if p.name == base and p.version == int(version)]
    fields, text = NEGATIVE[name]
    parsed = taken(codec(found), bytes.fromhex(text))
    assert [parsed[field] for field in fields.split()] == [None] * len(fields.split())


NOT_NULL = {
    "offset_commit_value@0": "0000 0000000000000001 ffff 0000000000000002",
    "offset_commit_key": "0001 ffff 0000 00000001",
    "transaction_log_key": "0000 fffe",
    "consumer_protocol_subscription@1": "0001 ffffffff 00000000 00000000",
    "consumer_protocol_subscription@2": "0002 00000000 00000000 ffffffff 00000000",
    "group_metadata_value@0": "0000 ffff 00000007 0000 0000 00000000",
    "group_metadata_value@1": "0001 0000 00000007 0000 0000 ffffffff",
    "topic_record@0": "00 00000000000000000000000000000001 00",
}
"""Null where none is allowed."""


@pytest.mark.parametrize("name", NOT_NULL)
def test_null_where_none_is_allowed(name: str) -> None:
    base, _, version = name.partition("@")
    wanted = int(version) if version else None
    [found] = [p for p in PLANS if (p.name, p.version) == (base, wanted)]
    assert refused(codec(found), bytes.fromhex(NOT_NULL[name]), strict=False)


def test_a_structure_that_is_there() -> None:
    """By any number that is not negative."""
    [found] = [p for p in PLANS if p.name == "streams_group_member_metadata_value"]
    text = "0000 00 00 01 01 00000001 00000002 01 {} 0268 0050 00 01 00"
    there = codec(found).parse(bytes.fromhex(text.format("01")))
    for number in ("00", "02", "7f"):
        assert taken(codec(found), bytes.fromhex(text.format(number))) == there
    assert there.user_endpoint.port == 80


TOPIC = "00000000000000000000000000000001"
FRAMES_OF: list[tuple[Layout, str]] = [
    (METADATA_RECORD, f"0278{TOPIC}00"),
    (REMOTE_LOG_METADATA_RECORD, f"0278{TOPIC}00000002 00 00000001 0000000000000003 01 00"),
]
"""The frames, each with the bytes of a record of its type 2: a topic, and a partition that is deleted."""
every_frame = pytest.mark.parametrize(("frame", "body"), FRAMES_OF, ids=["metadata", "remote"])
FRAMES_TAKEN = ("8100 02 00", "01 8200 00", "01 02 808000")


@every_frame
@pytest.mark.parametrize("text", FRAMES_TAKEN)
def test_varints_of_a_frame(frame: Layout, body: str, text: str) -> None:
    again = taken(frame, bytes.fromhex(text + body))
    assert frame.build(again) == bytes.fromhex(f"01 02 00 {body}")


FRAMES_REFUSED = {
    "frame 0": "00 02 00 {}",
    "frame 2": "02 02 00 {}",
    "a version above 32767": "01 02 808002 {}",
    "a type in six bytes": "01 828080808000 00 {}",
    "a version in six bytes": "01 02 808080808000 {}",
    "a frame version in six bytes": "818080808000 02 00 {}",
    "bytes after the record": "01 02 00 {} 00",
    "nothing": "",
    "no version": "01 02",
    "no record": "01 02 00",
}


@every_frame
@pytest.mark.parametrize("name", FRAMES_REFUSED)
@pytest.mark.parametrize("strict", [True, False])
def test_frames_that_nobody_takes(frame: Layout, body: str, name: str, strict: bool) -> None:
    assert frame.parse(bytes.fromhex(f"01 02 00 {body}"))
    data = bytes.fromhex(FRAMES_REFUSED[name].format(body))
    assert refused(frame, data, strict=strict)


@pytest.mark.parametrize(
    "text", ["01 63 00 cafe", "01 ffff01 00", "01 02 01 cafe", "01 02 ffff01", "01 06 00 0278"]
)
def test_records_that_nobody_knows_are_kept(text: str) -> None:
    """Of a type or a version that there is not: the record is bytes."""
    data = bytes.fromhex(text)
    for frame in (METADATA_RECORD, REMOTE_LOG_METADATA_RECORD):
        for strict in (True, False):
            found = frame.parse(data, strict=strict)
            assert isinstance(found.body, bytes)
            assert frame.build(found) == data


def test_the_builder_knows_the_version_of_the_frame() -> None:
    nothing = {"api_key": "no_op_record", "version": 0, "body": {}}
    assert METADATA_RECORD.build(nothing) == bytes.fromhex("01140000")
    gone = {"topic_id_partition": {"name": "", "id": uuid.UUID(int=0), "partition": 0}}
    whole = gone | {"broker_id": 0, "event_timestamp_ms": 0, "remote_partition_delete_state": 0}
    value = {"api_key": 2, "version": 0, "body": whole}
    assert REMOTE_LOG_METADATA_RECORD.build(value)[:3] == bytes.fromhex("010200")


def test_the_frame_of_remote_log_metadata() -> None:
    data = bytes.fromhex(f"01 02 00 0278{TOPIC}00000002 00 00000001 0000000000000003 01 00")
    found = REMOTE_LOG_METADATA_RECORD.parse(data)
    assert found.body.topic_id_partition.name == "x"
    assert found.body.remote_partition_delete_state.name == "DELETE_PARTITION_STARTED"
    assert REMOTE_LOG_METADATA_RECORD.build(found) == data
