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
    return {
        "base_offset": draw(INT64),
        "partition_leader_epoch": draw(INT32),
        "attributes": {
            "compression": draw(st.sampled_from(codecs)),
            "timestamp_type": draw(st.sampled_from(["create_time", "log_append_time"])),
            "is_transactional": draw(st.booleans()),
            "is_control": draw(st.booleans()),
            "has_delete_horizon": draw(st.booleans()),
        },
        "last_offset_delta": draw(INT32),
        "base_timestamp": draw(INT64),
        "max_timestamp": draw(INT64),
        "producer_id": draw(INT64),
        "producer_epoch": draw(st.integers(-(2**15), 2**15 - 1)),
        "base_sequence": draw(INT32),
        "records": draw(st.lists(records(), min_size=at_least, max_size=6)),
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
        message["messages"] = inner
        if magic and message["offset"]:
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
