"""Rejection of records of ``__cluster_metadata`` and ``__remote_log_metadata`` with an unknown type or version.

No view has a row for such a record, so its content would be missing. Kafka rejects these records too; in topics of coordinators
it skips records of unknown types.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from codecgen.runtime.layout import Layout
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import (
    METADATA_BODY,
    METADATA_RECORD,
    REMOTE_LOG_METADATA_BODY,
    REMOTE_LOG_METADATA_RECORD,
)
from kafka_log.logs.names import CLUSTER_METADATA, REMOTE_LOG_METADATA
from kafka_log.logs.partitions import Segment

_FRAMED: Mapping[str, Mapping[Any, Mapping[int, object]]] = {
    CLUSTER_METADATA: METADATA_BODY,
    REMOTE_LOG_METADATA: REMOTE_LOG_METADATA_BODY,
}
_KNOWN: Mapping[str, Mapping[int, Mapping[int, object]]] = {
    topic: {int(kind): versions for kind, versions in bodies.items()}
    for topic, bodies in _FRAMED.items()
}

_FRAMES: Mapping[str, Layout[Any, Any]] = {
    CLUSTER_METADATA: METADATA_RECORD,
    REMOTE_LOG_METADATA: REMOTE_LOG_METADATA_RECORD,
}
_NUMBERS = 3
"""Number of integers in a frame: its version, the type of the record and the version of the record."""


class RecordRefused(ValueRefused):
    """A record of an internal topic that cannot be read. ``offset`` is its offset."""

    def __init__(self, reason: str, where: Where | None = None, offset: int = -1) -> None:
        """Set the offset in addition to reason and place."""
        super().__init__(reason, where)
        self.offset = offset


def refuse_unknown(topic: str, batch: pa.RecordBatch, segment: Segment) -> None:
    """Raise RecordRefused for the first record of an internal topic without a value, or with an
    unknown type or version. ``batch`` has the columns offset and value. A value whose bytes end
    before them passes. Do nothing for topics whose values do not begin with type and version.
    """
    if topic not in _KNOWN:
        return
    values = batch.column("value")
    # Of thousands of records few begin differently, and most numbers are one byte.
    heads = pc.binary_slice(values, 0, _NUMBERS)
    if all(_is_known(topic, head) for head in heads.unique().to_pylist()):
        return
    for offset, value in zip(batch.column("offset").to_pylist(), values.to_pylist(), strict=True):
        reason = describe_unknown(topic, value)
        if reason is not None:
            where = Where(path="value", file=os.fspath(segment.path))
            raise RecordRefused(f"the record at offset {offset}: {reason}", where, offset)


def _is_known(topic: str, head: bytes | None) -> bool:
    """Return whether the first bytes of a value are all below 0x80 and are a known type and version,
    or end before them. Return False for None. Raise KeyError for a topic whose values do not begin
    with type and version.
    """
    return (
        head is not None and max(head, default=0) < 0x80 and describe_unknown(topic, head) is None
    )


def describe_unknown(topic: str, value: bytes | None) -> str | None:
    """Return why the type or version of a record is unknown, or that it has no value, as a
    sentence. Return None if both are known, or cannot be read, because its bytes end before them or
    a number is too long. Raise KeyError, unless the value is None, for a topic whose values do not
    begin with type and version.
    """
    if value is None:
        return "it has no value"
    frame = _FRAMES[topic]
    source = Source(value, Session(strict=False))
    numbers: dict[str, int] = {}
    try:
        for field in frame.fields[:_NUMBERS]:
            numbers[field.name] = int(field.codec.read(source, numbers))
    except CodecError:
        return None
    kind, version = numbers["api_key"], numbers["version"]
    versions = _KNOWN[topic].get(kind)
    if versions is None:
        return f"no record has the type {kind}, as far as is known"
    if version not in versions:
        return f"version {version} of the type {kind} is not known"
    return None
