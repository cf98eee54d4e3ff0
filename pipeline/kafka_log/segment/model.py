"""Results of a reader: batches, records, problems, lost ranges and how a file ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple

from codecgen.runtime.errors import ChecksumError, CodecError
from codecgen.runtime.readable import Milliseconds, html_of, text_of, time_of, word


class Policy(StrEnum):
    """Strictness of a reader. docs/policies.md has the table."""

    STRICT = "strict"
    """Only valid batches. The first problem is raised."""
    KAFKA = "kafka"
    """Everything that Apache Kafka's reader accepts, with the same result. Problems are attached to the batches."""
    SALVAGE = "salvage"
    """As ``kafka``, and also complete records of torn batches. Reading continues after damage, and lost ranges are reported."""


OnDamage = Literal["raise", "keep", "drop"]
"""Handling of a damaged batch: raise an error, keep the readable records, or drop all of its records."""


class Tail(StrEnum):
    """Expected bytes after the last complete batch of a segment. docs/policies.md has the table."""

    REFERENCE = "reference"
    """As Apache Kafka's reader: an incomplete batch is ignored, zeros are an error."""
    ACTIVE = "active"
    """A broker may be writing the segment, or was killed: an incomplete batch and zeros are normal. ``strict`` rejects them."""
    ROLLED = "rolled"
    """Another segment follows: brokers cut the file after its last batch, so anything there is damage."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of a batch, and the part of the batch that has it.

    Attributes:
        at: ``records``, ``crc``, or the name of a value that cannot be read; ``header`` if the batch ends within its header, ``size`` if
            it is torn, ``offsets`` if its offsets were derived from the batch before it, ``version`` if it is unknown.
        error: The error.
    """

    at: str
    error: CodecError


UNKNOWN_VERSION = "version"
"""The ``at`` of a problem: the version of the batch is unknown, and it was read as another one."""


@dataclass(frozen=True, slots=True)
class Control:
    """Parsed key and value of a control record.

    Attributes:
        type_id: Number of the type; None if the key cannot be read.
        type: Name of the type; None if the key cannot be read.
        value: Fields of the value with the names of Kafka's documents.
        error: Why the key or the value cannot be read; None if both can.
    """

    type_id: int | None
    type: str | None
    value: dict[str, Any] | None = None
    error: CodecError | None = None


class Record(NamedTuple):
    """One record. Fields with the name of a column of the view records hold that column.

    It is a tuple because creating one takes a quarter of the time of a dataclass.

    Attributes:
        timestamp: In milliseconds since 1970; -1 for none.
        sequence: Sequence number of the producer; -1 for none.
        more: Columns for which neither Record nor :class:`Batch` has a field, in the order of the view.
    """

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    control: Control | None = None
    crc_error: CodecError | None = None
    more: tuple[Any, ...] = ()

    @property
    def time(self) -> datetime | None:
        """The timestamp as a datetime in UTC; None if there is none, or no datetime can hold it."""
        return time_of(self.timestamp)

    @property
    def is_control(self) -> bool:
        """Whether the record is a control record, written by a broker."""
        return self.control is not None

    def _title(self) -> str:
        return "Record"

    def _named_values(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, value) of each field for display, the timestamp as Milliseconds.
        ``control``, ``crc_error`` and ``more`` are left out if empty.
        """
        for name, value in zip(self._fields, self, strict=True):
            if name == "timestamp":
                yield name, Milliseconds(self.timestamp)
            elif name not in _LEFT_OUT or value:
                yield name, value

    def __repr__(self) -> str:
        return word(self)

    def _repr_html_(self) -> str:
        return html_of(self)


_LEFT_OUT = ("control", "crc_error", "more", "problems", "findings")
"""Fields that are shown only if they are not empty."""
_TIMES = ("base_timestamp", "max_timestamp", "delete_horizon")


@dataclass(slots=True, repr=False)
class Batch:
    """A record batch, or a legacy message (a wrapper with the messages inside).

    Fields with the name of a column of the view batches hold that column. Values that the format of ``magic`` does not have are
    -1, None or False, as in Apache Kafka's own reader. A value that cannot be read is None.

    Attributes:
        position: Position of the first byte in the file.
        size: Length in bytes.
        base_offset: As in the header, or the offset of the first record if the header does not state it.
        timestamp_type: -1 (none), 0 (CreateTime) or 1 (LogAppendTime).
        problems: What is wrong with the batch, and why a value cannot be read.
    """

    position: int
    size: int
    magic: int
    base_offset: int | None
    last_offset: int
    next_offset: int
    crc: int
    attributes: int
    base_timestamp: int | None
    codec: int
    timestamp_type: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    leader_epoch: int
    delete_horizon: int | None
    record_count: int | None
    is_valid: bool = True
    records: list[Record] = field(default_factory=list)
    problems: tuple[Problem, ...] = ()
    findings: tuple[CodecError, ...] = ()
    """Errors that a strict reader would have raised, and that this policy tolerates."""
    more: tuple[Any, ...] = ()
    """Columns of the view batches without a field of this class, in the order of the view."""
    has_base_offset: bool = True
    """Whether the header states the base offset."""
    section: tuple[int, int] | None = field(default=None, compare=False)
    """Bytes of the section with the records, compressed or not, as stored and uncompressed; None if it was not opened."""

    @property
    def compression(self) -> str | None:
        """Name of the codec, ``none`` for uncompressed; None if the number is unknown."""
        return codec_label(self.codec)

    @property
    def max_time(self) -> datetime | None:
        """The largest timestamp as a datetime in UTC; None if there is none, or no datetime can hold it."""
        return time_of(self.max_timestamp)

    @property
    def count(self) -> int | None:
        """Number of records by the header; None if the header does not state it."""
        return self.record_count

    @property
    def partition_leader_epoch(self) -> int:
        """The leader epoch, under its name in Kafka's documents."""
        return self.leader_epoch

    def _title(self) -> str:
        return "Batch"

    def _named_values(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, value) of each field for display, with ``records`` last. The name of the
        codec and of the timestamp type follow their numbers; ``problems``, ``findings`` and
        ``more`` are left out if empty.
        """
        for each in fields(self):
            name = each.name
            value = getattr(self, name)
            if name == "records" or (name in _LEFT_OUT and not value):
                continue
            if name in _TIMES and value is not None:
                value = Milliseconds(value)
            elif name == "codec":
                value = f"{value} ({self.compression})"
            elif name == "timestamp_type":
                value = f"{value} ({timestamp_type_label(value) or 'none'})"
            yield name, _Plain(value) if isinstance(value, str) else value
        yield "records", self.records

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)


class _Plain:
    """A text that is shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


@cache
def codec_label(number: int) -> str | None:
    """Return the name of a compression codec, such as ``zstd``, by its number in a batch, ``none``
    for 0. Return None for an unknown number.
    """
    from kafka_codecs import Compression  # the codecs may not be needed otherwise

    found = Compression.find(number)
    return None if found is None else found.label


@cache
def timestamp_type_label(number: int) -> str | None:
    """Return the name of a timestamp type, such as ``CreateTime``, by its number. Return None for
    an unknown one, and for -1 (no timestamps).
    """
    from kafka_codecs import TimestampType

    found = TimestampType.find(number)
    return None if found is None else found.label


def may_lack_records(batch: Batch) -> bool:
    """Return whether a batch with a valid checksum may have more records than were read. One of an
    unknown version may not if it reads as a regular batch of a known one, with at least a record.
    """
    unknown = {p.error.where.position for p in batch.problems if p.at == UNKNOWN_VERSION}
    if len(unknown) < len(batch.problems):
        return True
    is_regular = all(finding.where.position in unknown for finding in batch.findings)
    return bool(unknown) and not (is_regular and (batch.records or batch.record_count))


def is_own_checksum(finding: CodecError) -> bool:
    """Return whether a finding says that the checksum of a batch itself is wrong, not one of a message inside it."""
    return isinstance(finding, ChecksumError) and "[" not in (finding.where.path or "")


@dataclass(frozen=True, slots=True)
class Lost:
    """A lost range: bytes that could not be read, and the offsets that they may have held.

    Attributes:
        start: Position of the first byte of the range.
        end: Position after the last byte.
        reason: Why the bytes could not be read.
        after_offset: Last offset before the range; None if unknown.
        before_offset: First offset after the range; None if unknown.
    """

    start: int
    end: int
    reason: str
    after_offset: int | None = None
    before_offset: int | None = None
    around: tuple[int | None, int | None] | None = field(default=None, compare=False)
    """Last offset before and first offset after a batch with a wrong checksum whose records were read: its own offsets may be wrong."""
    read: int = field(default=0, compare=False)
    """Number of records that were read from this batch."""

    def describe_bytes(self, verb: str = "") -> str:
        """Return the bytes of the range with ``verb`` (``are lost``), a colon and a space, as
        ``bytes 3 to 9 are lost: ``; ``""`` for a range without bytes, such as a file that is none.
        """
        words = f"bytes {self.start} to {self.end} {verb}".rstrip()
        return f"{words}: " if self.end > self.start else ""

    def up_to(self, next_base: int | None) -> Lost:
        """Return the lost range with ``before_offset`` lowered to ``next_base``, the first offset
        of the next segment, or set to it if it was None. Return the range itself if ``next_base``
        is None or not above ``after_offset``, or ``before_offset`` is not above it.
        """
        after, before = self.after_offset, self.before_offset
        if next_base is None or (after is not None and after >= next_base):
            return self
        if before is not None and before <= next_base:
            return self
        return replace(self, before_offset=next_base)


def describe_lost(path: str | os.PathLike[str], lost: Lost) -> str:
    """Return one line about a lost range of a file or directory: its path, the bytes unless the
    range is empty, and the reason.
    """
    return f"{os.fspath(path)}: {lost.describe_bytes('are lost')}{lost.reason}"


@dataclass(frozen=True, slots=True)
class End:
    """How reading a file ended.

    Attributes:
        batches: Number of batches.
        records: Number of records.
        valid_bytes: End of the last batch before the first that fails its checksum.
        iterated_bytes: End of the last batch.
        trailing_bytes: Number of bytes from there to the end of the file.
        stop: ``eof``, ``partial`` (a normal end with bytes left over), ``zeros`` (the bytes left over are zeros) or ``error``.
        error: Error that ended reading; None without one.
        lost: Lost ranges.
        note: Why bytes left over are normal; None if they are not, or there are none.
    """

    batches: int
    records: int
    valid_bytes: int
    iterated_bytes: int
    trailing_bytes: int
    stop: str
    error: CodecError | None = None
    lost: tuple[Lost, ...] = ()
    note: str | None = None

    @property
    def is_normal(self) -> bool:
        """Whether nothing was lost and the file ended at its last byte or with normal bytes left over."""
        return not self.lost and (self.stop == "eof" or self.note is not None)


def record_size(record: Record) -> int:
    """Return the bytes of a record in a table, or a few more: each character of a header name counts as 4 bytes."""
    headers = sum(4 * len(key) + len(value or b"") for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
