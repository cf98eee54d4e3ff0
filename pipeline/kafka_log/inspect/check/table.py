"""Run the checks of log directories and collect their findings. Files are never changed.

:data:`CHECKS` has the checks of one partition, each a class. Each partition is read once, segment by segment, and all
checks get the headers of the segment: memory holds those of one segment. A broker may write meanwhile, so a segment with
an error or a warning is read again, and only the findings of both passes count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import ENOENT
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.batches import BatchCheck
from kafka_log.inspect.check.checkpoints import CheckpointCheck, check_checkpoints
from kafka_log.inspect.check.cluster import Cluster, Clusters
from kafka_log.inspect.check.control_records import ControlRecordCheck
from kafka_log.inspect.check.finding import FINDINGS, Finding, finding_table, make_finding
from kafka_log.inspect.check.gaps import GapCheck, check_tier_gaps
from kafka_log.inspect.check.indexes import OffsetIndexCheck, TimeIndexCheck
from kafka_log.inspect.check.last_batch import LastBatchCheck
from kafka_log.inspect.check.leader_epochs import LeaderEpochCheck
from kafka_log.inspect.check.metadata_snapshots import MetadataSnapshotCheck
from kafka_log.inspect.check.names import NameCheck, check_broker_directory
from kafka_log.inspect.check.order import OrderCheck
from kafka_log.inspect.check.partitions import check_duplicates_and_ids, check_exchanged
from kafka_log.inspect.check.producer_snapshots import SnapshotCheck
from kafka_log.inspect.check.quorum_state import QuorumStateCheck
from kafka_log.inspect.check.recovery import NOT_STOPPED, RecoveryCheck, check_recovery
from kafka_log.inspect.check.segment_scan import (
    Count,
    ScannedSegment,
    ScanOptions,
    ignore,
    scan_segment,
)
from kafka_log.inspect.check.sequences import SequenceCheck
from kafka_log.inspect.check.tails import ShrunkCheck, TailCheck
from kafka_log.inspect.check.transaction_index import TransactionIndexCheck
from kafka_log.inspect.header_pass import Piece
from kafka_log.logs.broker_files import BrokerFiles, log_directory_of, read_broker_files
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition, Segment, group_by_state, pair_with_next_base_offset
from kafka_log.read.selection import Selection
from kafka_log.segment.header_columns import UNBOUNDED
from kafka_log.segment.kernels import Engine
from kafka_log.segment.paths import make_path
from kafka_log.segment.ranges import EVERYTHING, counts_from_end
from kafka_log.segment.regular_files import kind_of

__all__ = ["CHECKS", "FINDINGS", "Finding", "check_partitions", "check_table"]

EVERY = Selection()

_GONE, _IO_ERROR, _NO_SEGMENT = "file_gone", "io_error", "no_segment"
_UNREAD = (_GONE, _IO_ERROR, _NO_SEGMENT)
"""Findings about files that could not be read."""
_UNKNOWN = "checkpoint_damaged"
"""Finding about a file of a broker that may hide findings about any partition."""

PartitionTest = Callable[[tuple[str, int]], bool]
"""Returns whether a partition, given by topic and number, is selected."""

CHECKS: Mapping[str, type[Check]] = {
    "batches": BatchCheck,
    "tails": TailCheck,
    "order": OrderCheck,
    "shrunk": ShrunkCheck,
    "last_batch": LastBatchCheck,
    "gaps": GapCheck,
    "sequences": SequenceCheck,
    "offset_index": OffsetIndexCheck,
    "time_index": TimeIndexCheck,
    "control_records": ControlRecordCheck,
    "transaction_index": TransactionIndexCheck,
    "snapshots": SnapshotCheck,
    "checkpoints": CheckpointCheck,
    "leader_epochs": LeaderEpochCheck,
    "metadata_snapshots": MetadataSnapshotCheck,
    "quorum_state": QuorumStateCheck,
    "names": NameCheck,
    "recovery": RecoveryCheck,
}
"""Checks of one partition by name, in the order in which they run."""

_APART = ("deleted", "cleaned", "swap", "remote", "unfinished")
"""States of segments that are not part of a log with index and checkpoint files."""
_OF_BYTES = ("batches", "tails", "order", "shrunk")
"""Checks that run on such segments."""


def check_table(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    selects: PartitionTest | None = None,
    others: Sequence[Partition] = (),
    engine: Engine = "auto",
    advance: Count = ignore,
    judged: Count = ignore,
) -> pa.Table:
    """Check partitions and log directories and return the findings that ``wanted`` selects as a
    table, errors first. ``deep`` decodes every record, not only headers and checksums. ``judged``
    is called with numbers of checked batches that ``wanted`` selects. A file that cannot be read
    becomes an ``io_error`` or ``file_gone`` finding. Raise OSError only if a log directory may not
    be searched.

    Args:
        partitions: Partitions whose segments and other files are checked.
        directories: Log directories whose own files, such as checkpoints, are checked too.
        deep: Decode every record, not only headers and checksums.
        wanted: Selects findings by the offsets, timestamps and producers of the batches they are about. Findings
            about unknown batches are always selected.
        selects: Selects findings about ``directories`` by their partition; only damaged checkpoint files remain of the
            findings about no partition. None: all findings.
        others: Partitions that are not checked, but whose topic ids and keys are compared with those of
            ``partitions``. There are no findings about them.
        engine: Decoder to use; the findings are the same.
        advance: Called with the number of bytes of segments that are done.
        judged: Called with the number of checked batches that ``wanted`` selects.

    Returns:
        Table in the columns of :data:`FINDINGS`.
    """
    return finding_table(
        check_partitions(
            partitions,
            directories,
            deep=deep,
            wanted=wanted,
            selects=selects,
            others=others,
            engine=engine,
            advance=advance,
            judged=judged,
        )
    )


def check_partitions(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    selects: PartitionTest | None = None,
    others: Sequence[Partition] = (),
    engine: Engine = "auto",
    advance: Count = ignore,
    judged: Count = ignore,
) -> Iterator[Finding]:
    """Yield the findings that ``wanted`` selects; the arguments are those of :func:`check_table`.
    Findings about log directories come first, then those about duplicate directories and topic ids,
    then partition by partition; about what killed brokers recover, gaps in tiered storage and
    exchanged directories last. A file that cannot be read
    becomes a finding, and does not raise. Raise OSError only if a log directory may not be
    searched.
    """
    clusters: Clusters = cache(Cluster)  # reads the metadata of a directory once
    included = frozenset(segment.state for p in partitions for segment in p.segments)
    beside = (
        finding
        for finding in _check_directories(directories, clusters, included)
        if selects is None or _is_about_selected(finding, selects)
    )
    selections = _Selections(partitions, wanted)
    about_others = {partition.key for partition in others}
    together = [*partitions, *others]
    for finding in chain(beside, check_duplicates_and_ids(together, clusters)):
        if selections.select(finding) and _key_of(finding) not in about_others:
            yield finding
    # Before segments are read: later checkpoints may be about records that were not there yet.
    parents = {
        partition.directory: log_directory_of(partition.directory) for partition in partitions
    }
    brokers = {path: (read_broker_files(path), clusters(path)) for path in {*parents.values()}}
    checked = {partition.directory for partition in partitions}
    for _, cluster in brokers.values():
        # The findings of the metadata log itself say more.
        if cluster.path not in checked and (problem := cluster.find_problem()) is not None:
            yield _uncompared(cluster.path, problem)
    reading = ScanOptions(deep, engine, advance, judged, wanted.timestamps != EVERYTHING)
    parts = [part for partition in partitions for part in _split_by_state(partition)]
    truncated: list[Finding] = []
    following = dict(pair for part in parts for pair in pair_with_next_base_offset(part.segments))
    pieces = reading.read_pieces(
        [segment for part in parts for segment in part.segments], following
    )
    for partition in parts:
        error = partition.error
        if error is not None and error.filename == os.fspath(partition.directory):
            yield _io_error(partition.directory, error, *partition.key)
            continue
        broker = brokers[parents[partition.directory]]
        own = selections.of_directory[partition.directory]
        for finding in _check_partition(partition, *broker, included, pieces, reading, own):
            truncated += [finding] if finding.code == NOT_STOPPED else []
            yield finding
    for directory in directories:
        broker_files = read_broker_files(directory)
        yield from _report_unreadable(
            directory, partial(check_recovery, broker_files, partitions, truncated)
        )
    topics = {partition.topic for partition in partitions}
    of_topics = [partition for partition in together if partition.topic in topics]
    for finding in chain(check_tier_gaps(partitions), check_exchanged(of_topics, clusters, engine)):
        if selections.select(finding) and _key_of(finding) not in about_others:
            yield finding


class _Selections:
    """The selection ``wanted`` for each partition, with negative offsets resolved.

    Attributes:
        of_directory: Selection by the directory of a partition.
    """

    def __init__(self, partitions: Sequence[Partition], wanted: Selection) -> None:
        self.of_directory = {p.directory: wanted.resolve_offsets(p.segments) for p in partitions}
        self._of_key: dict[tuple[str | None, int | None], list[Selection]] = {}
        for partition in partitions:
            own = self.of_directory[partition.directory]
            self._of_key.setdefault(partition.key, []).append(own)
        is_relative = counts_from_end(wanted.offsets)
        self._of_others = [wanted.but(offsets=EVERYTHING) if is_relative else wanted]

    def select(self, finding: Finding) -> bool:
        """Return whether a finding is selected in one of the partitions that it may be about. If it
        is about none of them, negative offsets exclude nothing.
        """
        own = self._of_key.get(_key_of(finding), self._of_others)
        return any(is_selected(finding, selection) for selection in own)


def _key_of(finding: Finding) -> tuple[str | None, int | None]:
    """Return topic and partition of a finding; None in place of one that it has not."""
    return finding.topic, finding.partition


def _uncompared(path: Path, problem: str) -> Finding:
    """Return the finding that checks which need the cluster metadata in ``path`` were left out."""
    return make_finding(
        "metadata_unknown",
        path,
        f"The cluster metadata cannot be read completely: {problem}. Topic ids, cleanup policies, and the partitions that belong here are not compared with it.",
    )


def _split_by_state(partition: Partition) -> Iterator[Partition]:
    """Yield a partition for each state of its segments, without metadata snapshots: they have their own check."""
    for _, state, segments in group_by_state([partition]):
        if state == partition.state or state != "snapshot":
            yield replace(partition, segments=segments)


def _check_directories(
    directories: Sequence[Path],
    clusters: Clusters,
    included: frozenset[State],
) -> Iterator[Finding]:
    """Yield the findings about each of ``directories``: its checkpoint files, and its other files and
    directories. ``clusters`` returns the cluster metadata of a
    directory; ``included`` are the segment states that are checked. A directory that cannot be
    listed becomes an ``io_error`` or ``file_gone`` finding; raise OSError if it may not be
    searched.
    """
    for directory in directories:
        beside = read_broker_files(directory), clusters(directory)
        yield from _report_unreadable(directory, partial(check_checkpoints, *beside))
        yield from _report_unreadable(
            directory, partial(check_broker_directory, directory, included)
        )


def _check_partition(
    partition: Partition,
    broker: BrokerFiles,
    cluster: Cluster,
    included: frozenset[State],
    pieces: Iterator[Piece],
    reading: ScanOptions,
    wanted: Selection,
) -> Iterator[Finding]:
    """Yield the findings that ``wanted`` selects of all checks: segment by segment, then about the
    whole partition. Check a segment with errors or warnings twice, and yield only findings of both
    passes. Segments in states outside the log, such as deleted, have checks of bytes and order
    only. Unreadable files become findings; if the directory cannot be listed, that is the only one.
    """
    is_log = not any(segment.state in _APART for segment in partition.segments)
    try:
        bases = list_base_offsets(partition.directory) if is_log else ()
    except OSError as error:
        yield _io_error(partition.directory, error, *partition.key)
        for segment in partition.segments:
            with suppress(OSError):
                scan_segment(segment, None, pieces, reading)
        return
    is_whole = is_log and len(bases) == len(partition.segments)
    context = Context(partition, bases, is_whole, broker, cluster, included)
    checks = [kind(context) for name, kind in CHECKS.items() if is_log or name in _OF_BYTES]
    following = dict(pairwise(bases))
    for segment in partition.segments:
        before, missing = [check.copy_state() for check in checks], [*context.missing]
        next_base = following.get(segment.base_offset) if segment.has_canonical_name else None
        found = list(_check_segment(checks, segment, next_base, pieces, reading, wanted))
        if any(finding.severity != "note" and finding.code not in _UNREAD for finding in found):
            checks, context.missing[:] = before, missing
            found = _keep_repeated(
                found, list(_check_segment_again(checks, segment, reading, wanted))
            )
        yield from found
    for check in checks:
        for finding in _report_unreadable(partition.directory, check.check_end, *context.key):
            if is_selected(finding, wanted):
                yield finding


def _check_segment(
    checks: Sequence[Check],
    segment: Segment,
    next_base: int | None,
    pieces: Iterator[Piece],
    reading: ScanOptions,
    wanted: Selection,
) -> Iterator[Finding]:
    """Yield the findings of ``checks`` about one segment that ``wanted`` selects, and report the
    number of selected batches to ``reading.judged``. If the file cannot be read (OSError), yield
    only an ``io_error`` finding, ``file_gone`` if it is missing, or ``no_segment`` if the path is
    no file, and let the checks skip the segment. An OSError inside a check becomes such a finding
    too, after its others.
    """
    key = segment.topic, segment.partition
    try:
        scanned = scan_segment(segment, next_base, pieces, reading)
    except OSError as error:
        yield _unread_segment(segment, error)
        for check in checks:
            check.skip_segment(segment)
        return
    reading.judged(count_judged(scanned, wanted))
    for check in checks:
        for finding in _report_unreadable(
            segment.path, partial(check.check_segment, scanned), *key
        ):
            if is_selected_in_segment(finding, wanted, scanned):
                yield finding


def _check_segment_again(
    checks: Sequence[Check], segment: Segment, reading: ScanOptions, wanted: Selection
) -> Iterator[Finding]:
    """Reload ``checks`` and yield their findings about a segment in its present state, because a
    broker may have appended to it or replaced it. Progress is not reported. If the partition
    directory cannot be listed, yield only a ``file_gone`` (or ``io_error``) finding about it.
    """
    directory = segment.path.parent
    try:
        following = dict(pairwise(list_base_offsets(directory)))
    except OSError as error:
        yield _io_error(directory, error, segment.topic, segment.partition)
        for check in checks:
            check.skip_segment(segment)
        return
    next_base = following.get(segment.base_offset) if segment.has_canonical_name else None
    for check in checks:
        check.reload()
    quiet = replace(reading, advance=ignore, judged=ignore)
    if segment.has_canonical_name:
        segment = replace(segment, rolled=next_base is not None)
    pieces = quiet.read_pieces([segment], {segment: next_base})
    yield from _check_segment(checks, segment, next_base, pieces, quiet, wanted)


def _keep_repeated(found: Sequence[Finding], again: Sequence[Finding]) -> list[Finding]:
    """Return the findings of ``found`` that a second pass (``again``) confirms. These are the ones
    that ``again`` has with the same severity, id, path, byte and first offset, and all about
    unreadable files. The findings of ``again`` about unreadable files that ``found`` does not have
    follow.
    """
    places = {_identity(finding) for finding in again}
    return [
        *(f for f in found if f.code in _UNREAD or _identity(f) in places),
        *(f for f in again if f.code in _UNREAD and f not in found),
    ]


def _identity(finding: Finding) -> tuple[Any, ...]:
    """Return what identifies a finding in two passes over a segment."""
    return finding.severity, finding.code, finding.path, finding.byte, finding.first_offset


def _report_unreadable(
    path: Path, asked: Callable[[], Iterable[Finding]], *key: Any
) -> Iterator[Finding]:
    """Yield the findings of ``asked()``. If it raises OSError, end with an ``io_error`` or
    ``file_gone`` finding about the file that the error names, or about ``path`` if it names none.
    ``key`` is topic and partition of that finding.
    """
    try:
        yield from asked()
    except OSError as error:
        yield _io_error(make_path(error.filename) if error.filename else path, error, *key)


def _io_error(
    path: Path, error: OSError, topic: str | None = None, partition: int | None = None
) -> Finding:
    """Return the finding about a file that could not be read. It is the note ``file_gone`` if the
    file does not exist, else the error ``io_error`` with the message of the operating system.
    ``topic`` and ``partition`` are None for a file of no partition.
    """
    code, meaning = _IO_ERROR, f"The file cannot be read: {error.strerror or error}."
    if error.errno == ENOENT:
        code, meaning = _GONE, "The file existed when the check began, and is gone now."
    return make_finding(code, path, meaning, topic=topic, partition=partition)


def _unread_segment(segment: Segment, error: OSError) -> Finding:
    """Return the finding about a segment that could not be read: the error ``no_segment`` if the
    path is no file, such as a dangling link, else as :func:`_io_error`.
    """
    key = segment.topic, segment.partition
    kind = kind_of(segment.path)
    if kind is None:
        return _io_error(segment.path, error, *key)
    meaning = f"The path has the name of a segment, but is {kind}. A broker starts as if the segment did not exist."
    return make_finding(_NO_SEGMENT, segment.path, meaning, topic=key[0], partition=key[1])


def _is_about_selected(finding: Finding, selects: PartitionTest) -> bool:
    """Return whether a finding about a log directory is about a partition that ``selects`` selects, or may hide one."""
    if finding.topic is None or finding.partition is None:
        return finding.code == _UNKNOWN
    return selects((finding.topic, finding.partition))


def is_selected(finding: Finding, wanted: Selection) -> bool:
    """Return whether a finding may be about the selected offsets (``low`` included, ``high``
    excluded) and producers. Unknown offsets and producers count as selected; timestamps are not
    compared.
    """
    low, high = wanted.offsets
    if low is not None and finding.last_offset is not None and finding.last_offset < low:
        return False
    if high is not None and finding.first_offset is not None and finding.first_offset >= high:
        return False
    if wanted.producers is None or finding.producer_id is None:
        return True
    return finding.producer_id in wanted.producers


def is_selected_in_segment(finding: Finding, wanted: Selection, scanned: ScannedSegment) -> bool:
    """Return whether a finding about a segment is selected. Its offsets and producer must be, and a
    batch with its offsets may have a record of the selected timestamps and producers. Return True
    for these if its first offset is unknown or below all that were read, or no batch with its
    offsets was read. A contradictory batch header excludes nothing.
    """
    headers = scanned.headers
    concerned = np.zeros(len(headers), np.bool_)
    if finding.first_offset is not None:
        concerned = headers.last >= finding.first_offset
    if finding.last_offset is not None:
        concerned &= headers.first <= finding.last_offset
    if (headers.offset_bound[concerned] == UNBOUNDED).any():
        finding = replace(finding, last_offset=None)  # the offsets of such a batch are unknown
    if not is_selected(finding, wanted):
        return False
    if finding.first_offset is None or (
        wanted.timestamps == EVERYTHING and wanted.producers is None
    ):
        return True
    if not len(headers) or finding.first_offset < headers.first.min():
        return True
    if finding.producer_id is not None:
        concerned &= headers.producer_id == finding.producer_id
    return bool(not concerned.any() or (concerned & _select_batches(scanned, wanted)).any())


def count_judged(scanned: ScannedSegment, wanted: Selection) -> int:
    """Return the number of batches of a segment that may have a record with selected offset,
    timestamp and producer. Batches with contradictory headers count.
    """
    low, high = wanted.offsets
    found = _select_batches(scanned, wanted)
    if low is not None:
        found &= scanned.headers.offset_bound >= low
    if high is not None:
        found &= (scanned.headers.first < high) | (scanned.headers.offset_bound == UNBOUNDED)
    return int(np.count_nonzero(found))


def _select_batches(scanned: ScannedSegment, wanted: Selection) -> Any:
    """Return a mask of the batches that may have a record of the selected timestamps and producers;
    without such filters all are True. Offsets are not compared. A contradictory header excludes no
    timestamp.
    """
    headers = scanned.headers
    found = np.ones(len(headers), np.bool_)
    low, high = wanted.timestamps
    if low is not None:
        found &= scanned.timestamp_bound >= low
    if high is not None:
        found &= (scanned.least_timestamp < high) | (scanned.timestamp_bound == UNBOUNDED)
    if wanted.producers is not None:
        found &= np.isin(headers.producer_id, wanted.producers)
    return found
