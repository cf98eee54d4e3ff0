"""What is wrong in log directories. Nothing is changed.

A check is one class in a module of its own; :data:`CHECKS` names them. Each partition is read once, a segment at a time, and
all checks see it: memory holds the headers of one segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_log.disk.broker_files import BrokerFiles, read_broker_files
from kafka_log.disk.directory import Partition, next_bases
from kafka_log.disk.files import segment_bases
from kafka_log.report.check.base import Check, Context
from kafka_log.report.check.batches import BatchCheck
from kafka_log.report.check.checkpoints import CheckpointCheck, check_checkpoints
from kafka_log.report.check.cluster import Cluster, Clusters
from kafka_log.report.check.exchanged import check_exchanged
from kafka_log.report.check.finding import FINDINGS, Finding, finding_table
from kafka_log.report.check.gaps import GapCheck
from kafka_log.report.check.indexes import OffsetIndexCheck, TimeIndexCheck
from kafka_log.report.check.leader_epochs import LeaderEpochCheck
from kafka_log.report.check.metadata_snapshots import MetadataSnapshotCheck
from kafka_log.report.check.names import NameCheck, check_broker_directory
from kafka_log.report.check.order import OrderCheck
from kafka_log.report.check.quorum_state import QuorumStateCheck
from kafka_log.report.check.sequences import SequenceCheck
from kafka_log.report.check.siblings import check_together
from kafka_log.report.check.snapshots import SnapshotCheck
from kafka_log.report.check.tails import TailCheck
from kafka_log.report.check.transaction_index import TransactionIndexCheck
from kafka_log.report.check.walk import Advance, Reading, walk
from kafka_log.report.check.wanted import is_meant, is_meant_of
from kafka_log.report.header_pass import Piece
from kafka_log.segment.kernels import Engine
from kafka_log.segment.places import place_of
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.tables.selection import Selection

__all__ = ["CHECKS", "FINDINGS", "Finding", "check_table", "findings"]

EVERY = Selection()

CHECKS: Mapping[str, type[Check]] = {
    "batches": BatchCheck,
    "tails": TailCheck,
    "order": OrderCheck,
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


def check_table(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    engine: Engine = "auto",
    advance: Advance = lambda _: None,
) -> pa.Table:
    """What is wrong, in the columns of :data:`FINDINGS`: the worst first. ``directories`` are brokers' log directories of which
    the files beside the partitions are checked too. With ``deep`` every record is decoded. ``wanted`` chooses findings by the offsets,
    times and producers of the batches that they mean (see :mod:`kafka_log.report.check.wanted`). ``advance`` is told of bytes of
    segments that are done."""
    return finding_table(
        findings(partitions, directories, deep=deep, wanted=wanted, engine=engine, advance=advance)
    )


def findings(
    partitions: Sequence[Partition],
    directories: Sequence[Path] = (),
    *,
    deep: bool = False,
    wanted: Selection = EVERY,
    engine: Engine = "auto",
    advance: Advance = lambda _: None,
) -> Iterator[Finding]:
    """The same one by one, partition by partition, and in the end what keys say of several."""
    clusters: Clusters = cache(Cluster)  # the metadata is read once
    beside = _of_directories(directories, clusters)
    for finding in chain(beside, check_together(partitions)):
        if is_meant(finding, wanted):
            yield finding
    reading = Reading(deep, engine, advance, wanted.timestamps != EVERYTHING)
    following = dict(pair for partition in partitions for pair in next_bases(partition.segments))
    pieces = reading.pieces(
        [segment for partition in partitions for segment in partition.segments], following
    )
    brokers: dict[Path, tuple[BrokerFiles, Cluster]] = {}
    for partition in partitions:
        directory = partition.directory
        has_name = directory.name not in ("", "..")
        parent = directory.parent if has_name else directory.resolve().parent
        if parent not in brokers:
            brokers[parent] = read_broker_files(parent), clusters(parent)
        if partition.error is not None and not partition.segments:
            key = partition.topic, partition.partition
            yield _io_error(partition.directory, partition.error, *key)
            continue
        yield from _of_partition(partition, *brokers[parent], pieces, reading, wanted)
    for finding in check_exchanged(partitions, clusters, engine):
        if is_meant(finding, wanted):
            yield finding


def _of_directories(directories: Sequence[Path], clusters: Clusters) -> Iterator[Finding]:
    for directory in directories:
        beside = read_broker_files(directory), clusters(directory)
        yield from _readable(directory, partial(check_checkpoints, *beside))
        yield from _readable(directory, partial(check_broker_directory, directory))


def _of_partition(
    partition: Partition,
    broker: BrokerFiles,
    cluster: Cluster,
    pieces: Iterator[Piece],
    reading: Reading,
    wanted: Selection,
) -> Iterator[Finding]:
    bases = segment_bases(partition.directory)
    is_whole = len(bases) == len(partition.segments)
    context = Context(partition, bases, is_whole, broker, cluster)
    checks = [kind(context) for kind in CHECKS.values()]
    following = dict(pairwise(bases))
    for segment in partition.segments:
        next_base = following.get(segment.base_offset) if segment.is_named else None
        try:
            walked = walk(segment, next_base, pieces, reading)
        except OSError as error:
            yield _io_error(segment.path, error, *context.key)
            for check in checks:
                check.unread(segment)
            continue
        for check in checks:
            for finding in _readable(segment.path, partial(check.segment, walked), *context.key):
                if is_meant_of(finding, wanted, walked):
                    yield finding
    for check in checks:
        for finding in _readable(partition.directory, check.end, *context.key):
            if is_meant(finding, wanted):
                yield finding


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
            "file_gone",
            path,
            "The file was there when the check began, and is gone.",
            "Nothing if a broker runs on the directory; else run the check again.",
            topic,
            partition,
        )
    return Finding(
        "error",
        "io_error",
        path,
        f"The file cannot be read: {reason}.",
        "Look at the disk and the permissions; copy the partition from another replica if the disk fails.",
        topic,
        partition,
    )
