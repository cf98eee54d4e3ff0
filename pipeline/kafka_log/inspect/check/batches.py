"""Check of batches: checksums, unreadable bytes, record counts, records, format versions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.catalog import copy_or_skip, keep_or_skip
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.repairs import describe_header_repairs, describe_range_repairs
from kafka_log.inspect.check.segment_scan import RULES, RefusedBatch, ScannedSegment, is_zeros
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import Lost
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.versions import VERSIONS, are_known, have_field, version_of

MAX_BATCHES = 100
"""Maximum of findings for the batches of one lost range or one segment."""


class BatchCheck(Check):
    """Reports batches with a wrong checksum, bytes inside a segment that are not batches, negative
    record counts, unknown format versions, and (if records are decoded) undecodable records and
    batches that brokers would reject. Incomplete tails are left to TailCheck.
    """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        headers = scanned.headers
        for run in scanned.lost:
            if scanned.tail_kind_of(run) is None:
                yield from self._check_lost_range(scanned, run)
        is_counted = have_field(headers.magic, "record_count")
        negative = is_counted & (headers.count < 0)
        yield from self._check_counts(scanned, negative)
        yield from self._check_records(scanned, {*headers.position[negative].tolist()})
        yield from self._check_rules(scanned)
        yield from self._check_magic(scanned)

    def _check_lost_range(self, scanned: ScannedSegment, run: Lost) -> Iterator[Finding]:
        """Yield the findings about the lost range ``run``. These are ``batch_checksum`` for each
        batch that the length fields delimit from its start (at most MAX_BATCHES), then
        ``unreadable_bytes`` or ``zeroed_bytes`` for the bytes after them, if any. Offsets and
        records are None if neither the header, the batches around it nor the name of the segment
        give them. Raise OSError if the segment cannot be opened or read.
        """
        after, before = run.after_offset, run.before_offset
        if after is None and scanned.segment.has_canonical_name:
            after = scanned.segment.base_offset - 1
        position = run.start
        repairs = describe_range_repairs(scanned, run)
        for entry, first, last in find_framed_batches(scanned, run):
            known = _damaged_offsets(first, last, after, before)
            at_risk = None if known is None else known[1] - known[0] + 1
            yield self.context.finding(
                "batch_checksum",
                scanned.segment.path,
                f"The batch of {entry.frame.size} bytes that begins at this byte is damaged: its checksum does not match its bytes. Consumers stop there.{repairs.get(entry.position, '')}",
                byte=entry.position,
                first_offset=None if known is None else known[0],
                last_offset=None if known is None else known[1],
                records=at_risk,
            )
            position = entry.position + entry.frame.size
            after = after if known is None else known[1]
        if position < run.end:
            repair = repairs.get(position, "")
            yield self._unreadable_finding(scanned, run, position, after, repair)

    def _unreadable_finding(
        self, scanned: ScannedSegment, run: Lost, position: int, after: int | None, repair: str
    ) -> Finding:
        """Return a finding about the bytes of a lost range from ``position`` to its end:
        ``zeroed_bytes`` if all are 0, ``batch_magic`` if they begin like a batch of a newer version
        and there is no ``repair``, else ``unreadable_bytes``. Its offsets are those between
        ``after`` and the batch behind the range: only the first one if that batch is unknown, none
        if ``after`` is None or nothing lies between. The sentence ``repair`` is appended to the
        meaning. Raise OSError if the segment cannot be opened or read.
        """
        size = run.end - position
        zeros = _range_is_zero(scanned, position, run.end)
        newer = None if repair else _find_newer_version(scanned, position, run.end)
        kind = "zeroed_bytes" if zeros else "unreadable_bytes" if newer is None else "batch_magic"
        what = (
            f"{count_noun(size, 'byte')} {'is' if size == 1 else 'are'} {'zero' if size == 1 else 'zeros'}, from byte {position} to byte {run.end - 1}. Batches should be there."
            if zeros
            else f"{count_noun(size, 'byte')} from this byte on cannot be read as batches. Consumers stop there."
        )
        if newer is not None:
            what = f"{_describe_unknown_version(newer)} Where its checksum lies is unknown too: {count_noun(size, 'byte')} from this byte on cannot be verified."
        first = None if after is None else after + 1
        if run.before_offset is not None and run.before_offset == first:
            missing = "No offset" if position == run.start else "No other offset"
            what += f" {missing} is missing: the log continues at offset {first}."
        elif run.before_offset is not None:
            what += f" The log continues at offset {run.before_offset}."
        last = None if run.before_offset is None else run.before_offset - 1
        known = first is not None and last is not None and first <= last
        return self.context.finding(
            kind,
            scanned.segment.path,
            f"{what}{repair}",
            byte=position,
            first_offset=first if known or last is None else None,
            last_offset=last if known else None,
            records=last - first + 1 if known and last is not None and first is not None else None,
        )

    def _check_counts(self, scanned: ScannedSegment, is_negative: Any) -> Iterator[Finding]:
        """Yield a ``batch_count`` error for each batch of the mask ``is_negative``, at most
        MAX_BATCHES. The record count of these batches is negative although their checksum is valid.
        ``records`` is the number of offsets in the header, 0 if the last is below the first.
        """
        headers = scanned.headers
        for i in is_negative.nonzero()[0].tolist()[:MAX_BATCHES]:
            first, last = int(headers.first[i]), int(headers.last[i])
            yield self.context.finding(
                "batch_count",
                scanned.segment.path,
                f"The header of a batch has the record count {headers.count[i]}, although its checksum is valid. Consumers stop at this batch and do not reach the offsets after it.",
                remedy=copy_or_skip(f"offset {max(first, last) + 1}"),
                byte=int(headers.position[i]),
                first_offset=first,
                last_offset=last,
                records=max(last - first + 1, 0),
            )

    def _check_records(
        self, scanned: ScannedSegment, skipped_positions: Container[int]
    ) -> Iterator[Finding]:
        """Yield an error for each batch of ``scanned.refused`` whose records are damaged. It is
        ``record_checksum`` if the checksum of a legacy message in the batch is wrong, else
        ``batch_records``. Skip batches at the byte positions ``skipped_positions`` and batches that
        only break rules. ``records`` is the number of records that were not read.
        """
        for batch in scanned.refused:
            if batch.position in skipped_positions or batch.problem.at == RULES:
                continue
            inner = batch.problem.at == "crc"
            lost = max((batch.last - batch.first + 1) - batch.read, 0)
            reason, after = batch.problem.error.reason, f"offset {batch.last + 1}"
            yield self.context.finding(
                "record_checksum" if inner else "batch_records",
                scanned.segment.path,
                f"A message inside a batch has a wrong checksum: {reason}."
                if inner
                else f"The checksum of a batch is valid, but not all of its records can be decoded: {reason}.",
                remedy=copy_or_skip(after) if inner else keep_or_skip(after),
                byte=batch.position,
                first_offset=batch.first,
                last_offset=batch.last,
                records=lost if batch.count is None else max(batch.count - batch.read, 0),
            )

    def _check_rules(self, scanned: ScannedSegment) -> Iterator[Finding]:
        """Yield one ``batch_rules`` warning for each rule of brokers for producers that batches of
        the segment break, at the first of these batches. It gives their number and the reason of
        the first; its offsets reach from the first to the last of them.
        """
        broken: dict[str, list[RefusedBatch]] = {}
        for batch in scanned.refused:
            if batch.problem.at == RULES:
                where = batch.problem.error.where
                broken.setdefault(f"{where.path} {where.schema}", []).append(batch)
        for batches in broken.values():
            first, last = batches[0], batches[-1]
            many = "1 batch breaks" if len(batches) == 1 else f"{len(batches)} batches break"
            begin = "" if len(batches) == 1 else "In the first one "
            yield self.context.finding(
                "batch_rules",
                scanned.segment.path,
                f"{many} a rule that brokers enforce for producers. {begin}{first.problem.error.reason}. Consumers read the "
                "records; lookups by offset or time, compaction and tools may fail.",
                byte=first.position,
                first_offset=first.first,
                last_offset=last.last,
            )

    def _check_magic(self, scanned: ScannedSegment) -> Iterator[Finding]:
        """Yield a ``batch_magic`` error for each batch with a valid checksum whose version the
        schemas do not have, at most MAX_BATCHES. Its meaning names a repair if there is one. Raise
        OSError if there is such a batch and the segment cannot be opened.
        """
        headers = scanned.headers
        unknown = (~are_known(headers.magic)).nonzero()[0].tolist()[:MAX_BATCHES]
        repairs = describe_header_repairs(scanned) if unknown else {}
        for i in unknown:
            magic, position = int(headers.magic[i]), int(headers.position[i])
            first, last = int(headers.first[i]), int(headers.last[i])
            yield self.context.finding(
                "batch_magic",
                scanned.segment.path,
                f"{_describe_unknown_version(magic)} Its checksum is valid if it is read as version {version_of(magic)}, as Kafka's reader reads it.{repairs.get(position, '')}",
                byte=position,
                first_offset=first,
                last_offset=last,
                records=max(int(headers.count[i]), last - first + 1, 0),
            )


def _describe_unknown_version(magic: int) -> str:
    """Return the sentences about a batch whose version the schemas do not have."""
    known = ", ".join(map(str, VERSIONS))
    what = "a newer Kafka may have written it, or bits" if magic > VERSIONS[-1] else "bits"
    return f"The batch has the format version {magic} in its magic byte, which is unknown here (known: {known}): {what} of the byte were flipped."


def find_framed_batches(scanned: ScannedSegment, run: Lost) -> Iterator[tuple[Entry, Any, Any]]:
    """Yield each batch of a lost range that its length field delimits, with its first offset (None
    if the header has none) and its last offset. Checksums are not verified. Stop after MAX_BATCHES,
    at an invalid header, and before a batch after which neither another batch nor the end of the
    range follows. Raise OSError if the file cannot be opened or read.
    """
    name = str(scanned.segment.path)
    columns = HeaderColumns(("base_offset", "last_offset"), name)
    position = run.start
    with open_regular(scanned.segment.path, -1) as file:
        for _ in range(MAX_BATCHES):
            entry = _entry_at(file, position, run.end, name)
            if entry is None:
                return
            end = position + entry.frame.size
            if end < run.end and _entry_at(file, end, run.end, name) is None:
                return
            try:
                first, last = columns.read(entry)
            except CodecError:
                return
            yield entry, first, last
            position = end


def _find_newer_version(scanned: ScannedSegment, position: int, end: int) -> int | None:
    """Return the version of the batch at byte ``position``, if it is above those of the schemas, and
    the length field leads to ``end`` or to another batch. Return None otherwise. Raise OSError if
    the file cannot be opened or read.
    """
    name = str(scanned.segment.path)
    with open_regular(scanned.segment.path, -1) as file:
        entry = _entry_at(file, position, end, name, is_newer=True)
        if entry is None or entry.frame.magic in VERSIONS:
            return None
        stop = position + entry.frame.size
        follows = stop == end or _entry_at(file, stop, end, name, is_newer=True) is not None
        return entry.frame.magic if follows else None


def _entry_at(
    file: Any, position: int, end: int, name: str, *, is_newer: bool = False
) -> Entry | None:
    """Return the batch at byte ``position``, with its header but without verifying its checksum.
    Return None if the header is incomplete before ``end`` or invalid, its format version is unknown
    (with ``is_newer`` not one above the known ones either), or the batch reaches beyond ``end``.
    Raise OSError if ``file`` cannot be read.
    """
    file.seek(position)
    data = file.read(min(HEADER_BYTES, end - position))
    if len(data) < framing.HEADER_START:
        return None
    try:
        frame = framing.frame_of(data, position, name)
    except CodecError:
        return None
    is_possible = frame.magic in VERSIONS or (is_newer and frame.magic > VERSIONS[-1])
    if not is_possible or position + frame.size > end:
        return None
    return Entry(position, frame, data)


def _damaged_offsets(
    first: int | None, last: int, after: int | None, before: int | None
) -> tuple[int, int] | None:
    """Return the first and last offset of a damaged batch. These are ``first`` (None: ``last``) and
    ``last`` if they are not negative, do not descend, and lie between ``after`` and ``before``
    (both exclusive; None is no limit). Else they are all offsets between ``after`` and ``before``;
    None if one of the two is None or none lies between.
    """
    start = last if first is None else first
    fits = 0 <= start <= last
    fits = fits and (after is None or after < start) and (before is None or last < before)
    if fits:
        return start, last
    if after is not None and before is not None and after + 1 < before:
        return after + 1, before - 1
    return None


def _range_is_zero(scanned: ScannedSegment, start: int, end: int) -> bool:
    """Return whether the bytes of the segment from ``start`` to before ``end`` are all 0; bytes
    after the end of the file count as 0. Raise OSError if the file cannot be read.
    """
    with open_regular(scanned.segment.path, -1) as file:
        return is_zeros(file, start, end)
