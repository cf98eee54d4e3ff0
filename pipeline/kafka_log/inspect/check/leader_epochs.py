"""The file leader-epoch-checkpoint, beside the leader epochs that batches say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np

from codecgen.runtime.errors import CodecError
from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log.inspect.check.base import Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.log_end import EndCheck
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.logs.broker_files import read_small_file
from kafka_log.logs.names import CLUSTER_METADATA, LOG_START
from kafka_log.segment.versions import absent

NAME = "leader-epoch-checkpoint"
NONE = absent("leader_epoch")
"""What a batch says that has no epoch."""
MOST = 100
"""Epochs that are named one by one."""

_REMEDY = "Compare the file with that of the other replicas: a replica truncates its log by these offsets."


class LeaderEpochCheck(EndCheck):
    """Epochs of batches that there cannot be, that the file does not know, or whose offsets lie elsewhere than it says.

    The file forgets epochs before the log start offset, so batches before that are not compared.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = context.partition.directory / NAME
        self.seen: set[tuple[str, int]] = set()
        self.renew()

    def renew(self) -> None:
        self.error: CodecError | OSError | None = None
        self.epochs: list[tuple[int, int]] | None = None
        try:
            parsed = LEADER_EPOCH_CHECKPOINT.parse(
                read_small_file(self.path), file=os.fspath(self.path), strict=False
            )
            self.epochs = [(e.epoch, e.start_offset) for e in parsed.epochs or ()]
        except FileNotFoundError:
            pass
        except (CodecError, OSError) as error:
            self.error = error
        self.is_sorted = self.epochs is not None and all(
            a[0] < b[0] and a[1] <= b[1] for a, b in zip(self.epochs, self.epochs[1:], strict=False)
        )

    def segment(self, walked: Walked) -> Iterable[Finding]:
        yield from super().segment(walked)
        yield from self._negative(walked)
        if self.epochs is None or not self.is_sorted:
            return
        headers = walked.headers
        rows = np.flatnonzero((headers.leader_epoch >= 0) & walked.placed)
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
            if key in self.seen or len(self.seen) >= MOST:
                continue
            self.seen.add(key)
            row = int(rows[i])
            what = (
                f"which begins at offset {starts[at[i]]} and ends before that of the next one in {NAME}"
                if known[i]
                else f"which {NAME} does not know"
            )
            yield self.context.finding(
                "warning",
                code,
                walked.segment.path,
                f"The batch with offsets {headers.first[row]} to {headers.last[row]} is of leader epoch {said[i]}, {what}.",
                _REMEDY,
                byte=int(headers.position[row]),
                first_offset=int(headers.first[row]),
                last_offset=int(headers.last[row]),
            )

    def _negative(self, walked: Walked) -> Iterator[Finding]:
        """No epoch is lower than -1, which says that there is none."""
        headers = walked.headers
        for row in np.flatnonzero(headers.leader_epoch < NONE).tolist():
            key = "leader_epoch_negative", int(headers.leader_epoch[row])
            if key in self.seen or len(self.seen) >= MOST:
                continue
            self.seen.add(key)
            first, last = int(headers.first[row]), int(headers.last[row])
            yield self.context.finding(
                "warning",
                key[0],
                walked.segment.path,
                f"The batch with offsets {first} to {last} is of leader epoch {key[1]}, which there cannot be.",
                "Copy the partition from another replica, or set the epoch to that of the batches around: the checksum does not cover it.",
                byte=int(headers.position[row]),
                first_offset=first,
                last_offset=last,
            )

    def _log_start(self) -> int:
        """An offset below which the file need not know epochs."""
        topic, _ = self.context.key
        broker = self.context.broker
        if (
            topic == CLUSTER_METADATA
            or LOG_START not in broker.checkpoints
            or not broker.was_clean_shutdown
        ):
            # The file is written before the log start offset is.
            return self.epochs[0][1] if self.epochs else 0
        return max(broker.offset(LOG_START, self.context.key) or 0, 0)

    def _begins_too_late(self) -> Iterator[Finding]:
        """The broker cuts off what the file says of offsets before the start of the log. Where segments are copied to a tier it does so
        from that start on, which the checkpoint of such partitions says."""
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
            what = "and the broker that was stopped in order knew of no later start of the log"
            remedy = "Copy the partition from another replica, or look for the file in a backup."
        else:
            what = "which the broker cuts to the start of the log: retention has just deleted segments, they are in tiered storage, or they are lost"
            remedy = "Nothing if segments were deleted or are in a tier; else copy the partition from another replica."
        if is_certain:
            context.missing.append(range(first, base))
        yield context.finding(
            "error" if is_certain else "note",
            "segment_missing",
            segments[0].path,
            f"The first segment begins with offset {base}, but {NAME} with offset {first}, {what}.",
            remedy,
            byte=0,
            first_offset=first,
            last_offset=base - 1,
            records=base - first,
        )

    def end(self) -> Iterable[Finding]:
        yield from self._begins_too_late()
        if self.epochs and self.is_sorted:
            epoch, start = self.epochs[-1]
            what = f"Leader epoch {epoch} began at offset"
            yield from self.beyond_end("leader_epoch_beyond_end", self.path, what, start)
        if self.error is not None:
            reason = self.error.reason if isinstance(self.error, CodecError) else str(self.error)
            byte = self.error.where.position if isinstance(self.error, CodecError) else None
            yield self.context.finding(
                "error",
                "leader_epoch_checkpoint",
                self.path,
                f"The file cannot be read: {reason}. A broker takes the whole log directory offline for it.",
                "Copy the file from another replica, or start the broker without it after you have made a copy.",
                byte=byte,
            )
        elif self.epochs is not None and not self.is_sorted:
            yield self.context.finding(
                "warning",
                "leader_epoch_checkpoint",
                self.path,
                "The epochs in the file, or their start offsets, do not rise.",
                _REMEDY,
            )
