"""Batches whose checksums are wrong, bytes that are no batches, and records that cannot be read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.base import Check, are, only_zeros
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import RULES, Refused, Walked
from kafka_log.inspect.check.tails import tail_kind
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import Lost
from kafka_log.segment.versions import VERSIONS, are_known, checks_magic, have, version_of

OF_ONE_RUN = 100
"""Batches of a run of damaged bytes that are named one by one."""

_RESTORE = "Copy the partition from another replica; if there is none, write what can be read with: kafka-log salvage."


class BatchCheck(Check):
    """Checksums, lengths, and what cannot be parsed."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        for run in walked.lost:
            if tail_kind(walked, run) is None:
                yield from self._run(walked, run)
        is_counted = have(walked.headers.magic, "record_count")
        negative = is_counted & (walked.headers.count < 0)
        yield from self._negative(walked, negative)
        yield from self._records(walked, {*walked.headers.position[negative].tolist()})
        yield from self._rules(walked)
        yield from self._magic(walked)

    def _run(self, walked: Walked, run: Lost) -> Iterator[Finding]:
        """Where lengths lead from one batch to the next, each is a finding; the rest is one of its own."""
        after, before = run.after_offset, run.before_offset
        position = run.start
        for entry, first, last in framed(walked, run):
            known = _between(first, last, after, before)
            at_risk = None if known is None else known[1] - known[0] + 1
            yield self.context.finding(
                "error",
                "batch_checksum",
                walked.segment.path,
                f"A batch of {entry.frame.size} bytes is damaged: its checksum does not agree with its bytes.",
                _RESTORE,
                byte=entry.position,
                first_offset=None if known is None else known[0],
                last_offset=None if known is None else known[1],
                records=at_risk,
            )
            position = entry.position + entry.frame.size
            after = after if known is None else known[1]
        if position < run.end:
            yield self._unreadable(walked, run, position, after)

    def _unreadable(self, walked: Walked, run: Lost, position: int, after: int | None) -> Finding:
        size = run.end - position
        zeros = _is_zero(walked, position, run.end)
        what = (
            f"{are(size, 'byte')} are zeros where batches should be."
            if zeros
            else f"{are(size, 'byte')} cannot be read as batches."
        )
        first = None if after is None else after + 1
        last = None if run.before_offset is None else run.before_offset - 1
        known = first is not None and last is not None and first <= last
        return self.context.finding(
            "error",
            "zeroed_bytes" if zeros else "unreadable_bytes",
            walked.segment.path,
            what,
            _RESTORE,
            byte=position,
            first_offset=first if known or last is None else None,
            last_offset=last if known else None,
            records=last - first + 1 if known and last is not None and first is not None else None,
        )

    def _negative(self, walked: Walked, those: Any) -> Iterator[Finding]:
        """Name the batches that say they have fewer than no records."""
        headers = walked.headers
        for i in those.nonzero()[0].tolist()[:OF_ONE_RUN]:
            first, last = int(headers.first[i]), int(headers.last[i])
            yield self.context.finding(
                "error",
                "batch_count",
                walked.segment.path,
                f"A batch says that it has {headers.count[i]} records, though its checksum is right: readers stop there.",
                "Copy the partition from another replica, or skip the batch when you read.",
                byte=int(headers.position[i]),
                first_offset=first,
                last_offset=last,
                records=max(last - first + 1, 0),
            )

    def _records(self, walked: Walked, but: Container[int]) -> Iterator[Finding]:
        """Name the batches whose records cannot all be read, but those at some positions."""
        for batch in walked.refused:
            if batch.position in but or batch.problem.at == RULES:
                continue
            inner = batch.problem.at == "crc"
            lost = max((batch.last - batch.first + 1) - batch.read, 0)
            reason = batch.problem.error.reason
            yield self.context.finding(
                "error",
                "record_checksum" if inner else "batch_records",
                walked.segment.path,
                f"A message in a batch has a wrong checksum: {reason}."
                if inner
                else f"The checksum of a batch is right, but its records cannot all be read: {reason}.",
                "Copy the partition from another replica, or skip the batch when you read.",
                byte=batch.position,
                first_offset=batch.first,
                last_offset=batch.last,
                records=lost if batch.count is None else max(batch.count - batch.read, 0),
            )

    def _rules(self, walked: Walked) -> Iterator[Finding]:
        """Report the batches of a segment that break the same rule as one finding."""
        broken: dict[str, list[Refused]] = {}
        for batch in walked.refused:
            if batch.problem.at == RULES:
                where = batch.problem.error.where
                broken.setdefault(f"{where.path} {where.schema}", []).append(batch)
        for batches in broken.values():
            first, last = batches[0], batches[-1]
            many = (
                "1 batch contradicts" if len(batches) == 1 else f"{len(batches)} batches contradict"
            )
            begin = "" if len(batches) == 1 else "In the first one "
            yield self.context.finding(
                "warning",
                "batch_rules",
                walked.segment.path,
                f"{many} the rules that brokers hold producers to. {begin}{first.problem.error.reason}. Consumers read the "
                "records; look-ups by offset or time, compaction and tools may go wrong.",
                "Read the records without a range of offsets or timestamps, and repair or replace the program that wrote them.",
                byte=first.position,
                first_offset=first.first,
                last_offset=last.last,
            )

    def _magic(self, walked: Walked) -> Iterator[Finding]:
        headers = walked.headers
        for i in (~are_known(headers.magic)).nonzero()[0].tolist()[:OF_ONE_RUN]:
            version = version_of(int(headers.magic[i]))
            remedy = "Copy the partition from another replica"
            if not checks_magic(version):
                remedy += f", or set the byte to {version}: the checksum does not cover it"
            yield self.context.finding(
                "error",
                "batch_magic",
                walked.segment.path,
                f"A batch says that its version is {headers.magic[i]}, which Kafka does not have; its checksum is right.",
                f"{remedy}.",
                byte=int(headers.position[i]),
                first_offset=int(headers.first[i]),
                last_offset=int(headers.last[i]),
                records=max(int(headers.count[i]), 0),
            )


def framed(walked: Walked, run: Lost) -> Iterator[tuple[Entry, Any, Any]]:
    """Entries of a run, as long as the length of each leads to another one, or to the end of the run."""
    name = str(walked.segment.path)
    columns = HeaderColumns(("base_offset", "last_offset"), name)
    position = run.start
    with walked.segment.path.open("rb") as file:
        for _ in range(OF_ONE_RUN):
            entry = _entry(file, position, run.end, name)
            if entry is None:
                return
            end = position + entry.frame.size
            if end < run.end and _entry(file, end, run.end, name) is None:
                return
            try:
                first, last = columns.read(entry)
            except CodecError:
                return
            yield entry, first, last
            position = end


def _entry(file: Any, position: int, end: int, name: str) -> Entry | None:
    """What begins at a place and says that it ends in the run; None when there is nothing like that."""
    file.seek(position)
    data = file.read(min(HEADER_BYTES, end - position))
    if len(data) < framing.HEADER_START:
        return None
    try:
        frame = framing.frame_of(data, position, name)
    except CodecError:
        return None
    if frame.magic not in VERSIONS or position + frame.size > end:
        return None
    return Entry(position, frame, data)


def _between(
    first: int | None, last: int, after: int | None, before: int | None
) -> tuple[int, int] | None:
    """The offsets that a damaged batch says it has, if they fit those around it."""
    start = last if first is None else first
    fits = 0 <= start <= last
    fits = fits and (after is None or after < start) and (before is None or last < before)
    if fits:
        return start, last
    if after is not None and before is not None and after + 1 < before:
        return after + 1, before - 1
    return None


def _is_zero(walked: Walked, start: int, end: int) -> bool:
    with walked.segment.path.open("rb") as file:
        return only_zeros(file, start, end)
