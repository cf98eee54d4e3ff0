"""Bytes of one entry -> a :class:`Batch`, by the generated Construct codecs.

An engine is a function ``(data, position, file, policy, limits) -> Batch``. All knowledge of the bytes is in the
generated codecs; this module puts the values into the shape that readers of logs expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from codecgen.runtime.construct import Bits, Enumeration, Layout
from codecgen.runtime.errors import ChecksumError, CodecError
from codecgen.runtime.parsing import Opened
from codecgen.runtime.source import Limits, Session, Source
from kafka_codecs import LOG_ENTRY, RECORD_BATCH, Compression
from kafka_codecs.records import message as message_module
from kafka_codecs.records import record_batch as batch_module
from kafka_log.control import read_control
from kafka_log.framing import layout_of
from kafka_log.model import Batch, Policy, Problem, Record

Engine = Callable[[bytes, int, str, Policy, Limits, bool], Batch]

NO_TIMESTAMP_TYPE = -1


def construct_engine(
    data: bytes, position: int, file: str, policy: Policy, limits: Limits, with_records: bool
) -> Batch:
    """Decode one entry that begins at ``position`` of ``file``.

    Under ``strict`` the first problem is raised; otherwise problems are in the batch, with the records before them.
    Without ``with_records`` record batches are not decompressed, and have no records.
    """
    session = Session(strict=policy is Policy.STRICT, limits=limits, file=file)
    source = Source(data, session, origin=position)
    layout = layout_of(LOG_ENTRY.peek(source))
    opened = layout.open(source)
    if opened.error is not None and session.strict:
        raise opened.error
    if layout is RECORD_BATCH:
        batch = _record_batch(layout, opened, session, position, len(data), with_records)
    else:
        batch = _message(layout, opened, session, position, len(data))
    batch.findings = tuple(session.findings)
    if opened.error is not None:
        batch.problems += (Problem("records", opened.error),)
    return batch


def _codec_name(number: Any) -> str | None:
    return number.label if isinstance(number, Enumeration) else None


def _unknown_codec(number: Any, session: Session) -> list[Problem]:
    """The problem that a codec's number has no name."""
    if isinstance(number, Enumeration):
        return []
    wanted = (e for e in session.findings if e.where.path == "attributes.compression")
    return [Problem("compression", error) for error in wanted]


def _crc_ok(session: Session) -> bool:
    return not any(isinstance(e, ChecksumError) and e.where.path == "crc" for e in session.findings)


# ---------------------------------------------------------------- record batches


def _record_batch(
    layout: Layout, opened: Opened, session: Session, position: int, size: int, with_records: bool
) -> Batch:
    fields = opened.fields
    if opened.error is not None:
        for f in layout.fields:
            fields.setdefault(f.name, None)
        if fields.record_count is None:
            raise opened.error  # not even the header is there
    attributes = fields.attributes
    problems = _unknown_codec(attributes.compression, session)
    batch = Batch(
        position=position,
        size=size,
        magic=fields.magic,
        base_offset=fields.base_offset,
        last_offset=batch_module.last_offset(fields),
        next_offset=batch_module.next_offset(fields),
        crc=fields.crc,
        is_valid=_crc_ok(session),
        attributes=_raw_attributes(attributes, layout),
        base_timestamp=fields.base_timestamp,
        compression=_codec_name(attributes.compression),
        timestamp_type=int(attributes.timestamp_type),
        max_timestamp=fields.max_timestamp,
        producer_id=fields.producer_id,
        producer_epoch=fields.producer_epoch,
        base_sequence=fields.base_sequence,
        last_sequence=batch_module.last_sequence(fields),
        is_transactional=attributes.is_transactional,
        is_control=attributes.is_control,
        partition_leader_epoch=fields.partition_leader_epoch,
        delete_horizon=batch_module.delete_horizon(fields),
        count=fields.record_count,
    )
    if with_records and opened.error is None:
        try:
            for item in opened.items:
                batch.records.append(_record(fields, item, session, position))
        except CodecError as error:
            if session.strict:
                raise
            problems.append(Problem("records", error))
    batch.problems = tuple(problems)
    return batch


def _record(fields: Any, item: Any, session: Session, position: int) -> Record:
    control = None
    if fields.attributes.is_control:
        control = read_control(
            item.key, item.value, strict=session.strict, file=session.file or "", position=position
        )
    return Record(
        offset=batch_module.records_offset(fields, item),
        timestamp=batch_module.records_timestamp(fields, item),
        sequence=batch_module.records_sequence(fields, item),
        key=item.key,
        value=item.value,
        headers=tuple((h.key, h.value) for h in item.headers),
        control=control,
    )


def _raw_attributes(attributes: Any, layout: Layout) -> int:
    """The attributes as the signed number that they are in the file."""
    codec = layout.by_name["attributes"].codec
    assert isinstance(codec, Bits)
    return codec.raw(attributes)


# ---------------------------------------------------------------- messages


def _message(layout: Layout, opened: Opened, session: Session, position: int, size: int) -> Batch:
    fields = opened.fields
    if opened.error is not None:
        for f in layout.fields:
            fields.setdefault(f.name, None)
        if fields.attributes is None:
            raise opened.error
    attributes = fields.attributes
    problems = _unknown_codec(attributes.compression, session)
    wrapper = attributes.compression != Compression.NONE
    timestamp_type, max_timestamp = NO_TIMESTAMP_TYPE, -1
    if "timestamp" in layout.by_name:
        timestamp_type = int(attributes.timestamp_type)
        max_timestamp = fields.timestamp if fields.timestamp is not None else -1
    batch = Batch(
        position=position,
        size=size,
        magic=fields.magic,
        base_offset=None if wrapper else fields.offset,
        last_offset=fields.offset,
        next_offset=fields.offset + 1,
        crc=fields.crc,
        is_valid=_crc_ok(session),
        attributes=_raw_attributes(attributes, layout),
        base_timestamp=None,
        compression=_codec_name(attributes.compression),
        timestamp_type=timestamp_type,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        last_sequence=-1,
        is_transactional=False,
        is_control=False,
        partition_leader_epoch=-1,
        delete_horizon=None,
        count=None,
    )
    if opened.error is None:
        try:
            inner = list(_inner(fields, opened.items, session))
        except CodecError as error:
            if session.strict:
                raise
            batch.problems = (Problem("baseOffset", error), *problems, Problem("records", error))
            return batch
        if not wrapper:
            inner = [_plain_message(fields, layout, session, batch)]
        elif inner:
            batch.base_offset = inner[0].offset
        batch.records = inner  # they had to be parsed for the offsets anyway
    batch.problems = tuple(problems)
    return batch


def _plain_message(fields: Any, layout: Layout, session: Session, batch: Batch) -> Record:
    errors = [e for e in session.findings if isinstance(e, ChecksumError)]
    timestamp = fields.timestamp if "timestamp" in layout.by_name else -1
    return Record(
        fields.offset,
        timestamp,
        -1,
        fields.key,
        fields.value,
        crc_error=errors[0] if errors else None,
    )


def _inner(fields: Any, items: Iterator[Any], session: Session) -> Iterator[Record]:
    """The inner messages of a wrapper. Their offsets depend on the last one, so all are read first."""
    fields["messages"] = list(items)
    wrong = {e.where.path: e for e in session.findings if isinstance(e, ChecksumError)}
    for i, item in enumerate(fields["messages"]):
        yield Record(
            offset=message_module.messages_offset(fields, item),
            timestamp=message_module.messages_timestamp(fields, item),
            sequence=-1,
            key=item.key,
            value=item.value,
            crc_error=wrong.get(f"messages[{i}].crc"),
        )
