"""Find the partitions of the internal topics that coordinate groups, transactional ids and share partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.partition_headers import OnDamage
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
                "doc": "Whether the partition has a record of the name that is not deleted; null if damage or an unreadable directory hides it."
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
    names: Iterable[str],
    found: Sequence[Partition],
    count: int | None = None,
    on_damage: OnDamage | None = None,
) -> pa.Table:
    """Return one row per name and internal topic (two topics; three for the name of a share
    partition) with the partition of the name, in the columns of :data:`COORDINATORS`. ``count`` is
    the topic's number of partitions; None: that of the cluster metadata in ``found``, else 50.
    ``known`` is null if no directory of the partition is in ``found``, or none that is readable and
    undamaged has a record of the name and another one may. Raise NotFoundError (a ValueError) if a
    name is not valid UTF-8, ``count`` is below 1 or above 2^31-1, or a partition in ``found`` has a
    number that is not below the count; CodecError or DirectoryError if ``count`` and ``on_damage``
    are None and the metadata cannot be read to its end.

    Args:
        names: Groups, transactional ids or share partitions.
        found: Partitions to look in for records of the names, and for the metadata log.
        count: Number of partitions of each topic; None takes it from the metadata log among ``found``, else 50.
        on_damage: Called with a line for each replica of the metadata log that cannot be read, and with one if the numbers of
            partitions are those before the first unreadable record, or are not known at all. None: raise the error.
    """
    if count is not None and not 1 <= count <= MAX_PARTITIONS:
        raise NotFoundError(
            f"{count} is not a number of partitions: a topic has 1 to {MAX_PARTITIONS}"
        )
    counts = {} if count is not None else _partition_counts(found, on_damage)
    rows = []
    live: dict[int, frozenset[str] | None] = {}
    for name in names:
        for topic in _internal_topics(name):
            number, source = (count, "given") if count is not None else counts.get(topic, (DEFAULT_PARTITIONS, "default"))  # fmt: skip
            _check_partition_numbers(topic, number, found)
            partition = coordinator_partition(name, number)
            places = [p for p in found if (p.topic, p.partition) == (topic, partition)]
            for p in places:
                if id(p) not in live:
                    live[id(p)] = _live_names(p)
            rows.append(
                {
                    "name": name,
                    "topic": topic,
                    "partition": partition,
                    "partitions": number,
                    "partitions_from": source,
                    "known": _is_known(name, [live[id(p)] for p in places]),
                    "directories": [utf8(os.fspath(p.directory)) for p in places],
                }
            )
    return pa.Table.from_pylist(rows, COORDINATORS)


def _internal_topics(name: str) -> list[str]:
    """Return the internal topics that may have records of a name."""
    more = [SHARE_GROUP_STATE] if _SHARE_PARTITION.fullmatch(name) else []
    return [CONSUMER_OFFSETS, TRANSACTION_STATE, *more]


def _is_known(name: str, live: Sequence[frozenset[str] | None]) -> bool | None:
    """Return whether the names of some replica have ``name``; None if none has it and those of one
    are None (unknown), or there is no replica.
    """
    if any(names is not None and name in names for names in live):
        return True
    return None if not live or None in live else False


def _live_names(partition: Partition) -> frozenset[str] | None:
    """Return the names (groups, transactional ids or share partitions) in the keys of a partition of
    an internal topic, of each key whose last record is not a tombstone. Keys that do not parse are
    skipped. Return None if the partition is damaged or cannot be read: any name may be in a record
    that is lost, or be deleted by it.
    """
    topic = internal_topic(partition.topic)
    assert topic is not None
    last: dict[bytes, bool] = {}
    try:
        for rows in scan([partition], ["key", "value"]):
            keys = rows.column("key").to_pylist()
            last |= dict(zip(keys, rows.column("value").is_valid().to_pylist(), strict=True))
    except CodecError:
        return None
    names: set[str] = set()
    for key, is_there in last.items():
        decoded = topic.decode(key, None).key if is_there else None
        data = {} if decoded is None else decoded["data"]
        if partition.topic == SHARE_GROUP_STATE and "topicId" in data:
            names.add(f"{data['groupId']}:{data['topicId']}:{data['partition']}")
        else:
            names.update(data[n] for n in ("group", "groupId", "transactionalId") if n in data)
    return frozenset(names)


def _partition_counts(
    found: Sequence[Partition], on_damage: OnDamage | None
) -> Mapping[str, tuple[int, str]]:
    """Return the number of partitions and the word ``metadata``, its source, by topic, from the
    metadata log; topics without partitions are left out. Return {} if there is no metadata log. If
    it cannot be read to its end, raise CodecError or DirectoryError; with ``on_damage``, report the
    error instead and return the numbers before the first unreadable record, {} if no state is
    readable.
    """
    logs = [p for p in found if p.topic == CLUSTER_METADATA]
    if not logs:
        return {}
    from kafka_log.inspect.metadata.answer import answer_metadata, metadata_replicas
    from kafka_log.inspect.metadata.table import find_kind

    topics = find_kind("topics")
    advice = "give the number of partitions (--partitions, partitions)"
    try:
        replicas = metadata_replicas(logs, on_damage)
        answer = answer_metadata(replicas, topics.views, topics.rows, None, salvage=False)
    except (CodecError, DirectoryError) as error:
        if on_damage is None:
            raise
        on_damage(f"{error}; {advice}")
        return {}
    if on_damage is None:
        answer.raise_for_reason()
    elif answer.reason is not None:
        on_damage(f"the numbers of partitions are as of offset {answer.as_of} of {CLUSTER_METADATA}: {answer.reason}; {advice}")  # fmt: skip
    rows = ((row["topic"], row["partitions"]) for row in answer.rows)
    return {topic: (count, "metadata") for topic, count in rows if count}


def _check_partition_numbers(topic: str, count: int, found: Sequence[Partition]) -> None:
    """Raise NotFoundError if ``found`` has a partition of ``topic`` whose number is not below ``count``."""
    highest = max((p.partition for p in found if p.topic == topic), default=-1)
    if highest >= count:
        raise NotFoundError(
            f"{topic}-{highest} exists, so the topic has more than {count_noun(count, 'partition')}: give their number (--partitions, partitions)"
        )
