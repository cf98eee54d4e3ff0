"""What is wrong in log directories. Nothing is changed.

A check is one class in a module of its own; :data:`CHECKS` names them. Each partition is read once, a segment at a time, and
all checks see it: memory holds the headers of one segment. A broker may be writing meanwhile, so a segment with an error or a warning is
read once more, and what the second reading does not see is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.batches import BatchCheck
from kafka_log.inspect.check.checkpoints import CheckpointCheck, check_checkpoints, check_recovery
from kafka_log.inspect.check.cluster import Cluster, Clusters
from kafka_log.inspect.check.finding import FINDINGS, Finding, finding_table
from kafka_log.inspect.check.gaps import GapCheck
from kafka_log.inspect.check.indexes import OffsetIndexCheck, TimeIndexCheck
from kafka_log.inspect.check.leader_epochs import LeaderEpochCheck
from kafka_log.inspect.check.metadata_snapshots import MetadataSnapshotCheck
from kafka_log.inspect.check.names import NameCheck, check_broker_directory
from kafka_log.inspect.check.order import OrderCheck
from kafka_log.inspect.check.partitions import check_exchanged, check_together
from kafka_log.inspect.check.producer_snapshots import SnapshotCheck
from kafka_log.inspect.check.quorum_state import QuorumStateCheck
from kafka_log.inspect.check.segment_scan import Count, Reading, Walked, ignore, walk
from kafka_log.inspect.check.sequences import SequenceCheck
from kafka_log.inspect.check.tails import ShrunkCheck, TailCheck
from kafka_log.inspect.check.transaction_index import TransactionIndexCheck
from kafka_log.inspect.header_pass import Piece
from kafka_log.logs.broker_files import BrokerFiles, read_broker_files
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition, Segment, group_by_state, pair_with_next_base_offset
from kafka_log.read.selection import Selection
from kafka_log.segment.header_columns import UNBOUNDED
from kafka_log.segment.kernels import Engine
from kafka_log.segment.places import place_of
from kafka_log.segment.ranges import EVERYTHING

__all__ = ["CHECKS", "FINDINGS", "Finding", "check_table", "findings"]

EVERY = Selection()

_GONE, _IO_ERROR = "file_gone", "io_error"
_UNREAD = (_GONE, _IO_ERROR)
"""Codes of files that could not be read."""

CHECKS: Mapping[str, type[Check]] = {
    "batches": BatchCheck,
    "tails": TailCheck,
    "order": OrderCheck,
    "shrunk": ShrunkCheck,
    "gaps": GapCheck,
    "sequences": SequenceCheck,
    "offset_index": OffsetIndexCheck,
    "time_index": TimeIndexCheck,
    "transaction_index": TransactionIndexCheck,
    "snapshots": SnapshotCheck,
    "checkpoints": CheckpointCheck,
    "leader_epochs": LeaderEpochCheck,
    "metadata_snapshots": MetadataSnapshotCheck,
    "quorum_state": QuorumStateCheck,
    "names": NameCheck,
}
"""The checks of one partition, by their names."""

_APART = ("deleted", "cleaned", "swap", "remote", "unfinished")
"""States of segments that are no part of a log with its files beside it."""
_OF_BYTES = ("batches", "tails", "order")
"""The checks of such segments."""


def check_table(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    engine: Engine = "auto",
    advance: Count = ignore,
    judged: Count = ignore,
) -> pa.Table:
    """What is wrong, in the columns of :data:`FINDINGS`: the worst first. ``directories`` are brokers' log directories of which
    the files beside the partitions are checked too. With ``deep`` every record is decoded. ``wanted`` chooses findings by the offsets,
    times and producers of the batches that they mean (see :mod:`kafka_log.inspect.check.table`). ``advance`` is told of bytes of
    segments that are done, ``judged`` of batches that were checked and that ``wanted`` chooses."""
    return finding_table(
        findings(
            partitions,
            directories,
            deep=deep,
            wanted=wanted,
            engine=engine,
            advance=advance,
            judged=judged,
        )
    )


def findings(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    engine: Engine = "auto",
    advance: Count = ignore,
    judged: Count = ignore,
) -> Iterator[Finding]:
    """The same one by one, partition by partition, and in the end what keys say of several."""
    clusters: Clusters = cache(Cluster)  # the metadata is read once
    included = frozenset(segment.state for p in partitions for segment in p.segments)
    beside = _of_directories(directories, clusters, included, partitions)
    for finding in chain(beside, check_together(partitions, clusters)):
        if is_meant(finding, wanted):
            yield finding
    # Before segments are read: what a broker writes down later may be about records that were not there yet.
    parents = {partition.directory: _parent(partition.directory) for partition in partitions}
    brokers = {path: (read_broker_files(path), clusters(path)) for path in {*parents.values()}}
    reading = Reading(deep, engine, advance, judged, wanted.timestamps != EVERYTHING)
    parts = [part for partition in partitions for part in _parts(partition)]
    following = dict(pair for part in parts for pair in pair_with_next_base_offset(part.segments))
    pieces = reading.pieces([segment for part in parts for segment in part.segments], following)
    for partition in parts:
        if partition.error is not None and not partition.segments:
            yield _io_error(partition.directory, partition.error, *partition.key)
            continue
        broker = brokers[parents[partition.directory]]
        yield from _of_partition(partition, *broker, included, pieces, reading, wanted)
    for finding in check_exchanged(partitions, clusters, engine):
        if is_meant(finding, wanted):
            yield finding


def _parts(partition: Partition) -> Iterator[Partition]:
    """Split a partition into its segments in each state. Snapshots of the metadata have a check of their own."""
    for _, state, segments in group_by_state([partition]):
        if state == partition.state or state != "snapshot":
            yield replace(partition, segments=segments)


def _parent(directory: Path) -> Path:
    has_name = directory.name not in ("", "..")
    return directory.parent if has_name else directory.resolve().parent


def _of_directories(
    directories: Sequence[Path],
    clusters: Clusters,
    included: frozenset[State],
    partitions: Sequence[Partition],
) -> Iterator[Finding]:
    for directory in directories:
        beside = read_broker_files(directory), clusters(directory)
        yield from _readable(directory, partial(check_checkpoints, *beside))
        yield from _readable(directory, partial(check_broker_directory, directory, included))
        yield from _readable(directory, partial(check_recovery, directory, beside[0], partitions))


def _of_partition(
    partition: Partition,
    broker: BrokerFiles,
    cluster: Cluster,
    included: frozenset[State],
    pieces: Iterator[Piece],
    reading: Reading,
    wanted: Selection,
) -> Iterator[Finding]:
    is_log = not any(segment.state in _APART for segment in partition.segments)
    try:
        bases = list_base_offsets(partition.directory) if is_log else ()
    except OSError as error:
        yield _io_error(partition.directory, error, *partition.key)
        for segment in partition.segments:
            with suppress(OSError):
                walk(segment, None, pieces, reading)
        return
    is_whole = is_log and len(bases) == len(partition.segments)
    context = Context(partition, bases, is_whole, broker, cluster, included)
    checks = [kind(context) for name, kind in CHECKS.items() if is_log or name in _OF_BYTES]
    following = dict(pairwise(bases))
    for segment in partition.segments:
        before, missing = [check.saved() for check in checks], [*context.missing]
        next_base = following.get(segment.base_offset) if segment.has_canonical_name else None
        found = list(_of_segment(checks, segment, next_base, pieces, reading, wanted))
        if any(finding.severity != "note" and finding.code not in _UNREAD for finding in found):
            checks, context.missing[:] = before, missing
            found = _seen_again(found, list(_once_more(checks, segment, reading, wanted)))
        yield from found
    for check in checks:
        for finding in _readable(partition.directory, check.end, *context.key):
            if is_meant(finding, wanted):
                yield finding


def _of_segment(
    checks: Sequence[Check],
    segment: Segment,
    next_base: int | None,
    pieces: Iterator[Piece],
    reading: Reading,
    wanted: Selection,
) -> Iterator[Finding]:
    key = segment.topic, segment.partition
    try:
        walked = walk(segment, next_base, pieces, reading)
    except OSError as error:
        yield _io_error(segment.path, error, *key)
        for check in checks:
            check.unread(segment)
        return
    reading.judged(count_judged(walked, wanted))
    for check in checks:
        for finding in _readable(segment.path, partial(check.segment, walked), *key):
            if is_meant_of(finding, wanted, walked):
                yield finding


def _once_more(
    checks: Sequence[Check], segment: Segment, reading: Reading, wanted: Selection
) -> Iterator[Finding]:
    """Check a segment as it is by now: a broker may be writing to it, or have put another file in its place."""
    following = dict(pairwise(list_base_offsets(segment.path.parent)))
    next_base = following.get(segment.base_offset) if segment.has_canonical_name else None
    for check in checks:
        check.renew()
    quiet = replace(reading, advance=ignore, judged=ignore)
    if segment.has_canonical_name:
        segment = replace(segment, rolled=next_base is not None)
    pieces = quiet.pieces([segment], {segment: next_base})
    yield from _of_segment(checks, segment, next_base, pieces, quiet, wanted)


def _seen_again(found: Sequence[Finding], again: Sequence[Finding]) -> list[Finding]:
    """Select what two readings of a segment have in common, and what either of them could not read."""
    places = {_place(finding) for finding in again}
    return [
        *(f for f in found if f.code in _UNREAD or _place(f) in places),
        *(f for f in again if f.code in _UNREAD and f not in found),
    ]


def _place(finding: Finding) -> tuple[Any, ...]:
    return finding.severity, finding.code, finding.path, finding.byte, finding.first_offset


def _readable(path: Path, asked: Callable[[], Iterable[Finding]], *key: Any) -> Iterator[Finding]:
    """Findings, the last of them that a file cannot be read: the other checks go on."""
    try:
        yield from asked()
    except OSError as error:
        yield _io_error(place_of(error.filename) if error.filename else path, error, *key)


def _io_error(
    path: Path, error: OSError, topic: str | None = None, partition: int | None = None
) -> Finding:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return Finding(
            "note",
            _GONE,
            path,
            "It was there when the check began, and is gone.",
            "Nothing if a broker runs on the directory; else run the check again.",
            topic,
            partition,
        )
    return Finding(
        "error",
        _IO_ERROR,
        path,
        f"The file cannot be read: {reason}.",
        "Look at the disk and the permissions; copy the partition from another replica if the disk fails.",
        topic,
        partition,
    )


def is_meant(finding: Finding, wanted: Selection) -> bool:
    """Whether a finding concerns some of the offsets and is of one of the producers, or does not say."""
    low, high = wanted.offsets
    if low is not None and finding.last_offset is not None and finding.last_offset < low:
        return False
    if high is not None and finding.first_offset is not None and finding.first_offset >= high:
        return False
    if wanted.producers is None or finding.producer_id is None:
        return True
    return finding.producer_id in wanted.producers


def is_meant_of(finding: Finding, wanted: Selection, walked: Walked) -> bool:
    """The same of a finding in a segment, by the headers of its good batches too: one of those with the offsets of the finding may have a
    record of the times and producers. What is lost or missing has no header, and may be anybody's; so may what begins in an earlier
    segment. A header that contradicts itself rules nothing out."""
    headers = walked.headers
    concerned = np.zeros(len(headers), np.bool_)
    if finding.first_offset is not None:
        concerned = headers.last >= finding.first_offset
    if finding.last_offset is not None:
        concerned &= headers.first <= finding.last_offset
    if (headers.offset_bound[concerned] == UNBOUNDED).any():
        finding = replace(finding, last_offset=None)  # nobody knows which offsets such a batch has
    if not is_meant(finding, wanted):
        return False
    if finding.first_offset is None or (
        wanted.timestamps == EVERYTHING and wanted.producers is None
    ):
        return True
    if not len(headers) or finding.first_offset < headers.first.min():
        return True
    if finding.producer_id is not None:
        concerned &= headers.producer_id == finding.producer_id
    return bool(not concerned.any() or (concerned & _chosen(walked, wanted)).any())


def count_judged(walked: Walked, wanted: Selection) -> int:
    """Return how many batches of a segment may have records of the offsets, times and producers."""
    low, high = wanted.offsets
    found = _chosen(walked, wanted)
    if low is not None:
        found &= walked.headers.offset_bound >= low
    if high is not None:
        found &= (walked.headers.first < high) | (walked.headers.offset_bound == UNBOUNDED)
    return int(np.count_nonzero(found))


def _chosen(walked: Walked, wanted: Selection) -> Any:
    """Which batches may have a record of the times and producers."""
    headers = walked.headers
    found = np.ones(len(headers), np.bool_)
    low, high = wanted.timestamps
    if low is not None:
        found &= walked.timestamp_bound >= low
    if high is not None:
        found &= (walked.least_timestamp < high) | (walked.timestamp_bound == UNBOUNDED)
    if wanted.producers is not None:
        found &= np.isin(headers.producer_id, wanted.producers)
    return found
