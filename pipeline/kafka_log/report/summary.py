"""What is in a log, in numbers: for each partition and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from codecgen.runtime.errors import CodecError
from kafka_log.disk.directory import Partition, Segment
from kafka_log.segment.model import Batch, End, is_own_checksum
from kafka_log.segment.reader import Batches

if TYPE_CHECKING:
    from kafka_log.segment.blocks import Block


@dataclass(slots=True)
class Summary:
    """Sums over segments. Offsets and timestamps are None when there are none; timestamps are in milliseconds."""

    name: str
    segments: int = 0
    size: int = 0
    batches: int = 0
    records: int = 0
    control_batches: int = 0
    transactional_batches: int = 0
    empty_batches: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    magics: Counter[int] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    producers: set[int] = field(default_factory=set)
    invalid_batches: int = 0
    trailing_bytes: int = 0
    lost_bytes: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.batches += 1
        count = len(batch.records) if batch.count is None else batch.count
        self.records += max(count, 0)
        self.control_batches += batch.is_control
        self.transactional_batches += batch.is_transactional
        self.empty_batches += count == 0
        self.magics[batch.magic] += 1
        self.codecs[batch.compression or "unknown"] += 1
        if batch.producer_id >= 0:
            self.producers.add(batch.producer_id)
        self.invalid_batches += not batch.is_valid
        first = batch.last_offset if batch.base_offset is None else batch.base_offset
        self.first_offset = _minimum(self.first_offset, first)
        self.last_offset = _maximum(self.last_offset, batch.last_offset)
        if batch.max_timestamp >= 0:
            self.first_timestamp = _minimum(self.first_timestamp, batch.max_timestamp)
            self.last_timestamp = _maximum(self.last_timestamp, batch.max_timestamp)
        self.problems += [
            f"batch at byte {batch.position}: {p.at}: {p.error}" for p in batch.problems
        ]
        if not batch.is_valid:
            self.problems += map(str, filter(is_own_checksum, batch.findings))

    def close(self, end: End, file: str) -> None:
        """Count how a file ended."""
        self.lost_bytes += sum(lost.end - lost.start for lost in end.lost)
        self.problems += [
            f"{file}: bytes {x.start} to {x.end} are lost: {x.reason}" for x in end.lost
        ]
        self.trailing_bytes += end.trailing_bytes
        if end.error is not None:
            self.problems.append(str(end.error))
        elif end.trailing_bytes and end.note is None:
            self.problems.append(
                f"{file}: {end.trailing_bytes} bytes at the end are no whole batch"
            )

    def merge(self, other: Summary) -> None:
        """Count another summary in. Offsets of several partitions do not add up, and stay out."""
        for name in (
            "segments",
            "size",
            "batches",
            "records",
            "control_batches",
            "transactional_batches",
            "empty_batches",
            "invalid_batches",
            "trailing_bytes",
            "lost_bytes",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.magics.update(other.magics)
        self.codecs.update(other.codecs)
        self.producers |= other.producers
        self.problems += other.problems
        self.first_timestamp = _minimum(self.first_timestamp, other.first_timestamp)
        self.last_timestamp = _maximum(self.last_timestamp, other.last_timestamp)

    def extend(self, other: Summary) -> None:
        """Count in a summary of the same partition."""
        self.merge(other)
        self.first_offset = _minimum(self.first_offset, other.first_offset)
        self.last_offset = _maximum(self.last_offset, other.last_offset)

    def as_object(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "segments": self.segments,
            "sizeInBytes": self.size,
            "batches": self.batches,
            "records": self.records,
            "controlBatches": self.control_batches,
            "transactionalBatches": self.transactional_batches,
            "emptyBatches": self.empty_batches,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "firstTimestamp": self.first_timestamp,
            "lastTimestamp": self.last_timestamp,
            "magics": {str(k): v for k, v in sorted(self.magics.items())},
            "compression": dict(sorted(self.codecs.items())),
            "producers": len(self.producers),
            "invalidBatches": self.invalid_batches,
            "trailingBytes": self.trailing_bytes,
            "lostBytes": self.lost_bytes,
            "problems": self.problems,
        }


def _minimum(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)


def _maximum(one: int | None, other: int | None) -> int | None:
    return max((n for n in (one, other) if n is not None), default=None)


@runtime_checkable
class InParts(Protocol):
    """A reader that gives runs of batches where it can."""

    def parts(self) -> Iterator[Batch | Block]: ...


def summarize(
    partitions: Iterable[Partition],
    reader: Callable[[Segment], Batches],
    advance: Callable[[int], None] = lambda _: None,
) -> list[Summary]:
    """A summary for each partition. ``reader`` opens a segment; ``advance`` is told of bytes that are done."""
    out = []
    partitions = list(partitions)
    names = {p: f"{p.topic}-{p.partition}" for p in partitions}
    if len(set(names.values())) < len(names):  # the same partition of several brokers
        names = {p: str(p.directory) for p in partitions}
    for partition in partitions:
        summary = Summary(names[partition])
        if partition.error is not None:
            summary.problems.append(str(partition.error))
        for segment in partition.segments:
            summary.segments += 1
            summary.size += segment.size
            segment_reader = reader(segment)
            done = 0
            try:
                for part in _parts(segment_reader):
                    if isinstance(part, Batch):
                        summary.add(part)
                        end = part.position + part.size
                    else:
                        # numpy: not without a block
                        from kafka_log.report.block_summary import block_summary

                        summary.extend(block_summary(part))
                        end = part.end
                    advance(end - done)
                    done = end
            except CodecError:
                pass  # a strict reader's first error, which is in its end too
            if segment_reader.end is not None:
                summary.close(segment_reader.end, str(segment.path))
            advance(segment.size - done)
        out.append(summary)
    return out


def _parts(reader: Batches) -> Iterator[Batch | Block]:
    return reader.parts() if isinstance(reader, InParts) else iter(reader)
