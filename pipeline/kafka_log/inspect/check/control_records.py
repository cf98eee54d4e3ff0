"""Check of control records: each has a key that says what it is, a type that its readers know, and a value of that type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.segment.control import UNKNOWN
from kafka_log.segment.model import Control


class ControlRecordCheck(Check):
    """Reports control records whose type cannot be read, or that no broker writes.

    Brokers read the first record of each control batch that has a producer id when they load the producers of the partition.
    """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        headers = scanned.headers
        for row, record in scanned.control.unusual.items():
            control, producer = record.control, int(headers.producer_id[row])
            is_of_producer = producer >= 0
            more: dict[str, Any] = {}
            if control.type == UNKNOWN and not is_of_producer:
                more["severity"] = "note"
                more["remedy"] = (
                    "Nothing to do if a newer Kafka has written the record. Otherwise compare with another replica by kafka-log diff."
                )
            yield self.context.finding(
                "control_record",
                scanned.segment.path,
                _describe(control, record.offset, producer if is_of_producer else None),
                byte=int(headers.position[row]),
                first_offset=int(headers.first[row]),
                last_offset=int(headers.last[row]),
                producer_id=producer if is_of_producer else None,
                **more,
            )


def _describe(control: Control, offset: int, producer: int | None) -> str:
    """Return what is wrong with the control record at ``offset``, as sentences. Its key or value
    cannot be read, brokers do not write its type for a ``producer``, or its type is unknown (if
    ``producer`` is None: the batch has no producer id).
    """
    if control.type is None:
        reason = "" if control.error is None else f": {control.error.reason}"
        return f"The key of the control record at offset {offset} cannot be read{reason}."
    if control.error is not None:
        return f"The value of the control record at offset {offset}, of type {control.type}, cannot be read: {control.error.reason}."
    named = (
        f"{control.type_id}" if control.type == UNKNOWN else f"{control.type_id} ({control.type})"
    )
    if producer is None:
        return f"The control record at offset {offset} has the type {named}, which is unknown. Readers skip it."
    return (
        f"The control record at offset {offset} of producer {producer} has the type {named}."
        " Brokers write only commit and abort markers for a producer."
    )
