"""Check of the file leader-epoch-checkpoint against the leader epochs of batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from codecgen.runtime.errors import CodecError
from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log.inspect.check.base import Context
from kafka_log.inspect.check.catalog import compare_epochs
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.header_bytes import format_bytes, name_bytes
from kafka_log.inspect.check.log_end import EndCheck
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import read_small_file
from kafka_log.logs.names import CLUSTER_METADATA, LEADER_EPOCHS, LOG_START
from kafka_log.segment.versions import absent_value, version_of

NONE = absent_value("leader_epoch")
"""Leader epoch of a batch that has none."""
MAX_EPOCHS = 100
"""Maximum of epochs that have a finding of their own."""


def _describe_disorder(epochs: list[tuple[int, int]], lines: int) -> str:
    """Return the sentences about the first of ``epochs`` (epoch, start offset) that is out of
    order, with its line number. ``epochs`` are the last lines of a file of ``lines`` lines. Raise
    StopIteration if all are in order.
    """
    i = next(
        i
        for i, (a, b) in enumerate(pairwise(epochs), start=1)
        if not (a[0] < b[0] and a[1] <= b[1])
    )
    (before, start_before), (epoch, start) = epochs[i - 1], epochs[i]
    return (
        f"Line {lines - len(epochs) + i + 1}: epoch {epoch} at offset {start} follows epoch {before} at offset"
        f" {start_before}. Epochs must ascend, and offsets must not descend."
    )


class LeaderEpochCheck(EndCheck):
    """Reports batches whose leader epoch is negative, not in leader-epoch-checkpoint, or at other
    offsets than there; epochs that descend, if the file is missing or cannot be used; and a file
    that cannot be parsed, is unordered, begins before the log or reaches beyond its end.

    Brokers remove epochs below the log start offset from the file, so batches below it are not compared.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = context.partition.directory / LEADER_EPOCHS
        self.seen: set[tuple[str, int]] = set()
        self.epoch_before = NONE
        self.reload()

    def reload(self) -> None:
        self.error: CodecError | OSError | None = None
        self.epochs: list[tuple[int, int]] | None = None
        self.lines = 0
        try:
            data = read_small_file(self.path)
            parsed = LEADER_EPOCH_CHECKPOINT.parse(data, file=os.fspath(self.path), strict=False)
            self.lines = len(data.splitlines())
            self.epochs = [(e.epoch, e.start_offset) for e in parsed.epochs or ()]
        except FileNotFoundError:
            pass
        except (CodecError, OSError) as error:
            self.error = error
        self.is_sorted = self.epochs is not None and all(
            a[0] < b[0] and a[1] <= b[1] for a, b in zip(self.epochs, self.epochs[1:], strict=False)
        )

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        yield from super().check_segment(scanned)
        yield from self._check_negative(scanned)
        if self.epochs is None or not self.is_sorted:
            yield from self._check_descent(scanned)
            return
        headers = scanned.headers
        rows = np.flatnonzero((headers.leader_epoch >= 0) & scanned.placed)
        rows = rows[headers.last[rows] >= self._log_start()]
        first = np.maximum(headers.first[rows], self._log_start())
        last, said = headers.last[rows], headers.leader_epoch[rows]
        epochs = np.array([epoch for epoch, _ in self.epochs], np.int64)
        starts = np.array([start for _, start in self.epochs], np.int64)
        known = np.isin(said, epochs)
        at = np.minimum(np.searchsorted(epochs, said), max(len(epochs) - 1, 0))
        wrong = ~known
        if len(epochs):
            ends = np.append(starts[1:], np.iinfo(np.int64).max)
            wrong |= (first < starts[at]) | (last >= ends[at])
        for i in np.flatnonzero(wrong).tolist():
            code = "leader_epoch_start" if known[i] else "leader_epoch_unknown"
            key = code, int(said[i])
            if key in self.seen or len(self.seen) >= MAX_EPOCHS:
                continue
            self.seen.add(key)
            row = int(rows[i])
            what = self._describe_epochs(int(at[i]) if known[i] else None)
            yield self.context.finding(
                code,
                scanned.segment.path,
                f"The batch with offsets {headers.first[row]} to {headers.last[row]} has the leader epoch {said[i]}. {what}",
                remedy=self._choose_remedy(code, scanned, row),
                byte=int(headers.position[row]),
                first_offset=int(headers.first[row]),
                last_offset=int(headers.last[row]),
            )

    def _choose_remedy(self, code: str, scanned: ScannedSegment, row: int) -> str:
        """Return the remedy of the finding ``code`` for the batch ``row``, whose epoch and leader-epoch-checkpoint contradict
        each other. If the batch is before the first epoch of the file and the checkpoint of log start
        offsets lacks the partition, add its line. Else compare with another replica; without one,
        repair the header or the file.
        """
        headers, context = scanned.headers, self.context
        remedy = compare_epochs(
            f"the epoch {headers.leader_epoch[row]}", self._describe_repair(scanned, row)
        )
        first, epochs = int(headers.first[row]), self.epochs or []
        if (
            code == "leader_epoch_start"
            and epochs
            and first < epochs[0][1]
            and LOG_START in context.broker.checkpoints
            and context.broker.offset(LOG_START, context.key) is None
        ):
            topic, partition = context.key
            start = epochs[0][1]
            return (
                f"{LOG_START} has no line for the partition. If the records before offset {start} were deleted, they appear again without the line:"
                f' stop the broker, add "{topic} {partition} {start}" to the file, and add 1 to the number in its second line. Otherwise:'
                f" {remedy[0].lower()}{remedy[1:]}"
            )
        return remedy

    def _describe_repair(self, scanned: ScannedSegment, row: int) -> str:
        """Return the words of a step that sets the epoch in the header of the batch ``row``. The
        epoch is that of the file for its first offset, or for its last one if the first has the
        right epoch already. If the file has none for the offset, it is that of the neighbors of the
        batch.
        """
        headers = scanned.headers
        offset, version = int(headers.first[row]), version_of(int(headers.magic[row]))
        where = name_bytes(version, "leader_epoch", int(headers.position[row]))
        right = self._find_epoch(offset)
        if right == headers.leader_epoch[row]:  # the last offset of the batch is of another epoch
            offset = int(headers.last[row])
            right = self._find_epoch(offset)
        if right is None:
            return f"set {where} to the epoch of the batches before and after it, big-endian: no checksum covers the epoch"
        data = format_bytes(version, "leader_epoch", right)
        return f"set {where} to {data}, the epoch {right} that {LEADER_EPOCHS} has for offset {offset}: no checksum covers the epoch"

    def _find_epoch(self, offset: int) -> int | None:
        """Return the leader epoch that the file has for an offset; None if it has none or is
        unordered.
        """
        found = [epoch for epoch, start in self.epochs or () if start <= offset]
        return found[-1] if found and self.is_sorted else None

    def _describe_epochs(self, at: int | None) -> str:
        """Return sentences for a finding. With ``at``: the offsets of the epoch with this index in
        leader-epoch-checkpoint (only the first one for the last epoch). With None: which epochs the
        file has (at most 8, else that the sought one is not among them), and that the file or the
        batch header is wrong.
        """
        epochs = self.epochs or []
        if at is not None:
            epoch, start = epochs[at]
            if at + 1 == len(epochs):
                return f"In {LEADER_EPOCHS}, epoch {epoch} begins at offset {start}."
            return f"In {LEADER_EPOCHS}, epoch {epoch} has the offsets {start} to {epochs[at + 1][1] - 1}."
        names = [str(epoch) for epoch, _ in epochs]
        if not names or len(names) > 8:
            what = "has no such epoch"
        elif len(names) == 1:
            what = f"has the epoch {names[0]} only"
        else:
            what = f"has the epochs {', '.join(names[:-1])} and {names[-1]} only"
        return f"{LEADER_EPOCHS} {what}. The file or the batch header is wrong: no checksum covers the epoch."

    def _check_negative(self, scanned: ScannedSegment) -> Iterator[Finding]:
        """Yield a ``leader_epoch_negative`` warning for each leader epoch below -1 (which means "no
        epoch"), at the first batch of the log that has it. Yield nothing for epochs that were
        reported before, and no more than MAX_EPOCHS findings of this check.
        """
        headers = scanned.headers
        for row in np.flatnonzero(headers.leader_epoch < NONE).tolist():
            key = "leader_epoch_negative", int(headers.leader_epoch[row])
            if key in self.seen or len(self.seen) >= MAX_EPOCHS:
                continue
            self.seen.add(key)
            first, last = int(headers.first[row]), int(headers.last[row])
            yield self.context.finding(
                key[0],
                scanned.segment.path,
                f"The batch with offsets {first} to {last} has the leader epoch {key[1]} in its header. Epochs are not negative.",
                remedy=f"Stop the broker. Copy the partition from another replica, or {self._describe_repair(scanned, row)}.",
                byte=int(headers.position[row]),
                first_offset=first,
                last_offset=last,
            )

    def _check_descent(self, scanned: ScannedSegment) -> Iterator[Finding]:
        """Yield a ``leader_epoch_descends`` warning for each batch whose leader epoch is below that
        of the batch before it, also in the segment before. Batches that are out of order or have no
        epoch are left out. Yield nothing for epochs that were reported before, and no more than
        MAX_EPOCHS findings of this check.
        """
        headers = scanned.headers
        rows = np.flatnonzero((headers.leader_epoch >= 0) & scanned.placed)
        epochs = headers.leader_epoch[rows]
        before = np.append(self.epoch_before, epochs[:-1])
        for i in np.flatnonzero(epochs < before).tolist():
            key = "leader_epoch_descends", int(epochs[i])
            if key in self.seen or len(self.seen) >= MAX_EPOCHS:
                continue
            self.seen.add(key)
            row = int(rows[i])
            first, last = int(headers.first[row]), int(headers.last[row])
            yield self.context.finding(
                key[0],
                scanned.segment.path,
                f"The batch with offsets {first} to {last} has the leader epoch {epochs[i]}, but the batch before it has the epoch {before[i]}. Epochs do"
                " not descend: one of the two headers is wrong.",
                byte=int(headers.position[row]),
                first_offset=first,
                last_offset=last,
            )
        if len(epochs):
            self.epoch_before = int(epochs[-1])

    def _log_start(self) -> int:
        """Return the offset below which the file may lack epochs. After a clean shutdown that is
        the log start offset in the checkpoint (0 if it has none for the partition). In the metadata
        log, without such a checkpoint or without a clean shutdown, it is the start of the first
        epoch in the file (0 if it has none).
        """
        topic, _ = self.context.key
        broker = self.context.broker
        if (
            topic == CLUSTER_METADATA
            or LOG_START not in broker.checkpoints
            or not broker.was_clean_shutdown
        ):
            # The broker writes the file before it writes the log start offset.
            return self.epochs[0][1] if self.epochs else 0
        return max(broker.offset(LOG_START, self.context.key) or 0, 0)

    def _check_log_start(self) -> Iterator[Finding]:
        """Yield ``segment_missing`` if the first segment begins after the first epoch of the file.
        It is an error, also added to ``context.missing``, if after a clean shutdown the checkpoint
        of log start offsets is there without this partition, which is not the metadata log; else a
        note. Yield nothing without sorted epochs, if only some segments are checked, or for a
        partition that is not live.

        Brokers remove epochs below the log start offset from the file. With tiered storage, the log start offset is
        below the first local segment, and its checkpoint file names such partitions.
        """
        context = self.context
        segments = context.partition.segments
        if not self.epochs or not self.is_sorted or not segments or not context.bases:
            return
        first, base = self.epochs[0][1], context.bases[0]
        if not context.is_whole or not 0 <= first < base or context.partition.state != "live":
            return
        broker = context.broker
        is_certain = broker.was_clean_shutdown and LOG_START in broker.checkpoints
        is_certain &= (
            broker.offset(LOG_START, context.key) is None and context.key[0] != CLUSTER_METADATA
        )
        if is_certain:
            what = ", and the broker had no later log start offset when it was shut down cleanly."
            remedy = None
        else:
            what = ". The broker truncates the file to the log start offset, so retention has just deleted segments, they are in tiered storage, or they are lost."
            remedy = "Nothing to do if segments were deleted or are in tiered storage. Otherwise stop the broker and copy the partition from another replica."
        if is_certain:
            context.missing.append(range(first, base))
        yield context.finding(
            "segment_missing",
            segments[0].path,
            f"The first segment begins at offset {base}, but {LEADER_EPOCHS} begins at offset {first}{what}",
            severity="error" if is_certain else "note",
            remedy=remedy,
            byte=0,
            first_offset=first,
            last_offset=base - 1,
            records=base - first,
        )

    def check_end(self) -> Iterable[Finding]:
        yield from self._check_log_start()
        if self.epochs and self.is_sorted:
            epoch, start = self.epochs[-1]
            what = f"By this file, leader epoch {epoch} began at offset"
            yield from self.report_beyond_end("leader_epoch_beyond_end", self.path, what, start)
        if self.error is not None:
            reason = self.error.reason if isinstance(self.error, CodecError) else str(self.error)
            byte = self.error.where.position if isinstance(self.error, CodecError) else None
            yield self.context.finding(
                "leader_epoch_checkpoint",
                self.path,
                f"The file cannot be read: {reason}. A broker takes the whole log directory offline for it.",
                byte=byte,
            )
        elif self.epochs is not None and not self.is_sorted:
            yield self.context.finding(
                "leader_epoch_checkpoint",
                self.path,
                _describe_disorder(self.epochs, self.lines),
                severity="warning",
            )
