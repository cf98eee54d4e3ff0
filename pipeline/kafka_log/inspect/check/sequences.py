"""Check of the sequence numbers of idempotent producers: they are consecutive within a producer epoch.

A broker rejects a batch whose sequence numbers do not follow, unless it has forgotten the producer. Compaction,
retention and damage leave gaps between offsets, for which other checks have findings. This check finds missing and
repeated sequence numbers where no offset is missing. Topics that coordinators write have no sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.catalog import CATALOG
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.inspect.producers.table import SEQUENCES, sequence_distance
from kafka_log.logs.names import LOG_START
from kafka_log.read.internal_topics import COORDINATOR_TOPICS

MAX_FINDINGS = 100
"""Maximum of findings for a partition."""

FORGOTTEN_MS = 24 * 60 * 60 * 1000
"""Time after which brokers forget a producer that writes nothing (``producer.id.expiration.ms``)."""

_FORGOTTEN = "Nothing to do if you know the reason: the producer wrote nothing for a day or more before, after which brokers forget it."


@dataclass(frozen=True, slots=True)
class LastBatch:
    """Last batch of a producer epoch: last sequence number, timestamp, number of offsets missing before it."""

    sequence: int
    timestamp: int
    missing: int


class SequenceCheck(Check):
    """Reports missing and repeated sequence numbers of producers where no offset is missing.
    Memory: one :class:`LastBatch` for each producer epoch.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last: dict[tuple[int, int], LastBatch] = {}
        self.present = 0
        self.reported = 0
        self.log_start = context.broker.offset(LOG_START, context.key) or 0

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        if self.context.partition.topic in COORDINATOR_TOPICS:
            return
        headers, said = scanned.headers, scanned.sequences
        spans = np.where(scanned.placed, headers.last - headers.first + 1, 0)
        missing = headers.first - self.present - (np.cumsum(spans) - spans)
        self.present += int(spans.sum())
        rows = (headers.producer_id >= 0) & ~headers.is_control & scanned.placed
        # Brokers forget producers whose records are all below the log start offset.
        rows &= (said["base_sequence"] >= 0) & (headers.last >= self.log_start)
        rows = np.flatnonzero(rows)
        if not len(rows):
            return
        producer, epoch = headers.producer_id[rows], said["producer_epoch"][rows]
        order = np.lexsort((epoch, producer))  # a stable sort
        rows, producer, epoch = rows[order], producer[order], epoch[order]
        first, last = said["base_sequence"][rows], said["last_sequence"][rows]
        same = (producer[1:] == producer[:-1]) & (epoch[1:] == epoch[:-1])
        odd = same & ((first[1:] - last[:-1]) % SEQUENCES != 1)
        starts = [0, *(np.flatnonzero(~same) + 1).tolist(), len(rows)]
        odds = np.add.accumulate(np.append(0, odd))
        for i, end in pairwise(starts):
            key = int(producer[i]), int(epoch[i])
            before = self.last.get(key)
            follows = before is None or sequence_distance(before.sequence, int(first[i])) == 1
            if follows and odds[end - 1] == odds[i]:
                at = rows[end - 1]
                time = int(headers.max_timestamp[at])
                self.last[key] = LastBatch(int(last[end - 1]), time, int(missing[at]))
            else:
                yield from self._check_batches(scanned, key, rows[i:end].tolist(), missing)

    def _check_batches(
        self, scanned: ScannedSegment, key: tuple[int, int], rows: list[int], missing: Any
    ) -> Iterator[Finding]:
        """Yield findings about the batches ``rows`` of one producer id and epoch (``key``), each
        compared with the one before. A batch has ``sequences_twice`` if it begins at or before the
        last sequence number, and ``sequences_missing`` if it skips numbers and ``missing`` is equal
        for both. ``missing`` has, for each batch of the segment, how many offsets from 0 on are
        missing before it in total. Each batch becomes the last one of its producer in ``last``; if
        it ends below the one before, with the sequence number of that one.
        """
        for row in rows:
            first, last = (
                int(scanned.sequences[n][row]) for n in ("base_sequence", "last_sequence")
            )
            now = LastBatch(last, int(scanned.headers.max_timestamp[row]), int(missing[row]))
            before = self.last.get(key)
            if before is not None:
                ahead = sequence_distance(before.sequence, first)
                if ahead < 1:
                    yield from self._report_repeated(scanned, row, key, (first, last), before)
                elif ahead > 1 and now.missing == before.missing:
                    yield from self._report_missing(scanned, row, key, (first, ahead - 1), before)
                if sequence_distance(before.sequence, last) < 0:
                    now = LastBatch(before.sequence, now.timestamp, now.missing)
            self.last[key] = now

    def _report_missing(
        self,
        scanned: ScannedSegment,
        row: int,
        key: tuple[int, int],
        numbers: tuple[int, int],
        before: LastBatch,
    ) -> Iterator[Finding]:
        """Yield a ``sequences_missing`` finding about the batch ``row``. ``key`` is producer id and
        epoch, ``numbers`` are its first sequence number and how many are missing before it. Yield
        nothing after MAX_FINDINGS in the partition.
        """
        first, count = numbers
        missed = (before.sequence + 1) % SEQUENCES
        which = (
            f"number {missed} is"
            if count == 1
            else f"numbers {missed} to {(first - 1) % SEQUENCES} are"
        )
        what = f"begins with sequence number {first} of {_describe_producer(key)}, but the batch before it ended with {before.sequence}"
        yield from self._report(
            "sequences_missing",
            scanned,
            row,
            key,
            f"{what}. {count_noun(count, 'record')} with the sequence {which} not in the log before this batch, although no offset is missing.",
            before,
        )

    def _report_repeated(
        self,
        scanned: ScannedSegment,
        row: int,
        key: tuple[int, int],
        numbers: tuple[int, int],
        before: LastBatch,
    ) -> Iterator[Finding]:
        """Yield a ``sequences_twice`` finding about the batch ``row``, which repeats numbers of
        ``before``, the last batch of its producer. ``key`` is producer id and epoch, ``numbers``
        are its first and last sequence number. Yield nothing after MAX_FINDINGS in the partition.
        """
        first, last = numbers
        what = f"has the sequence numbers {first} to {last} of {_describe_producer(key)}, after a batch that ended with {before.sequence}"
        yield from self._report(
            "sequences_twice",
            scanned,
            row,
            key,
            f"{what}. If both batches have the same records, consumers read them twice.",
            before,
        )

    def _report(
        self,
        code: str,
        scanned: ScannedSegment,
        row: int,
        key: tuple[int, int],
        what: str,
        before: LastBatch,
    ) -> Iterator[Finding]:
        """Yield the finding ``code`` about the batch ``row`` of the producer ``key`` (id, epoch),
        with the words ``what``. It is a note if its timestamp and that of ``before`` are a day or
        more apart, after which brokers forget a producer, else a warning. ``records`` is None,
        because the records at the offsets of the batch are there. Yield nothing if the partition
        has MAX_FINDINGS already.
        """
        self.reported += 1
        if self.reported > MAX_FINDINGS:
            return
        headers = scanned.headers
        first, last = int(headers.first[row]), int(headers.last[row])
        forgotten = abs(int(headers.max_timestamp[row]) - before.timestamp) >= FORGOTTEN_MS
        compare = CATALOG[code].remedy
        yield self.context.finding(
            code,
            scanned.segment.path,
            f"The batch with offsets {first} to {last} {what}",
            severity="note" if forgotten else "warning",
            remedy=f"{_FORGOTTEN} {compare}" if forgotten else compare,
            byte=int(headers.position[row]),
            first_offset=first,
            last_offset=last,
            producer_id=key[0],
        )


def _describe_producer(key: tuple[int, int]) -> str:
    """Return a producer id and epoch as words of a sentence."""
    return f"producer {key[0]}, epoch {key[1]}"
