"""Merging of replicas: the plan of each partition, and its log in an output directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.merge.merge_report import list_merge_rows
from kafka_log.inspect.merge.merged_log import write_merged
from kafka_log.inspect.merge.plan import MergePlan, make_plan
from kafka_log.inspect.merge.replica import read_replica
from kafka_log.logs.broker_files import find_topic_id
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import DirectoryError, Partition
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.write.rewrite.commands import describe_skipped_segments, run_job
from kafka_log.write.rewrite.partition_writer import open_transactions
from kafka_log.write.rewrite.report import REPORT_SCHEMA, ReportRow, as_rows
from kafka_log.write.staged_output import find_log_start

Advance = Callable[[int], None]
Replicas = Mapping[tuple[str, int], Sequence[Partition]]
"""The replicas of each partition, by topic and number."""


def group_replicas(directories: Iterable[Sequence[Partition]]) -> Replicas:
    """Return the replicas of each partition, sorted by topic and number, in the order of the
    directories that hold them.
    """
    found: dict[tuple[str, int], list[Partition]] = {}
    for partitions in directories:
        for partition in partitions:
            found.setdefault(partition.key, []).append(partition)
    return dict(sorted(found.items()))


def merge_replicas(
    replicas: Replicas, out: Path, inputs: Sequence[Path], advance: Advance = lambda _: None
) -> pa.Table:
    """Write one log for each partition below ``out`` for a broker to load, and return the report;
    damage, lost offsets, divergence, and replicas of different topics are rows of it, no errors.
    Partitions that an equal earlier run wrote are kept. Raise OutputError or OutputLockedError if
    ``out`` must not be written to, as inside ``inputs``; OSError if writing fails.

    Args:
        replicas: The replicas of each partition.
        out: The output directory.
        inputs: Paths that are read.
        advance: Called with the number of bytes of segments that are done.
    """

    def work(partition: Partition, directory: Path, told: Advance) -> list[ReportRow]:
        plan, rows = _plan_partition(replicas[partition.key], told)
        segments = write_merged(plan, directory)
        return [*rows, *open_transactions(segments)]

    def find_start(starts: LogStarts, partition: Partition) -> int | None:
        return _find_highest_start(starts, replicas[partition.key])

    # What is written depends on the segments of all replicas.
    joined = [join_replicas(some) for some in replicas.values()]
    return run_job(
        *("merge", joined, out, inputs, {}, work, advance),
        leaves=describe_skipped_segments,
        find_start=find_start,
    )


def list_plan(replicas: Replicas, advance: Advance = lambda _: None) -> pa.Table:
    """Return the report that :func:`merge_replicas` would return, without rows about open
    transactions. Nothing is written. A partition has only a row ``lost`` if its replicas are of
    different topics, none is readable, or a segment is deleted or changes meanwhile.
    """
    rows: list[dict[str, Any]] = []
    for (topic, number), some in replicas.items():
        try:
            _, said = _plan_partition(some, advance)
        except CodecError as error:
            directory = utf8(os.fspath(some[0].directory))
            said = [ReportRow(directory, "lost", reason=utf8(str(error)))]
        rows += as_rows(utf8(topic), number, said)
    return pa.Table.from_pylist(rows, REPORT_SCHEMA)


def _plan_partition(
    some: Sequence[Partition], advance: Advance
) -> tuple[MergePlan, list[ReportRow]]:
    """Return the plan and the report rows for the replicas of a partition; an unreadable one has a
    row ``lost``. Raise UnreadableError if they are of different topics, or damage hides whether they
    are, none of them can be read, or retention deletes a segment meanwhile; CodecError if a batch
    changes meanwhile.
    """
    _check_topic_ids(some)
    rows = [
        ReportRow(utf8(os.fspath(one.directory)), "lost", reason=utf8(str(one.error)))
        for one in some
        if one.error is not None
    ]
    readable = [partition for partition in some if partition.segments]
    if not readable:
        raise UnreadableError(
            "no replica of the partition has a segment that can be read, so that nothing is merged"
        )
    found = []
    for number, partition in enumerate(readable):
        found.append(read_replica(number, partition))
        advance(partition.size)
    plan = make_plan(found, _find_highest_start(LogStarts(), some))
    return plan, [*list_merge_rows(plan), *rows]


def _check_topic_ids(some: Sequence[Partition]) -> None:
    """Raise UnreadableError if the directories are of different clusters or state different topic
    ids in ``partition.metadata``, or if there are several and damage hides the id of one.
    """
    try:
        ClusterIds().find_only(some)
    except DirectoryError as error:
        raise UnreadableError(str(error)) from None
    found = [find_topic_id(partition.directory) for partition in some]
    places = ", ".join(os.fspath(partition.directory) for partition in some)
    if len({stated for stated, _ in found} - {None}) > 1:
        raise UnreadableError(
            f"{places}: their partition.metadata states different topic ids, so these are different topics of one name: merge directories of one topic"
        )
    hidden = next((hidden for _, hidden in found if hidden is not None), None)
    if hidden is not None and len(some) > 1:
        raise UnreadableError(
            f"{places}: these may be different topics of one name, because a topic id is not known: {hidden}. Leave the directory out, or copy it"
            " and put the right partition.metadata into the copy"
        )


def _find_highest_start(starts: LogStarts, some: Sequence[Partition]) -> int | None:
    """Return the highest log start offset that a checkpoint beside one of the replicas states; None
    if none does. Replicas with segments that are not live do not count. Raise OSError if the
    directory of a checkpoint may not be searched.
    """
    found = (find_log_start(starts, partition) for partition in some)
    return max((start for start in found if start is not None), default=None)


def join_replicas(some: Sequence[Partition]) -> Partition:
    """Return a live partition that stands for all replicas (at least one): it has the directory of
    the first one, the segments of all, and no ``error``.
    """
    first = some[0]
    segments = tuple(segment for partition in some for segment in partition.segments)
    return Partition(first.topic, first.partition, first.directory, segments)
