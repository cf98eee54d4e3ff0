"""What a reader gives: batches, records, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple

from codecgen.runtime.errors import ChecksumError, CodecError
from codecgen.runtime.readable import Milliseconds, html_of, text_of, time_of, word


class Policy(StrEnum):
    """How a reader takes what others wrote. docs/policies.md has the table."""

    STRICT = "strict"
    """Only what the formats allow. The first problem is raised."""
    KAFKA = "kafka"
    """What Apache Kafka's reader accepts, with its result. Problems are attached to the batches."""
    SALVAGE = "salvage"
    """Like kafka, and what is whole of torn batches; after damage it goes on, and says what was lost."""


OnDamage = Literal["raise", "keep", "drop"]
"""What becomes of a damaged batch: it is an error, or its records that can be read are there, or none of them."""


class Tail(StrEnum):
    """What may lie after the last whole batch of a segment. docs/policies.md has the table."""

    REFERENCE = "reference"
    """What Apache Kafka's reader makes of it: half a batch is nothing, zeros are an error."""
    ACTIVE = "active"
    """A broker may be writing the segment, or was killed: half a batch and zeros are normal. ``strict`` refuses them."""
    ROLLED = "rolled"
    """Another segment follows: brokers cut the file after its last batch, so anything there is damage."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a batch. ``at`` is ``records``, ``crc``, or the name of a value that cannot be had; ``header`` where the batch ends
    in it, ``size`` where it is torn, ``offsets`` where these were worked out from the batch before."""

    at: str
    error: CodecError


@dataclass(frozen=True, slots=True)
class Control:
    """What a control record says.

    ``type_id`` and ``type`` are None when the key cannot be read. ``value`` is the parsed value with the names
    of Kafka's documents; ``error`` why the key or the value cannot be read.
    """

    type_id: int | None
    type: str | None
    value: dict[str, Any] | None = None
    error: CodecError | None = None


class Record(NamedTuple):
    """One record. Timestamps are in milliseconds, -1 for none; ``sequence`` is -1 for none.

    A tuple, since there are millions of them: it takes a quarter of the time that a dataclass takes. What has the name
    of a column of the view records is that column; ``more`` are the columns of it that stand neither here nor in
    :class:`Batch`, in their order.
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
        """The timestamp as a datetime in UTC; None for none, and for one that no datetime can hold."""
        return time_of(self.timestamp)

    @property
    def is_control(self) -> bool:
        """Whether a broker wrote it for itself: a marker."""
        return self.control is not None

    def _title(self) -> str:
        return "Record"

    def _named_values(self) -> Iterator[tuple[str, Any]]:
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
"""What is not shown where there is none."""
_TIMES = ("base_timestamp", "max_timestamp", "delete_horizon")


@dataclass(slots=True, repr=False)
class Batch:
    """A record batch, or a message of the older formats (a wrapper with what it holds).

    What has the name of a column of the view batches is that column. ``position`` is its first byte in the file, ``size``
    its length in bytes. Values that the format of ``magic`` does not have are -1, None or False, as in Apache Kafka's own
    reader. A value that cannot be read is None, and ``problems`` says why. ``timestamp_type`` is -1 (none), 0 (CreateTime)
    or 1 (LogAppendTime). ``base_offset`` is that of the first record where the header does not say it.
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
    """What a strict reader would have refused, but this policy takes."""
    more: tuple[Any, ...] = ()
    """The columns of the view batches that have no place here, in their order."""
    says_base_offset: bool = True
    """Whether the header has the base offset."""
    section: tuple[int, int] | None = field(default=None, compare=False)
    """Bytes of the section that may be compressed, as it is and without compression; None: it was not opened."""

    @property
    def compression(self) -> str | None:
        """The name of the codec; None when it has none."""
        return codec_label(self.codec)

    @property
    def max_time(self) -> datetime | None:
        """The largest timestamp as a datetime in UTC; None for none, and for one that no datetime can hold."""
        return time_of(self.max_timestamp)

    @property
    def count(self) -> int | None:
        """How many records the header says there are; None when it does not."""
        return self.record_count

    @property
    def partition_leader_epoch(self) -> int:
        """The leader epoch, by the name that it has in Kafka's documents."""
        return self.leader_epoch

    def _title(self) -> str:
        return "Batch"

    def _named_values(self) -> Iterator[tuple[str, Any]]:
        """Yield names and values of all fields: the name of the codec next to its number, and records last."""
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
    """Return the name of a codec by its number, None for an unknown number."""
    from kafka_codecs import Compression  # the codecs may not be needed otherwise

    found = Compression.find(number)
    return None if found is None else found.label


@cache
def timestamp_type_label(number: int) -> str | None:
    """Return the name of a timestamp type in Kafka; None for entries that have none."""
    from kafka_codecs import TimestampType

    found = TimestampType.find(number)
    return None if found is None else found.label


def is_own_checksum(finding: CodecError) -> bool:
    """Return whether a finding says that the checksum of a batch itself is wrong, not one of a message inside it."""
    return isinstance(finding, ChecksumError) and "[" not in (finding.where.path or "")


@dataclass(frozen=True, slots=True)
class Lost:
    """A run of bytes that could not be read, and what it may have held.

    ``after_offset`` is the last offset before it, ``before_offset`` the first one after it (None: unknown).
    """

    start: int
    end: int
    reason: str
    after_offset: int | None = None
    before_offset: int | None = None
    around: tuple[int | None, int | None] | None = field(default=None, compare=False)
    """Of a batch with a wrong checksum of which records could be read, whose offsets may be wrong too: those before and after it."""
    read: int = field(default=0, compare=False)
    """How many these records are."""

    def up_to(self, next_base: int | None) -> Lost:
        """Return the lost range with its end limited to the first offset of the next segment. None: that offset is unknown."""
        after, before = self.after_offset, self.before_offset
        if next_base is None or (after is not None and after >= next_base):
            return self
        if before is not None and before <= next_base:
            return self
        return replace(self, before_offset=next_base)


@dataclass(frozen=True, slots=True)
class End:
    """How reading a file ended.

    ``stop`` is ``eof``, ``partial`` (it ended quietly with bytes left over), ``zeros`` (these are zeros alone) or ``error``
    (what ``error`` says). ``note`` says why bytes that are left over are normal; None when they are not, or there are none.
    ``valid_bytes`` is the end of the last batch before the first that fails its checksum, ``iterated_bytes`` the
    end of the last batch.
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
        """Whether nothing is wrong with how the file ended, and nothing was lost."""
        return not self.lost and (self.stop == "eof" or self.note is not None)


def record_size(record: Record) -> int:
    """Bytes of a record in a table, or a few more: a character of a header's key has at most 4 bytes."""
    headers = sum(4 * len(key) + len(value or b"") for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
