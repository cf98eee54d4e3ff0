"""Find the partitions of the internal topics that coordinate groups, transactional ids and share partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.logs.coordinators import DEFAULT_PARTITIONS, coordinator_partition
from kafka_log.logs.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition
from kafka_log.read.internal_topics import internal_topic
from kafka_log.read.scanning import scan
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Policy

COORDINATORS = pa.schema(
    [
        pa.field(
            "name", pa.string(), False, {"doc": "Group id or transactional id that was asked for."}
        ),
        pa.field("topic", pa.string(), False, {"doc": "Internal topic that keeps the name."}),
        pa.field(
            "partition", pa.int32(), False, {"doc": "Partition of that topic that keeps the name."}
        ),
        pa.field("partitions", pa.int32(), False, {"doc": "Number of partitions of that topic."}),
        pa.field(
            "partitions_from",
            pa.string(),
            False,
            {"doc": "Source of the number of partitions: given, metadata or default."},
        ),
        pa.field(
            "known",
            pa.bool_(),
            True,
            {
                "doc": "Whether the partition has a record of the name that is not deleted; null if it cannot be read."
            },
        ),
        pa.field(
            "directories",
            pa.list_(pa.string()),
            False,
            {"doc": "Directories of the partition in the paths."},
        ),
    ]
)

MAX_PARTITIONS = (1 << 31) - 1

_SHARE_PARTITION = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)
"""Name of a share partition in ``__share_group_state``: group, topic id and partition, separated by colons."""


def coordinator_table(
    names: Iterable[str], found: Sequence[Partition], count: int | None = None
) -> pa.Table:
    """Return one row per name and internal topic (two topics; three for the name of a share
    partition) with the partition of the name, in the columns of :data:`COORDINATORS`. ``count`` is
    the topic's number of partitions; None: that of the cluster metadata in ``found``, else, also if
    that is damaged, 50. ``known`` is null if no directory of the partition is in ``found`` and
    readable; damage in it is skipped. Raise NotFoundError (a ValueError) if a name is not valid
    UTF-8, ``count`` is below 1 or above 2^31-1, or a partition in ``found`` has a number that is
    not below the count.

    Args:
        names: Groups, transactional ids or share partitions.
        found: Partitions to look in for records of the names, and for the metadata log.
        count: Number of partitions of each topic; None takes it from the metadata log among ``found``, else 50.
    """
    if count is not None and not 1 <= count <= MAX_PARTITIONS:
        raise NotFoundError(
            f"{count} is not a number of partitions: a topic has 1 to {MAX_PARTITIONS}"
        )
    counts = {} if count is not None else _partition_counts(found)
    rows = []
    known: dict[int, frozenset[str]] = {}
    for name in names:
        for topic in _internal_topics(name):
            number, source = (count, "given") if count is not None else counts.get(topic, (DEFAULT_PARTITIONS, "default"))  # fmt: skip
            _check_partition_numbers(topic, number, found)
            partition = coordinator_partition(name, number)
            places = [p for p in found if (p.topic, p.partition) == (topic, partition)]
            readable = [p for p in places if p.error is None]
            for p in readable:
                if id(p) not in known:
                    known[id(p)] = frozenset(_live_names(p))
            rows.append(
                {
                    "name": name,
                    "topic": topic,
                    "partition": partition,
                    "partitions": number,
                    "partitions_from": source,
                    "known": any(name in known[id(p)] for p in readable) if readable else None,
                    "directories": [utf8(os.fspath(p.directory)) for p in places],
                }
            )
    return pa.Table.from_pylist(rows, COORDINATORS)


def _internal_topics(name: str) -> list[str]:
    """Return the internal topics that may have records of a name."""
    more = [SHARE_GROUP_STATE] if _SHARE_PARTITION.fullmatch(name) else []
    return [CONSUMER_OFFSETS, TRANSACTION_STATE, *more]


def _live_names(partition: Partition) -> Iterator[str]:
    """Yield the names (groups, transactional ids or share partitions) in the keys of a partition of
    an internal topic, of each key whose last record is not a tombstone. A name may come several
    times. Damage, unreadable files and keys that do not parse are skipped.
    """
    topic = internal_topic(partition.topic)
    assert topic is not None
    last: dict[bytes, bool] = {}
    for rows in scan([partition], ["key", "value"], Policy.SALVAGE, on_damage="drop"):
        keys = rows.column("key").to_pylist()
        last |= dict(zip(keys, rows.column("value").is_valid().to_pylist(), strict=True))
    for key, is_there in last.items():
        decoded = topic.decode(key, None).key if is_there else None
        data = {} if decoded is None else decoded["data"]
        if partition.topic == SHARE_GROUP_STATE and "topicId" in data:
            yield f"{data['groupId']}:{data['topicId']}:{data['partition']}"
        else:
            yield from (data[n] for n in ("group", "groupId", "transactionalId") if n in data)


def _partition_counts(found: Sequence[Partition]) -> Mapping[str, tuple[int, str]]:
    """Return the number of partitions and the word ``metadata``, its source, by topic, from the
    metadata log; topics without partitions are left out. Return {} if the metadata log is missing,
    damaged or cannot be read.
    """
    logs = [p for p in found if p.topic == CLUSTER_METADATA and p.error is None]
    if not logs:
        return {}
    from kafka_log.inspect.metadata.table import state_table

    try:
        rows = state_table(logs, "topics").to_pylist()
    except (CodecError, DirectoryError, NotFoundError):
        return {}
    return {row["topic"]: (row["partitions"], "metadata") for row in rows if row["partitions"]}


def _check_partition_numbers(topic: str, count: int, found: Sequence[Partition]) -> None:
    """Raise NotFoundError if ``found`` has a partition of ``topic`` whose number is not below ``count``."""
    highest = max((p.partition for p in found if p.topic == topic), default=-1)
    if highest >= count:
        raise NotFoundError(
            f"{topic}-{highest} exists, so the topic has more than {count_noun(count, 'partition')}: give their number (--partitions, partitions)"
        )
