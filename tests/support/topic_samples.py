"""Samples of internal topics, and their records written again."""

from __future__ import annotations

from typing import Any

from codecgen.runtime.construct import Layout
from kafka_codecs import (
    CONSUMER_OFFSETS_KEY,
    CONSUMER_OFFSETS_VALUE,
    METADATA_RECORD,
    REMOTE_LOG_METADATA_RECORD,
    SHARE_GROUP_STATE_KEY,
    SHARE_GROUP_STATE_VALUE,
    TRANSACTION_STATE_KEY,
    TRANSACTION_STATE_VALUE,
)

COORDINATED: dict[str, tuple[Any, Any]] = {
    "__consumer_offsets": (CONSUMER_OFFSETS_KEY, CONSUMER_OFFSETS_VALUE),
    "__transaction_state": (TRANSACTION_STATE_KEY, TRANSACTION_STATE_VALUE),
    "__share_group_state": (SHARE_GROUP_STATE_KEY, SHARE_GROUP_STATE_VALUE),
}


FRAMED: dict[str, Any] = {
    "__cluster_metadata": METADATA_RECORD,
    "__remote_log_metadata": REMOTE_LOG_METADATA_RECORD,
}


def again(layout: Layout, data: bytes | None) -> Any:
    """The value of bytes that builds the same bytes."""
    assert data is not None
    value = layout.parse(data)
    assert layout.build(value) == data
    return value
