"""Kafka log directories without a broker: segments, batches, records."""

from kafka_log.directory import DirectoryError, Partition, Segment, discover
from kafka_log.encoding import encode, write_segment
from kafka_log.model import Batch, Control, End, Lost, Policy, Problem, Record
from kafka_log.reader import SegmentReader

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
    "write_segment",
]
