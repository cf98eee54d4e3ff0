"""Values of the layouts, as Hypothesis strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
BLOBS = st.none() | st.binary(max_size=40)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@st.composite
def headers(draw: Any) -> dict[str, Any]:
    return {"key": draw(st.text(max_size=8)), "value": draw(BLOBS)}


@st.composite
def records(draw: Any) -> dict[str, Any]:
    return {
        "timestamp_delta": draw(INT64),
        "offset_delta": draw(INT32),
        "key": draw(BLOBS),
        "value": draw(BLOBS),
        "headers": draw(st.lists(headers(), max_size=3)),
    }


@st.composite
def record_batches(draw: Any, codecs: list[str] = CODECS, at_least: int = 0) -> dict[str, Any]:
    """Batches that meet the rules of their layout."""
    producer_id = draw(st.just(-1) | INT64)
    has_producer = producer_id >= 0
    is_control = draw(st.booleans())
    stamped = draw(st.sampled_from(["create_time", "log_append_time"]))
    most = max(at_least, 1) if is_control and has_producer and at_least < 2 else 6
    items = draw(st.lists(records(), min_size=at_least, max_size=most))
    deltas = st.integers(0, 2**31 - 1)
    offsets = sorted(draw(st.sets(deltas, min_size=len(items), max_size=len(items))))
    for item, offset in zip(items, offsets, strict=True):
        item["offset_delta"] = offset
    base_timestamp = max_timestamp = draw(INT64)
    if stamped == "create_time" and items:
        latest = base_timestamp + max(item["timestamp_delta"] for item in items)
        max_timestamp = (latest + 2**63) % 2**64 - 2**63
    last = draw(st.integers(max(offsets, default=0), 2**31 - 1))
    return {
        "base_offset": draw(st.integers(-(2**63), 2**63 - 1 - last)),
        "partition_leader_epoch": draw(INT32),
        "attributes": {
            "compression": draw(st.sampled_from(codecs)),
            "timestamp_type": stamped,
            "is_transactional": has_producer and draw(st.booleans()),
            "is_control": is_control and (not has_producer or len(items) < 2),
            "has_delete_horizon": draw(st.booleans()),
        },
        "last_offset_delta": last,
        "base_timestamp": base_timestamp,
        "max_timestamp": max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": draw(st.integers(0 if has_producer else -(2**15), 2**15 - 1)),
        "base_sequence": draw(deltas if has_producer else INT32),
        "records": items,
    }


@st.composite
def plain_messages(draw: Any, magic: int) -> dict[str, Any]:
    message = {
        "offset": draw(INT64),
        "magic": magic,
        "attributes": {"compression": "none"},
        "key": draw(BLOBS),
        "value": draw(BLOBS),
    }
    if magic:
        message["timestamp"] = draw(INT64)
        message["attributes"]["timestamp_type"] = draw(st.sampled_from([0, 1]))
    return message


@st.composite
def messages(draw: Any) -> dict[str, Any]:
    """Messages of both versions, wrappers too."""
    magic = draw(st.sampled_from([0, 1]))
    message: dict[str, Any] = draw(plain_messages(magic))
    codec = draw(st.sampled_from(CODECS[:4]))
    if codec != "none":
        message["attributes"]["compression"] = codec
        message["key"] = None
        del message["value"]
        inner = draw(st.lists(plain_messages(magic), min_size=1, max_size=4))
        offsets = st.sets(INT64, min_size=len(inner), max_size=len(inner))
        for item, offset in zip(inner, sorted(draw(offsets)), strict=True):
            item["offset"] = offset
        message["messages"] = inner
        if magic and message["attributes"]["timestamp_type"] == 0:
            message["timestamp"] = max(item["timestamp"] for item in inner)
        if magic == 0:
            message["offset"] = inner[-1]["offset"]
        elif message["offset"]:
            message["offset"] = max(message["offset"], inner[-1]["offset"])
    return message


@st.composite
def kip_98_message_sets(draw: Any) -> dict[str, Any]:
    inner = st.builds(
        lambda timestamp, delta, key, value, control: {
            "attributes": {
                "null_key": key is None,
                "null_value": value is None,
                "control": control,
            },
            "timestamp": timestamp,
            "offset_delta": delta,
            "key": key,
            "value": value,
        },
        INT64,
        st.integers(0, 2**32 - 1),
        BLOBS,
        BLOBS,
        st.booleans(),
    )
    return {
        "offset": draw(INT64),
        "attributes": {
            "compression": draw(st.sampled_from(CODECS[:4])),
            "transactional": draw(st.booleans()),
        },
        "offset_delta": draw(INT32),
        "max_timestamp": draw(INT64),
        "pid": draw(INT64),
        "messages": draw(st.lists(inner, max_size=5)),
    }
