"""The commands that write partitions again into another directory: salvage, cut, convert and reindex. Inputs are never changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.logs.listing import list_segment_files
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.metadata_snapshots import list_snapshots
from kafka_log.logs.names import CLUSTER_METADATA, STATES
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.write.indexes import INTERVAL_BYTES, Rest, UnderstatedBatch, write_indexes
from kafka_log.write.output_lock import locked_output
from kafka_log.write.rewrite.conversion import CONVERTED, Converted, Target, write_converted
from kafka_log.write.rewrite.metadata_snapshots import copy_snapshots
from kafka_log.write.rewrite.partition_writer import Advance, write_partition
from kafka_log.write.rewrite.repaired_copy import (
    describe_answer,
    find_segment_repairs,
    name_original,
    repaired_partition,
)
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
"""What is found of a partition of which nothing is written, and why."""


def _lost(partition: Partition, reason: str) -> ReportRow:
    """Return the report row for a partition that is not written."""
    return ReportRow(utf8(os.fspath(partition.directory)), "lost", reason=utf8(reason))


def _refused(partition: Partition, reason: str) -> Converted:
    """Return the row of `convert` for a partition that is not converted."""
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
    reads_snapshots: bool = False,
    leaves: Callable[[Segment], Any] | None = None,
    keeps_rest: bool = False,
    find_start: Callable[[LogStarts, Partition], int | None] = find_log_start,
) -> pa.Table:
    """Call ``work`` for each partition with a directory of its own below ``out``, and return all
    report rows. Output of an earlier run of the same ``job`` with the same options and source is
    kept, with its rows. A partition is not written and has the row of ``refused`` if its directory
    cannot be read, all its segments are in excluded states, or ``work`` raises CodecError; with
    ``keeps_rest`` segments of a directory that cannot be read are written besides. Metadata
    snapshots have rows of ``leaves`` (None: no rows). Raise OutputError or OutputLockedError if
    ``out`` must not be written to, as inside ``inputs``, or two partitions have the same name;
    OSError if writing fails: partitions that are complete then stay.

    Args:
        job: Name of the job, for its manifest.
        partitions: What is read.
        out: The output directory.
        inputs: Paths that are read; `out` must not lie inside of them.
        options: Options that the output depends on, as JSON values.
        work: Writes a partition into a directory, and returns its report rows.
        advance: Called with the number of bytes of segments that are done.
        schema: Columns of the report.
        refused: Makes the row of a partition that is not written.
        reads_snapshots: Whether `work` reads metadata snapshots too.
        leaves: Makes the row of a metadata snapshot that is left out. None: snapshots get no row.
        keeps_rest: Whether the segments of a partition that cannot be read completely are written.
        find_start: Returns the log start offset of a partition, None if nothing states it.
    """
    split = [_split_snapshots(partition) for partition in partitions]
    partitions, snapshots = [log for log, _ in split], [there for _, there in split]
    names = name_directories(partitions)
    refuse_inside(out, inputs)
    with locked_output(out):
        place = OutputDirectory(out, job)
        log_starts = LogStarts()
        starts = [find_start(log_starts, partition) for partition in partitions]
        sources = [
            partial(describe_source, partition, options, start, there if reads_snapshots else ())
            for partition, start, there in zip(partitions, starts, snapshots, strict=True)
        ]
        finished = [place.finished(name, of) for name, of in zip(names, sources, strict=True)]
        rows: list[dict[str, Any]] = []
        jobs = zip(partitions, snapshots, names, sources, finished, starts, strict=True)
        for partition, there, name, source, before, start in jobs:
            where = utf8(partition.topic), partition.partition
            if leaves is not None:
                rows += as_rows(*where, map(leaves, there))
            if before is not None:
                rows += before
                advance(sum(segment.size for segment in partition.segments))
                continue
            found: list[dict[str, Any]] = []
            try:
                if (reason := _describe_unread(partition)) is not None:
                    raise UnreadableError(reason)
                if partition.error is not None:
                    if not (keeps_rest and partition.segments):
                        raise partition.error
                    found += as_rows(*where, [refused(partition, str(partition.error))])
                with place.partition(name, source(), found, start) as directory_of:
                    found += as_rows(*where, work(partition, directory_of, advance))
            except (CodecError, UnreadableError) as error:
                found = as_rows(*where, [refused(partition, str(error))])
            rows += found
        return pa.Table.from_pylist(rows, schema)


def _describe_unread(partition: Partition) -> str | None:
    """Return why nothing of a partition is read although its directory has segments: their states
    are excluded. Return None if there is something to read, or nothing at all. Raise OSError if the
    directory cannot be listed.
    """
    if partition.segments or partition.error is not None:
        return None
    found = {file.state for file in list_segment_files(partition.directory)}
    states = ",".join(state for state in STATES if state in found - {"snapshot"})
    why = "nothing is read: all segments are in excluded states"
    return f"{why}; add --include {states} to read them" if states else None


def _split_snapshots(partition: Partition) -> tuple[Partition, list[Segment]]:
    """Return a partition without metadata snapshots, which are no part of its log, and the
    snapshots in its directory, the newest first; ``[]`` if it is not one of ``__cluster_metadata``.
    If the directory cannot be listed, return the partition with that error and without segments,
    and ``[]``.
    """
    log = replace(partition, segments=tuple(s for s in partition.segments if s.state != "snapshot"))
    try:
        return log, _snapshots(partition)
    except UnreadableError as error:
        return replace(log, segments=(), error=error), []


def salvage(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    *,
    flatten: bool = False,
    keep_damaged: bool = False,
    repair: bool = False,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """Write the readable records of partitions below ``out`` for a broker to load, and return the
    report; damage is a row of it, no error. A partition is not written and has one row ``lost`` if
    all its segments are in excluded states, its directory cannot be listed at all, or its output
    does not read as its source. With ``flatten`` only committed data, without transactions;
    with ``keep_damaged`` also records with a wrong checksum; with ``repair`` flipped bits are
    repaired first, each with a row. Partitions that an equal earlier run wrote are kept.
    Raise OutputError or OutputLockedError if ``out`` must not be written to, as inside ``inputs``,
    or two partitions have the same name; OSError if writing fails.
    """
    wanted = RewriteSelection(flatten=flatten, keep_damaged=keep_damaged)

    def write_readable(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        if partition.topic != CLUSTER_METADATA:
            return write_partition(partition, directory, wanted, told)
        found = write_partition(partition, directory, replace(wanted, flatten=False), told)
        if flatten:
            found = [replace(one, reason=one.reason or _NEVER_FLAT) for one in found]
        return [*found, *copy_snapshots(partition.directory, directory)]

    def write_repaired(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        with repaired_partition(partition, directory) as (mended, repairs):
            found = write_readable(mended, directory, told)
        for one in found:
            one.reason = name_original(one.reason, partition, directory)
        return sorted([*found, *repairs], key=lambda one: one.file)

    work = write_repaired if repair else write_readable
    options = asdict(wanted) | ({"repair": True} if repair else {})
    return run_job(
        *("salvage", partitions, out, inputs, options, work, advance),
        reads_snapshots=True,
        keeps_rest=True,
    )


def list_repairs(partitions: Sequence[Partition], advance: Advance = lambda _: None) -> pa.Table:
    """Return the report rows of the repairs that ``salvage`` would write, and of damaged batches
    without one. Nothing is written. A partition whose directory cannot be read gets a row ``lost``,
    a segment that cannot be opened none.
    """
    rows: list[dict[str, Any]] = []
    for partition in partitions:
        log, _ = _split_snapshots(partition)
        found = [] if log.error is None else [_lost(log, str(log.error))]
        for segment, next_base in pair_with_next_base_offset(log.segments):
            answers = find_segment_repairs(segment, next_base)
            found += [describe_answer(segment, answer) for answer in answers]
            advance(segment.size)
        rows += as_rows(utf8(log.topic), log.partition, found)
    return pa.Table.from_pylist(rows, REPORT_SCHEMA)


_NEVER_FLAT = (
    "--flatten leaves the metadata log as it is: nobody reads it without its own control records"
)


def _snapshots(partition: Partition) -> list[Segment]:
    """Return the metadata snapshots in a directory of ``__cluster_metadata`` as Segments, the newest
    first; ``[]`` for other partitions, and for one that could not be read. Raise UnreadableError if
    the directory cannot be listed.
    """
    if partition.topic != CLUSTER_METADATA or partition.error is not None:
        return []
    key = partition.topic, partition.partition
    found = []
    for snapshot in list_snapshots(partition.directory):
        with suppress(FileNotFoundError):  # a broker deletes snapshots
            size = snapshot.path.stat().st_size
            found.append(Segment(snapshot.path, *key, 0, size, "snapshot", True))
    return found


_NO_PART = "a snapshot of the metadata is no part of what is written: salvage copies it"


def describe_skipped_segments(snapshot: Segment) -> ReportRow:
    """Return the report row for a metadata snapshot that is not written."""
    return ReportRow(utf8(snapshot.path.name), "left out", bytes=snapshot.size, reason=_NO_PART)


def _not_converted(snapshot: Segment) -> Converted:
    """Return the row of `convert` for a metadata snapshot that is not written."""
    reason = f"{utf8(snapshot.path.name)}: {_NO_PART}"
    return Converted(None, "left out", reason=reason)


def cut(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    wanted: RewriteSelection,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """Write the batches of partitions that ``wanted`` selects below ``out``, whole ones, and return
    the report. Damage is reported, not raised; a partition is not written and has one row ``lost``
    if all its segments are in excluded states, its directory cannot be listed at all, or its output
    does not read as its source. Partitions that an equal earlier run wrote are kept.
    Raise OutputError or OutputLockedError if ``out`` must not be written to (it lies in one of
    ``inputs``, has other output, or is in use), or two partitions have the same name; OSError if
    writing fails.
    """
    options = asdict(wanted)
    return run_job(
        *("cut", partitions, out, inputs, options, _writes(wanted), advance),
        leaves=describe_skipped_segments,
        keeps_rest=True,
    )


def _writes(wanted: RewriteSelection) -> Work:
    """Return the function that writes the selected batches of a partition."""
    return lambda partition, out, advance: write_partition(partition, out, wanted, advance)


def convert(
    partitions: Sequence[Partition],
    out: Path,
    inputs: Sequence[Path],
    target: Target,
    advance: Advance = lambda _: None,
) -> pa.Table:
    """Write partitions in the codec or version of ``target`` below ``out``, and return one report
    row for each segment, and one ``left out`` for each metadata snapshot. A partition is not
    written, and gets one row ``refused``, if it cannot be read, has damage or a batch newer than the
    target version, or its output does not read as its source. Partitions that an equal earlier run
    wrote are kept. Raise OutputError or OutputLockedError if ``out`` must not be written to, as
    inside ``inputs``, or two partitions have the same name; OSError if writing fails.
    """

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
    """Write the indexes (an entry about every ``interval_bytes``) and producer snapshots of
    partitions below ``out``, no segments, and return the report. Damage is reported, not raised; a
    partition that cannot be read, or with a wrong index, is not written and has one row ``lost``.
    Partitions that an equal earlier run wrote are kept. Raise OutputError or OutputLockedError if
    ``out`` must not be written to (it lies in one of ``inputs``, has other output, or is in use), or
    two partitions have the same name; OSError if writing fails.
    """

    def work(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        return _reindex_partition(partition, directory, interval_bytes, told)

    options = {"interval_bytes": interval_bytes}
    return run_job(
        "reindex", partitions, out, inputs, options, work, advance, leaves=describe_skipped_segments
    )


def _reindex_partition(
    partition: Partition, out: Path, interval: int, advance: Advance
) -> list[ReportRow]:
    """Write the indexes and producer snapshots of a partition's segments into ``out``, and return
    report rows. These are ``indexed``, and rows for damage, incomplete tails and understated
    batches; ``lost`` for a segment that has no canonical name or cannot be opened. ``interval`` is the number of bytes
    between index entries. Raise OSError if a file cannot be written; CodecError if an index does
    not read back right, or the bytes of a control batch cannot be read.
    """
    report = RewriteReport()
    named = [s for s in partition.segments if s.has_canonical_name]
    for segment in partition.segments:
        if not segment.has_canonical_name:
            reason = (
                "the file name is not a base offset of 20 digits, so that no index can be rebuilt"
            )
            report.entries.append(ReportRow(_name(segment), "lost", reason=reason))
    understated: dict[Path, list[UnderstatedBatch]] = {}
    rest = write_indexes(
        named,
        out,
        interval_bytes=interval,
        advance=advance,
        on_understated=lambda path, batch: understated.setdefault(path, []).append(batch),
    )
    for segment in named:
        found = rest.get(segment.path, Rest(()))
        if found.is_indexed:
            report.entries.append(ReportRow(_name(segment), "indexed", bytes=segment.size))
        report.entries += [
            _understated_row(segment, batch) for batch in understated.get(segment.path, ())
        ]
        for run in found.lost:
            report.add_lost(_name(segment), run)
        report.add_unfinished(_name(segment), found.unfinished)
    return report.entries


def _understated_row(segment: Segment, batch: UnderstatedBatch) -> ReportRow:
    """Return the report row ``understated`` for a batch whose records have larger offsets or
    timestamps than its header states, with the range of its records' offsets.
    """
    found = ReportRow(_name(segment), "understated", 1, byte=batch.position, bytes=batch.size)
    found.first_offset, found.last_offset = batch.first_offset, batch.last_offset
    found.reason = batch.reason
    return found


def _name(segment: Segment) -> str:
    """Return the name of a segment file."""
    return utf8(segment.path.name)
