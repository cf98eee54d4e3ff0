"""The jobs that write logs beside others: salvage, cut, reindex. Inputs are never changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.metadata_snapshots import list_snapshots
from kafka_log.logs.names import CLUSTER_METADATA
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.write.checkpoints import copy_snapshots
from kafka_log.write.indexes import INTERVAL_BYTES, Rest, UnderstatedBatch, write_indexes
from kafka_log.write.output_lock import locked_output
from kafka_log.write.rewrite.conversion import CONVERTED, Converted, Target, write_converted
from kafka_log.write.rewrite.partition_writer import Advance, write_partition
from kafka_log.write.rewrite.report import REPORT_SCHEMA, ReportRow, RewriteReport, as_rows
from kafka_log.write.rewrite.selection import RewriteSelection
from kafka_log.write.staged_output import (
    OutputDirectory,
    describe_source,
    find_log_start,
    name_directories,
    refuse_inside,
)

Work = Callable[[Partition, Path, Advance], Sequence[ReportRow | Converted]]
Refusal = Callable[[Partition, str], ReportRow | Converted]
"""What is said of a partition of which nothing is written, and why."""


def _lost(partition: Partition, reason: str) -> ReportRow:
    return ReportRow(utf8(os.fspath(partition.directory)), "lost", reason=utf8(reason))


def _refused(partition: Partition, reason: str) -> Converted:
    return Converted(None, "refused", reason=utf8(reason))


def run_job(
    job: str,
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    options: dict[str, Any],
    work: Work,
    advance: Advance = lambda _: None,
    schema: pa.Schema = REPORT_SCHEMA,
    refused: Refusal = _lost,
    beside: Callable[[Partition], Sequence[Segment]] = lambda _: (),
    leaves: Callable[[Segment], Any] | None = None,
) -> pa.Table:
    """Do the ``work`` for each partition, in a directory of its own below ``out``. What is there from the same job, with the same
    ``options`` and made of the same log, unchanged (:mod:`kafka_log.logs.log_identity`), is kept. ``inputs`` are the paths that are read; ``advance`` is told of
    bytes of segments that are done; ``beside`` says which snapshots the work reads too, ``leaves`` what is to be said of each that it leaves out. What was said of all of them, in the columns of ``schema``. A partition that cannot be read, or whose
    damage the work does not take, is ``refused``: nothing of it is there, and the others are.

    Raises :class:`~kafka_log.write.staged_output.OutError` for a place where nothing may be written, OSError. Partitions that are whole stay.
    """
    partitions = [_of_log(partition) for partition in partitions]
    names = name_directories(partitions)
    refuse_inside(out, inputs)
    with locked_output(out):
        place = OutputDirectory(out, job)
        log_starts = LogStarts()
        starts = [find_log_start(log_starts, partition) for partition in partitions]
        sources = [
            partial(describe_source, partition, options, start, beside(partition))
            for partition, start in zip(partitions, starts, strict=True)
        ]
        finished = [place.finished(name, of) for name, of in zip(names, sources, strict=True)]
        rows: list[dict[str, Any]] = []
        jobs = zip(partitions, names, sources, finished, starts, strict=True)
        for partition, name, source, before, start in jobs:
            where = utf8(partition.topic), partition.partition
            if leaves is not None:
                rows += as_rows(*where, map(leaves, _snapshots(partition)))
            if before is not None:
                rows += before
                advance(sum(segment.size for segment in partition.segments))
                continue
            said: list[dict[str, Any]] = []
            try:
                if partition.error is not None:
                    raise partition.error
                with place.partition(name, source(), said, start) as directory_of:
                    said += as_rows(*where, work(partition, directory_of, advance))
            except (CodecError, UnreadableError) as error:
                said = as_rows(*where, [refused(partition, str(error))])
            rows += said
        return pa.Table.from_pylist(rows, schema)


def _of_log(partition: Partition) -> Partition:
    """A partition without snapshots of the metadata: these are no part of its log."""
    segments = tuple(s for s in partition.segments if s.state != "snapshot")
    return replace(partition, segments=segments)


def salvage(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    *,
    flatten: bool = False,
    keep_damaged: bool = False,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """What can be read of partitions, as a broker loads it. See :meth:`kafka_log.log_directory.LogDirectory.salvage`."""
    wanted = RewriteSelection(flatten=flatten, keep_damaged=keep_damaged)

    def work(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        if partition.topic != CLUSTER_METADATA:
            return write_partition(partition, directory, wanted, told)
        said = write_partition(partition, directory, replace(wanted, flatten=False), told)
        if flatten:
            said = [replace(one, reason=one.reason or _NEVER_FLAT) for one in said]
        return [*said, *copy_snapshots(partition.directory, directory)]

    options = asdict(wanted)
    return run_job("salvage", partitions, out, inputs, options, work, advance, beside=_snapshots)


_NEVER_FLAT = (
    "--flatten leaves the metadata log as it is: nobody reads it without its own control records"
)


def _snapshots(partition: Partition) -> list[Segment]:
    """The snapshots that lie in a directory of the metadata log. Raises OSError."""
    if partition.topic != CLUSTER_METADATA or partition.error is not None:
        return []
    key = partition.topic, partition.partition
    there = (snapshot.path for snapshot in list_snapshots(partition.directory))
    return [Segment(path, *key, 0, path.stat().st_size, "snapshot", True) for path in there]


_NO_PART = "a snapshot of the metadata is no part of what is written: salvage copies it"


def _left_out(snapshot: Segment) -> ReportRow:
    return ReportRow(utf8(snapshot.path.name), "left out", bytes=snapshot.size, reason=_NO_PART)


def _not_converted(snapshot: Segment) -> Converted:
    reason = f"{utf8(snapshot.path.name)}: {_NO_PART}"
    return Converted(None, "left out", reason=reason)


def cut(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    wanted: RewriteSelection,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """A part of partitions. See :meth:`kafka_log.log_directory.LogDirectory.cut`."""
    options = asdict(wanted)
    return run_job(
        "cut", partitions, out, inputs, options, _writes(wanted), advance, leaves=_left_out
    )


def _writes(wanted: RewriteSelection) -> Work:
    return lambda partition, out, advance: write_partition(partition, out, wanted, advance)


def convert(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    target: Target,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """Partitions with another codec. See :meth:`kafka_log.log_directory.LogDirectory.convert`."""

    def work(partition: Partition, directory: Path, told: Advance) -> list[Converted]:
        return write_converted(partition, directory, target, told)

    options = {"codec": target.codec, "level": target.level, "magic": target.magic}
    return run_job(
        *("convert", partitions, out, inputs, options, work, advance, CONVERTED, _refused),
        leaves=_not_converted,
    )


def reindex(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    *,
    interval_bytes: int = INTERVAL_BYTES,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """The indexes of partitions. See :meth:`kafka_log.log_directory.LogDirectory.reindex`."""

    def work(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        return _reindexed(partition, directory, interval_bytes, told)

    options = {"interval_bytes": interval_bytes}
    return run_job("reindex", partitions, out, inputs, options, work, advance, leaves=_left_out)


def _reindexed(partition: Partition, out: Path, interval: int, advance: Advance) -> list[ReportRow]:
    account = RewriteReport()
    named = [s for s in partition.segments if s.has_canonical_name]
    for segment in partition.segments:
        if not segment.has_canonical_name:
            reason = "the name does not say the first offset in 20 digits: no index can be made"
            account.said.append(ReportRow(_name(segment), "lost", reason=reason))
    understated: dict[Path, list[UnderstatedBatch]] = {}
    rest = write_indexes(
        named,
        out,
        interval_bytes=interval,
        advance=advance,
        on_understated=lambda path, batch: understated.setdefault(path, []).append(batch),
    )
    for segment in named:
        account.said.append(ReportRow(_name(segment), "indexed", bytes=segment.size))
        account.said += [_said_of(segment, batch) for batch in understated.get(segment.path, ())]
        found = rest.get(segment.path, Rest(()))
        for run in found.lost:
            account.lost(_name(segment), run)
        account.unfinished(_name(segment), found.unfinished)
    return account.said


def _said_of(segment: Segment, batch: UnderstatedBatch) -> ReportRow:
    said = ReportRow(_name(segment), "understated", 1, byte=batch.position, bytes=batch.size)
    said.first_offset, said.last_offset = batch.first_offset, batch.last_offset
    said.reason = batch.reason
    return said


def _name(segment: Segment) -> str:
    return utf8(segment.path.name)
