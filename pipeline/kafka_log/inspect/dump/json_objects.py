"""A segment as JSON lines: file, batch, record and end objects, as of the reference vectors."""

from __future__ import annotations

import hashlib
import json
import struct
from binascii import b2a_base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.dump.batch_text import timestamp_type
from kafka_log.read.internal_topics import Decoded, InternalTopic
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Batch, Control, Record, is_own_checksum
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_at, size_of
from kafka_log.segment.reader import Batches

DIGEST_BYTES = 1 << 20
"""Bytes of a file that are hashed at a time."""

DIGEST_RECORDS = 1024
"""Records that are hashed at a time."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_NUMBERS = struct.Struct(">qqi").pack
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)


def segment_objects(
    reader: Batches, *, records: bool = True, decode: InternalTopic | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of one segment: one for the file, then one for each batch followed by
    its records (unless ``records`` is False), then one for the end. ``decode`` adds decoded records
    of an internal topic. A CodecError of the reader is not raised: the end object has it, also that
    of a listed file that cannot be read. Raise FileNotFoundError if the file does not exist and the
    reader has no listed size.

    Args:
        reader: Reader of the segment.
        records: Yield record objects. False: only the digests in the batches.
        decode: Internal topic whose layouts decode the records.
    """
    for item in _segment_items(reader, records):
        yield record_object(item, decode) if isinstance(item, Record) else item


def _segment_items(reader: Batches, records: bool) -> Iterator[dict[str, Any] | Record]:
    """Yield what :func:`segment_objects` yields, but with each record as a Record, not yet
    converted to an object; no records if ``records`` is False. A CodecError of the reader is not
    raised: the end object has it. Raise FileNotFoundError if the file does not exist and the reader
    has no listed size.
    """
    path = reader.path
    size, digest = size_and_digest(path, reader.listed_size)
    yield {
        "type": "file",
        "file": utf8(path.name),
        "mode": "deep" if records else "digest",
        "via": "file",
        "iterator": "streaming",
        "sizeInBytes": size,
        "sha256": digest,
    }
    file_digest = hashlib.sha256()
    try:
        for batch in reader:
            yield batch_object(batch, file_digest)
            if records:
                yield from batch.records
    except CodecError:
        pass  # the first error of a strict reader, which reader.end repeats
    end = reader.end
    assert end is not None
    out: dict[str, Any] = {
        "type": "end",
        "batches": end.batches,
        "records": end.records,
        "recordsSha256": file_digest.hexdigest(),
        "validBytes": end.valid_bytes,
        "iteratedBytes": end.iterated_bytes,
        "trailingBytes": end.trailing_bytes,
        "stop": end.stop,
    }
    if end.error is not None:
        out["exception"] = error_object(end.error)
    if end.note is not None:
        out["note"] = end.note
    if end.lost:
        out["lost"] = [
            {
                "start": lost.start,
                "end": lost.end,
                "afterOffset": lost.after_offset,
                "beforeOffset": lost.before_offset,
                "reason": lost.reason,
            }
            for lost in end.lost
        ]
    yield out


def json_lines(
    reader: Batches, *, records: bool = True, decode: InternalTopic | None = None
) -> Iterator[str]:
    """Yield the objects of :func:`segment_objects` as JSON texts of one line each, without its end:
    file, batches with their records (unless ``records`` is False), end. ``decode`` adds decoded
    records of an internal topic (None: not). A CodecError of the reader, also for a file that
    cannot be read, is in the end object, not raised. Raise FileNotFoundError, after the file
    object, if the file does not exist and the reader has no listed size.
    """
    for item in _segment_items(reader, records):
        yield record_line(item, decode) if isinstance(item, Record) else _encode(item)


def size_and_digest(path: Path, listed_size: int | None) -> tuple[int | None, str | None]:
    """Return the size of a listed segment and its SHA-256 in hexadecimal. If it cannot be opened,
    both are None; if reading fails, only the digest is. ``listed_size`` (None: unknown) finds the
    file again if a broker renamed it to delete it.
    """
    digest = hashlib.sha256()
    view = memoryview(bytearray(DIGEST_BYTES))
    position, size = 0, None
    try:
        with open_segment(path, is_listed=True, size=listed_size) as file:
            size = size_of(file)
            while got := read_at(file, view, position):
                digest.update(view[:got])
                position += got
    except UnreadableError:
        return size, None
    return size, digest.hexdigest()


def batch_object(batch: Batch, file_digest: Any) -> dict[str, Any]:
    """Return a batch as a JSON object without its records, but with their SHA-256, and add the
    canonical bytes of the records to ``file_digest``. ``ensureValid`` is null unless the checksum
    is wrong; ``errors`` is there only if the batch has problems, ``baseTimestamp`` only if it has
    one.
    """
    digest = hashlib.sha256()
    for start in range(0, len(batch.records), DIGEST_RECORDS):
        data = b"".join(map(canonical_bytes, batch.records[start : start + DIGEST_RECORDS]))
        digest.update(data)
        file_digest.update(data)
    crc = next(filter(is_own_checksum, batch.findings), None)
    out: dict[str, Any] = {
        "type": "batch",
        "position": batch.position,
        "sizeInBytes": batch.size,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.next_offset,
        "magic": batch.magic,
        "crc": batch.crc,
        "isValid": batch.is_valid,
        "ensureValid": None if crc is None else error_object(crc),
        "attributes": batch.attributes,
    }
    if batch.base_timestamp is not None:
        out["baseTimestamp"] = batch.base_timestamp
    out |= {
        "compression": batch.compression,
        "timestampType": timestamp_type(batch.timestamp_type),
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "deleteHorizonMs": batch.delete_horizon,
        "count": batch.count,
        "recordsDecoded": len(batch.records),
        "recordsSha256": digest.hexdigest(),
    }
    if batch.problems:
        out["errors"] = [{"at": p.at, **error_object(p.error)} for p in batch.problems]
    return out


def record_object(record: Record, decode: InternalTopic | None = None) -> dict[str, Any]:
    """Return a record as a JSON object, with bytes as standard Base64, and ``control`` for a
    control record. ``decode`` adds the decoded record of an internal topic to other records, with
    secrets redacted; the Base64 fields still contain them. If it cannot be decoded, its error is
    there and nothing is raised. ``crcError`` is there if the record's own checksum is wrong.
    """
    out: dict[str, Any] = {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": record.sequence,
        "key": encode_base64(record.key),
        "value": encode_base64(record.value),
        "headers": [[key, encode_base64(value)] for key, value in record.headers],
    }
    if record.control is not None:
        out["control"] = control_object(record.control)
    elif decode is not None:
        out["decoded"] = decoded_object(decode.decode(record.key, record.value))
    if record.crc_error is not None:
        out["crcError"] = error_object(record.crc_error)
    return out


def decoded_object(found: Decoded) -> dict[str, Any]:
    """Return the decoded key and value of a record of an internal topic, with the error if there is one."""
    out: dict[str, Any] = {"key": found.key, "value": found.value}
    return out if found.error is None else out | error_object(found.error)


def record_line(record: Record, decode: InternalTopic | None = None) -> str:
    """Return the JSON text of ``record_object(record, decode)``, on one line, and four times as
    fast for a plain record.
    """
    offset, timestamp, sequence, key, value, headers, control, crc_error, _ = record
    if control is not None or crc_error is not None or decode is not None:
        return _encode(record_object(record, decode))
    pairs = ",".join([f"[{_encode(name)},{_quote_base64(content)}]" for name, content in headers])
    return (
        f'{{"type":"record","offset":{offset},"timestamp":{timestamp},"sequence":{sequence},'
        f'"key":{_quote_base64(key)},"value":{_quote_base64(value)},"headers":[{pairs}]}}'
    )


def _quote_base64(data: bytes | None) -> str:
    """Return bytes as a quoted Base64 string; ``null`` for None."""
    return "null" if data is None else f'"{b2a_base64(data, newline=False).decode("ascii")}"'


def control_object(control: Control) -> dict[str, Any]:
    """Return a control record as a JSON object, without what could not be read. It has ``typeId``
    and ``type`` (``UNKNOWN`` for an unknown id), and the coordinator epoch of a transaction marker
    or else the value as ``data``. If the record cannot be decoded, it has class, message and place
    of the error.
    """
    out: dict[str, Any] = {}
    if control.type is not None:
        out |= {"typeId": control.type_id, "type": control.type}
    if control.value is not None:
        if "coordinatorEpoch" in control.value:
            out["coordinatorEpoch"] = control.value["coordinatorEpoch"]
        else:
            out["data"] = control.value
    if control.error is not None:
        out |= error_object(control.error)
    return out


def error_object(error: CodecError) -> dict[str, Any]:
    """Return the class and reason of an error as a JSON object, and where it occurred: path of the
    field, position, stream position and schema, each left out if unknown. File and line are always
    left out.
    """
    where = error.where
    out: dict[str, Any] = {"error": type(error).__name__, "message": error.reason}
    for name in ("path", "position", "stream_position", "schema"):
        value = getattr(where, name)
        if value is not None:
            out["streamPosition" if name == "stream_position" else name] = value
    return out


def error_line(error: CodecError) -> str:
    """Return the JSON text of an error that makes a partition unreadable."""
    return _encode({"type": "error", "file": utf8(error.where.file or ""), **error_object(error)})


def encode_base64(data: bytes | None) -> str | None:
    """Return bytes as standard Base64; None for None."""
    return None if data is None else b2a_base64(data, newline=False).decode("ascii")


def canonical_bytes(record: Record) -> bytes:
    """Return the bytes of a record for digests, big-endian: offset and timestamp (8 bytes each),
    sequence (4 bytes), key, value, number of headers, and name and value of each. A length of 4
    bytes precedes all keys, names and values; it is -1 for None.
    """
    offset, timestamp, sequence, key, value, headers, *_ = record
    parts = [_NUMBERS(offset, timestamp, sequence)]
    for data in (key, value):
        parts += (_NULL,) if data is None else (_LENGTH(len(data)), data)
    parts.append(_LENGTH(len(headers)))
    for name, content in headers:
        encoded = name.encode("utf-8")
        parts += (_LENGTH(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (_LENGTH(len(content)), content)
    return b"".join(parts)
