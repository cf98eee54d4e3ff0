"""Partitions of one log directory beside each other: each is there once, and each topic has an id of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_log.inspect.check.cluster import Cluster, Clusters
from kafka_log.inspect.check.finding import Finding
from kafka_log.logs.broker_files import read_topic_id
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
"""A topic, and an id that partitions of it say."""


def check_together(partitions: Iterable[Partition], clusters: Clusters) -> Iterator[Finding]:
    """What is wrong with partitions in one log directory that is right with each by itself. Where the metadata of the cluster knows the id
    of a topic, each partition is compared with that."""
    beside: dict[Path, list[Partition]] = {}
    for partition in partitions:
        if (
            partition.state == "live"
            and parse_live_partition_name(partition.directory) == partition.key
        ):
            beside.setdefault(partition.directory.parent, []).append(partition)
    for directory, found in beside.items():
        yield from _twice(found)
        yield from _ids(found, clusters(directory))


def _twice(partitions: list[Partition]) -> Iterator[Finding]:
    """Directories whose names say the same: codecs-01 and codecs-1."""
    same: dict[tuple[str, int], list[Path]] = {}
    for partition in partitions:
        same.setdefault(partition.key, []).append(partition.directory)
    for (topic, number), directories in same.items():
        first, *others = sorted(directories, key=lambda path: (len(path.name), path.name))
        for path in others:
            yield Finding(
                "error",
                "partition_twice",
                path,
                f"This is the partition {number} of its topic, as {first.name} is: no broker starts with two directories of one.",
                "Compare the two with kafka-log diff, and move one out of the log directory before you start the broker.",
                topic=topic,
                partition=number,
            )


def _ids(partitions: list[Partition], cluster: Cluster) -> Iterator[Finding]:
    """Ids that most partitions of a topic do not have, or that more partitions of another topic have. Where nobody knows which is the
    right one, each is told."""
    said = [(p, i) for p in partitions if (i := read_topic_id(p.directory)) is not None]
    counts = Counter((p.topic, i) for p, i in said)
    names = {(p.topic, i): p.directory.name for p, i in reversed(said)}
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
        if rival is None or cluster.topic_id(p.topic) is not None:
            continue
        what = "has another one" if rival[0] == p.topic else "has it too"
        yield Finding(
            "error",
            "topic_id",
            p.directory / _NAME,
            f"The topic's id is {format_uuid(i)} here, but {names[rival]} {what}: a broker does not serve such a partition, nor others that it comes to later when it starts.",
            "Copy the file from another replica of this partition before you start the broker.",
            topic=p.topic,
            partition=p.partition,
        )


LEAST = 16
"""Different keys of a partition that say where it belongs: with fewer it could be chance."""

LOOK = 64 << 10
"""Bytes of a segment in which keys are looked for: in its first batches."""


def check_exchanged(
    partitions: Iterable[Partition], clusters: Clusters, engine: Engine
) -> Iterator[Finding]:
    """Partitions of which all keys that are looked at belong, as Kafka's producers choose, into one other partition, where that one has keys of
    another one too. Nothing else on a disk tells: files in the directories go along, and checkpoints may fit both."""
    topics: dict[tuple[Path, str], dict[int, Partition]] = {}
    for p in partitions:
        if (
            p.state == "live"
            and parse_live_partition_name(p.directory) == p.key
            and not p.topic.startswith("__")
        ):
            topics.setdefault((p.directory.parent, p.topic), {})[p.partition] = p
    many = {place: found for place, found in topics.items() if len(found) > 1}
    size = sum(min(p.size, LOOK) for found in many.values() for p in found.values())
    by: Engine = "arrow" if use_kernels(size, engine) else "construct"
    for (directory, topic), found in many.items():
        count = clusters(directory).partitions_of(topic) or max(found) + 1
        homes = {
            number: home
            for number, p in found.items()
            if (home := _home(p, count, by)) not in (None, number)
        }
        for number, home in homes.items():
            if home in homes:
                yield Finding(
                    "warning",
                    "partitions_exchanged",
                    found[number].directory,
                    f"By the way that Kafka's producers choose partitions the keys here belong into partition {home}, and those there elsewhere too: "
                    "the directories were exchanged, or the producers have their own way.",
                    "Compare the partition with another replica (kafka-log diff). If they differ, stop the broker and give the directories their names back.",
                    topic=topic,
                    partition=number,
                )


def _home(partition: Partition, count: int, engine: Engine) -> int | None:
    """The one partition that all keys at the beginning of a partition belong into; None where there is no such one, or too few keys."""
    segment = next((s for s in partition.segments if s.size), None)
    if segment is None:
        return None
    scanner = Scanner(
        segment.path,
        ["key"],
        Policy.SALVAGE,
        selection=RowSelection(control_records=False),
        engine=engine,
        chunk_bytes=LOOK,
        stop=LOOK,
        size=segment.size,
        tail=segment.tail,
        rescue=False,
    )
    rows = next(iter(scanner), None)
    keys = pa.array([], pa.binary()) if rows is None else rows.column("key").drop_null()
    homes = np.unique(partition_by_key(keys, count))
    if len(homes) != 1 or homes[0] == partition.partition or len(keys.unique()) < LEAST:
        return None
    return int(homes[0])
