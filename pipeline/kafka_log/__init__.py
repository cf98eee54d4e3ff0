"""Kafka log directories without a broker: segments, batches, records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_log.directory import DirectoryError, Partition, Segment, discover
from kafka_log.model import Batch, Control, End, Lost, Policy, Problem, Record
from kafka_log.reader import SegmentReader

if TYPE_CHECKING:
    from kafka_log.encoding import encode, write_segment
    from kafka_log.scan_streams import read_table, scan, scan_batches

__all__ = [
    "Batch",
    "Control",
    "DirectoryError",
    "End",
    "Lost",
    "Partition",
    "Policy",
    "Problem",
    "Record",
    "Segment",
    "SegmentReader",
    "discover",
    "encode",
    "read_table",
    "scan",
    "scan_batches",
    "write_segment",
]

_LATER = {
    **dict.fromkeys(("read_table", "scan", "scan_batches"), "kafka_log.scan_streams"),
    **dict.fromkeys(("encode", "write_segment"), "kafka_log.encoding"),
}
"""What needs pyarrow and numpy, or the codecs, which are imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
