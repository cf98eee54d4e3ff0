"""Partitions of a topic whose directories were exchanged: their records have keys that belong elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_log.logs.names import parse_live_partition_name
from kafka_log.logs.partitions import Partition
from kafka_log.report.check.cluster import Clusters
from kafka_log.report.check.finding import Finding
from kafka_log.segment.columnar import Scanner
from kafka_log.segment.kernels import Engine, use_kernels
from kafka_log.segment.model import Policy
from kafka_log.segment.row_selection import RowSelection
from kafka_log.write.partitioner import by_key

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
    homes = np.unique(by_key(keys, count))
    if len(homes) != 1 or homes[0] == partition.partition or len(keys.unique()) < LEAST:
        return None
    return int(homes[0])
