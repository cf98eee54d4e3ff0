"""A segment as text for people: what Kafka's own dump tool shows, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.runtime.errors import CodecError
from kafka_log.report.json_dump import TIMESTAMP_TYPES
from kafka_log.segment.model import Batch, Control, End, Record
from kafka_log.segment.reader import Batches
from kafka_log.tables.own_topics import Decoded, OwnTopic, one_line

MAX_SHOWN = 200
"""Bytes of a key or a value that are shown, unless told otherwise."""


def lines(
    reader: Batches,
    *,
    data: bool = True,
    width: int = MAX_SHOWN,
    decode: OwnTopic | None = None,
) -> Iterator[str]:
    """The lines for one file. ``data`` False leaves out keys, values and headers; ``decode`` shows what they mean."""
    yield f"Dumping {reader.path}"
    try:
        for batch in reader:
            yield batch_line(batch)
            for finding in batch.findings:
                yield f"  ! {finding}"
            for record in batch.records:
                yield record_line(record, batch, data=data, width=width, decode=decode)
            for problem in batch.problems:
                yield f"  !! {problem.at}: {problem.error}"
    except CodecError:
        pass  # a strict reader's first error, which is in its end too
    if reader.end is not None:
        yield from end_lines(reader.end)


def batch_line(batch: Batch) -> str:
    """The line of a batch, with the words of Kafka's dump tool."""
    timestamp = f"{TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp}"
    tail = (
        f"size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression or 'unknown'} "
        f"crc: {batch.crc} isvalid: {_bool(batch.is_valid)}"
    )
    if batch.count is None:
        return f"offset: {batch.last_offset} position: {batch.position} {timestamp} {tail}"
    horizon = "none" if batch.delete_horizon is None else str(batch.delete_horizon)
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
        f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_bool(batch.is_transactional)} isControl: {_bool(batch.is_control)} "
        f"deleteHorizonMs: {horizon} position: {batch.position} {timestamp} {tail}"
    )


def record_line(
    record: Record, batch: Batch, *, data: bool, width: int, decode: OwnTopic | None = None
) -> str:
    """The line of a record. Null is ``null``, empty is ``""``."""
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    kind = TIMESTAMP_TYPES[batch.timestamp_type]
    line = f"| offset: {record.offset} {kind}: {record.timestamp} keySize: {key_size} valueSize: {value_size}"
    if batch.count is None:
        line += f" isValid: {_bool(record.crc_error is None)}"
    else:
        line += f" sequence: {record.sequence}"
    if record.control is not None:
        return line + control_text(record.control)
    if data:
        if record.headers:
            inner = ", ".join(
                f"{shown(k.encode(), width)}={shown(v, width)}" for k, v in record.headers
            )
            line += f" headers: [{inner}]"
        found = None if decode is None else decode.decode(record.key, record.value)
        key, value, wrong = _decoded(found)
        line += f" key: {key or shown(record.key, width)} payload: {value or shown(record.value, width)}{wrong}"
    return line


def _decoded(found: Decoded | None) -> tuple[str, str, str]:
    """What a record of one of Kafka's own topics says, and what of it cannot be read; empty where there is nothing."""
    if found is None:
        return "", "", ""
    key, value = ("" if part is None else one_line(part) for part in (found.key, found.value))
    return key, value, "" if found.error is None else f" !! {found.error}"


def control_text(control: Control) -> str:
    """What a control record says, as text after its line."""
    if control.error is not None:
        return f" control: {control.type or 'unreadable'} !! {control.error}"
    if control.value is None:
        return f" controlType: {control.type}({control.type_id})"
    if "coordinatorEpoch" in control.value:
        epoch = control.value["coordinatorEpoch"]
        return f" endTxnMarker: {control.type} coordinatorEpoch: {epoch}"
    return f" {control.type}: {control.value}"


def end_lines(end: End) -> Iterator[str]:
    """What there is to say where a file ends."""
    for lost in end.lost:
        around = ""
        if lost.after_offset is not None or lost.before_offset is not None:
            around = f", offsets after {lost.after_offset} and before {lost.before_offset}"
        yield f"!! lost: bytes {lost.start} to {lost.end}{around}: {lost.reason}"
    if end.error is not None:
        yield f"!! stopped at byte {end.iterated_bytes}: {end.error}"
    elif end.note is not None:
        yield f"-- {end.note}"
    elif end.trailing_bytes:
        yield f"!! {end.trailing_bytes} bytes at the end are no whole batch"


def error_line(error: CodecError) -> str:
    """The line for what cannot be read at all."""
    return f"!! {error}"


def shown(data: bytes | None, width: int) -> str:
    """Bytes as text when they are text, as ``0x..`` otherwise; at most ``width`` bytes of them."""
    if data is None:
        return "null"
    cut = data[:width]
    try:
        text = cut.decode("utf-8")
        whole = text.isprintable()
    except UnicodeDecodeError:
        whole = False
    body = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if whole else f"0x{cut.hex()}"
    more = len(data) - len(cut)
    return f"{body}... ({more} bytes more)" if more else body


def _bool(value: bool) -> str:
    return "true" if value else "false"
