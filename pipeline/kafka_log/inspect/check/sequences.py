"""Sequence numbers of idempotent producers: in each epoch of a producer they follow on each other.

A broker refuses a batch whose numbers do not follow, unless it has forgotten the producer. What compaction, retention, and damage take
leaves offsets out, of which others tell: here it is about numbers that are missing, or come again, where no offset is missing. Topics that
coordinators write have no such numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kafka_log.inspect.check.base import Check, Context, are
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.inspect.producers.table import SEQUENCES, distance
from kafka_log.logs.names import LOG_START
from kafka_log.read.internal_topics import COORDINATOR_TOPICS

MOST = 100
"""Batches that are named one by one."""

FORGOTTEN_MS = 24 * 60 * 60 * 1000
"""After so much time brokers forget a producer that writes nothing (``producer.id.expiration.ms``)."""

_FORGOTTEN = "Nothing if you know why: this is a day or more after the producer's last batch, and brokers forget a producer after a day."
_ASK = "Compare with the other replicas by kafka-log diff; kafka-log producers tells more"


@dataclass(frozen=True, slots=True)
class Last:
    """The last batch of a producer's epoch: its last sequence number, its timestamp, and how many offsets were missing before it."""

    sequence: int
    timestamp: int
    missing: int


class SequenceCheck(Check):
    """Sequence numbers that are missing, or come again. Memory holds a :class:`Last` for each epoch of a producer."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last: dict[tuple[int, int], Last] = {}
        self.present = 0
        self.told = 0
        self.log_start = context.broker.offset(LOG_START, context.key) or 0

    def segment(self, walked: Walked) -> Iterable[Finding]:
        if self.context.partition.topic in COORDINATOR_TOPICS:
            return
        headers, said = walked.headers, walked.sequences
        spans = np.where(walked.placed, headers.last - headers.first + 1, 0)
        missing = headers.first - self.present - (np.cumsum(spans) - spans)
        self.present += int(spans.sum())
        rows = (headers.producer_id >= 0) & ~headers.is_control & walked.placed
        # Brokers forget producers of which all records lie before the start of the log.
        rows &= (said["base_sequence"] >= 0) & (headers.last >= self.log_start)
        rows = np.flatnonzero(rows)
        if not len(rows):
            return
        producer, epoch = headers.producer_id[rows], said["producer_epoch"][rows]
        order = np.lexsort((epoch, producer))  # which keeps the order of those that are equal
        rows, producer, epoch = rows[order], producer[order], epoch[order]
        first, last = said["base_sequence"][rows], said["last_sequence"][rows]
        same = (producer[1:] == producer[:-1]) & (epoch[1:] == epoch[:-1])
        odd = same & ((first[1:] - last[:-1]) % SEQUENCES != 1)
        starts = [0, *(np.flatnonzero(~same) + 1).tolist(), len(rows)]
        odds = np.add.accumulate(np.append(0, odd))
        for i, end in pairwise(starts):
            key = int(producer[i]), int(epoch[i])
            before = self.last.get(key)
            follows = before is None or distance(before.sequence, int(first[i])) == 1
            if follows and odds[end - 1] == odds[i]:
                at = rows[end - 1]
                time = int(headers.max_timestamp[at])
                self.last[key] = Last(int(last[end - 1]), time, int(missing[at]))
            else:
                yield from self._one_by_one(walked, key, rows[i:end].tolist(), missing)

    def _one_by_one(
        self, walked: Walked, key: tuple[int, int], rows: list[int], missing: Any
    ) -> Iterator[Finding]:
        for row in rows:
            first, last = (
                int(walked.sequences[n][row]) for n in ("base_sequence", "last_sequence")
            )
            now = Last(last, int(walked.headers.max_timestamp[row]), int(missing[row]))
            before = self.last.get(key)
            if before is not None:
                ahead = distance(before.sequence, first)
                if ahead < 1:
                    yield from self._again(walked, row, key, (first, last), before)
                elif ahead > 1 and now.missing == before.missing:
                    yield from self._missing(walked, row, key, (first, ahead - 1), before)
                if distance(before.sequence, last) < 0:
                    now = Last(before.sequence, now.timestamp, now.missing)
            self.last[key] = now

    def _missing(
        self,
        walked: Walked,
        row: int,
        key: tuple[int, int],
        numbers: tuple[int, int],
        before: Last,
    ) -> Iterator[Finding]:
        first, count = numbers
        what = f"begins with sequence number {first} of {_producer(key)}, but the one before it ended with {before.sequence}"
        yield from self._finding(
            "sequences_missing",
            walked,
            row,
            key,
            f"{what}: {are(count, 'record')} of this producer {'is' if count == 1 else 'are'} not in the log, though no offset is missing.",
            before,
            count,
        )

    def _again(
        self, walked: Walked, row: int, key: tuple[int, int], numbers: tuple[int, int], before: Last
    ) -> Iterator[Finding]:
        first, last = numbers
        what = f"has the sequence numbers {first} to {last} of {_producer(key)}, after a batch that ended with {before.sequence}"
        headers = walked.headers
        count = int(headers.last[row] - headers.first[row]) + 1
        yield from self._finding(
            "sequences_twice",
            walked,
            row,
            key,
            f"{what}: they come again, and consumers get such records twice.",
            before,
            count,
        )

    def _finding(
        self,
        code: str,
        walked: Walked,
        row: int,
        key: tuple[int, int],
        what: str,
        before: Last,
        records: int,
    ) -> Iterator[Finding]:
        self.told += 1
        if self.told > MOST:
            return
        headers = walked.headers
        first, last = int(headers.first[row]), int(headers.last[row])
        forgotten = abs(int(headers.max_timestamp[row]) - before.timestamp) >= FORGOTTEN_MS
        yield self.context.finding(
            "note" if forgotten else "warning",
            code,
            walked.segment.path,
            f"The batch with offsets {first} to {last} {what}",
            f"{_FORGOTTEN} {_ASK}." if forgotten else f"{_ASK}.",
            byte=int(headers.position[row]),
            first_offset=first,
            last_offset=last,
            records=records,
            producer_id=key[0],
        )


def _producer(key: tuple[int, int]) -> str:
    return f"producer {key[0]} in its epoch {key[1]}"
