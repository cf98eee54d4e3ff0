"""Checks across the partitions of a log directory: duplicate directories, topic ids, exchanged directories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_log.inspect.check.cluster import Clusters
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.logs.broker_files import read_meta_properties, read_topic_id
from kafka_log.logs.names import parse_live_partition_name
from kafka_log.logs.partitions import Partition
from kafka_log.segment.kernels import Engine, use_kernels
from kafka_log.segment.model import Policy
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner
from kafka_log.text.values import format_uuid
from kafka_log.write.sink.partitioner import partition_by_key

_NAME = "partition.metadata"

Claim = tuple[str, bytes]
"""Topic, and the topic id in the partition.metadata of some of its partitions."""


def check_duplicates_and_ids(
    partitions: Iterable[Partition], clusters: Clusters
) -> Iterator[Finding]:
    """Yield ``partition_twice`` for further directories of one partition in a log directory, and
    ``topic_id`` for topic ids that others contradict: if one topic has two, or two topics share
    one. Ids are compared in all log directories of a cluster, by the cluster id in
    ``meta.properties``; those without one count as one cluster. Only live partitions whose
    directory name matches are compared, and ids only of topics that the metadata of their directory
    (``clusters`` returns it) does not know.

    Topics whose id is in the cluster metadata of their directory are left to :class:`~kafka_log.inspect.check.names.NameCheck`.
    """
    by_log_directory: dict[Path, list[Partition]] = {}
    for partition in partitions:
        if (
            partition.state == "live"
            and parse_live_partition_name(partition.directory) == partition.key
        ):
            by_log_directory.setdefault(partition.directory.parent, []).append(partition)
    of_cluster: dict[str | None, list[Partition]] = {}
    for directory, found in by_log_directory.items():
        yield from _find_duplicates(found)
        said = read_meta_properties(directory)
        of_cluster.setdefault(None if said is None else said.cluster_id, []).extend(found)
    for found in of_cluster.values():
        yield from _find_contradicting_ids(found, clusters)


def _find_duplicates(partitions: list[Partition]) -> Iterator[Finding]:
    """Yield a ``partition_twice`` error for each directory of a partition in one log directory, such
    as codecs-01 beside codecs-1, except the one with the shortest name (of equally long names, the
    first in order).
    """
    same: dict[tuple[str, int], list[Path]] = {}
    for partition in partitions:
        same.setdefault(partition.key, []).append(partition.directory)
    for (topic, number), directories in same.items():
        first, *others = sorted(directories, key=lambda path: (len(path.name), path.name))
        for path in others:
            yield make_finding(
                "partition_twice",
                path,
                f"The directory {path.name} is partition {number} of its topic, and {first.name} is too. No broker starts with both.",
                remedy=f"Before you start the broker, compare {path.name} with {first.name} (kafka-log diff). Move the one that lacks records out of the log directory and keep it. If {path.name} stays, rename it to {topic}-{number}.",
                topic=topic,
                partition=number,
            )


def _find_contradicting_ids(partitions: list[Partition], clusters: Clusters) -> Iterator[Finding]:
    """Yield a ``topic_id`` error for each partition of one cluster whose topic id at least as many
    partitions contradict as have it. They contradict it by another id for the topic, or the same id
    for another topic; an id in the cluster metadata of another directory outweighs all partitions.
    Partitions without a readable partition.metadata, and topics whose id is in the cluster metadata
    of their own directory, are skipped.

    If neither side has a majority, each partition has a finding.
    """
    said = [(p, i) for p in partitions if (i := read_topic_id(p.directory)) is not None]
    counts = Counter((p.topic, i) for p, i in said)
    sources = {(p.topic, i): p.directory for p, i in reversed(said)}
    known: set[tuple[Path, str]] = set()
    for directory in dict.fromkeys(p.directory.parent for p, _ in said):
        for topic in {p.topic for p, _ in said}:
            if (id := clusters(directory).topic_id(topic)) is not None:
                known.add((directory, topic))
                counts[topic, id] += len(said)
                sources.setdefault((topic, id), directory)
    of_topic: dict[str, list[Claim]] = {}
    of_id: dict[bytes, list[Claim]] = {}
    for claim, _ in counts.most_common():
        of_topic.setdefault(claim[0], []).append(claim)
        of_id.setdefault(claim[1], []).append(claim)
    for p, i in said:
        claim = p.topic, i
        others = [
            next((c for c in both if c != claim), None) for both in (of_topic[p.topic], of_id[i])
        ]
        rival = next((c for c in others if c is not None and counts[c] >= counts[claim]), None)
        if rival is None or (p.directory.parent, p.topic) in known:
            continue
        other = sources[rival]
        is_beside = other.parent == p.directory.parent
        what = "has another one" if rival[0] == p.topic else "has the same one"
        yield make_finding(
            "topic_id",
            p.directory / _NAME,
            f"The topic id is {format_uuid(i)} here, but {other.name if is_beside else other} {what}. "
            "A broker does not serve such a partition, nor those that it loads after it.",
            topic=p.topic,
            partition=p.partition,
        )


MIN_KEYS = 16
"""Minimum of different keys that determine where a partition belongs. Fewer may agree by chance."""

SAMPLE_BYTES = 64 << 10
"""Bytes at the start of a segment from which keys are read."""


def check_exchanged(
    partitions: Iterable[Partition], clusters: Clusters, engine: Engine
) -> Iterator[Finding]:
    """Yield a ``partitions_exchanged`` warning for each partition whose sampled keys all belong to
    one other partition here, whose keys belong elsewhere too. The number of partitions is that of
    the cluster metadata, else the highest number here plus 1. Only live partitions are compared,
    without internal topics (``__``), topics with one partition here, and partitions with fewer than
    MIN_KEYS different readable keys. Unreadable files are skipped.

    The default partitioner of Kafka's producers decides where a key belongs. The files in exchanged directories
    agree with each other, so only keys show the exchange.
    """
    topics: dict[tuple[Path, str], dict[int, Partition]] = {}
    for p in partitions:
        if (
            p.state == "live"
            and parse_live_partition_name(p.directory) == p.key
            and not p.topic.startswith("__")
        ):
            topics.setdefault((p.directory.parent, p.topic), {})[p.partition] = p
    many = {place: found for place, found in topics.items() if len(found) > 1}
    size = sum(min(p.size, SAMPLE_BYTES) for found in many.values() for p in found.values())
    by: Engine = "arrow" if use_kernels(size, engine) else "construct"
    for (directory, topic), found in many.items():
        count = clusters(directory).partitions_of(topic) or max(found) + 1
        homes = {
            number: home
            for number, p in found.items()
            if (home := _home_partition(p, count, by)) not in (None, number)
        }
        for number, home in homes.items():
            if home in homes:
                yield make_finding(
                    "partitions_exchanged",
                    found[number].directory,
                    f"By the default partitioner, the keys of partition {number} belong to partition {home}, and the keys of partition {home} belong elsewhere too. "
                    "The directories were exchanged, or the producers use a partitioner of their own.",
                    topic=topic,
                    partition=number,
                )


def _home_partition(partition: Partition, count: int, engine: Engine) -> int | None:
    """Return the one other partition that all sampled keys of a partition belong to, by the default
    partitioner for ``count`` partitions. The sample is the first SAMPLE_BYTES of its first segment
    with bytes. Return None if the keys belong to this one or to several, there are fewer than
    MIN_KEYS different keys, or all segments are empty. Damage and an unreadable file are skipped.
    """
    segment = next((s for s in partition.segments if not s.is_empty), None)
    if segment is None:
        return None
    scanner = Scanner(
        segment.path,
        ["key"],
        Policy.SALVAGE,
        selection=RowSelection(control_records=False),
        engine=engine,
        chunk_bytes=SAMPLE_BYTES,
        stop=SAMPLE_BYTES,
        size=segment.size,
        tail=segment.tail,
        salvage_records=False,
    )
    rows = next(iter(scanner), None)
    keys = pa.array([], pa.binary()) if rows is None else rows.column("key").drop_null()
    homes = np.unique(partition_by_key(keys, count))
    if len(homes) != 1 or homes[0] == partition.partition or len(keys.unique()) < MIN_KEYS:
        return None
    return int(homes[0])
