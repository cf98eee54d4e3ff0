"""Batch headers as lines in the words of Kafka's dump tool."""

from __future__ import annotations

from kafka_log.segment.model import Batch, timestamp_type_label


def batch_line(batch: Batch) -> str:
    """Return the line of one batch in the words of Kafka's dump tool, without an end of line.
    Legacy messages have no record count: their line has ``offset`` (the last one) instead of the
    fields of record batches. ``isvalid`` says whether the checksum is right; an unknown codec is
    ``unknown``.
    """
    timestamp = f"{timestamp_type(batch.timestamp_type)}: {batch.max_timestamp}"
    tail = (
        f"size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression or 'unknown'} "
        f"crc: {batch.crc} isvalid: {_format_bool(batch.is_valid)}"
    )
    if batch.count is None:
        return f"offset: {batch.last_offset} position: {batch.position} {timestamp} {tail}"
    horizon = "none" if batch.delete_horizon is None else str(batch.delete_horizon)
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
        f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_format_bool(batch.is_transactional)} isControl: {_format_bool(batch.is_control)} "
        f"deleteHorizonMs: {horizon} position: {batch.position} {timestamp} {tail}"
    )


def timestamp_type(number: int) -> str:
    """Return the name of a timestamp type as Kafka's dump tool prints it."""
    return timestamp_type_label(number) or "NoTimestampType"


def _format_bool(value: bool) -> str:
    """Return a boolean in Java's spelling."""
    return "true" if value else "false"
