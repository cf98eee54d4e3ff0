"""Where brokers keep what they know of groups, transactional ids and share partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.disk.coordinators import DEFAULT_PARTITIONS, partition_of
from kafka_log.disk.directory import DirectoryError, NotThere, Partition, utf8
from kafka_log.disk.names import CLUSTER_METADATA
from kafka_log.tables.own_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

COORDINATORS = pa.schema(
    [
        pa.field("name", pa.string(), False),
        pa.field("topic", pa.string(), False),
        pa.field("partition", pa.int32(), False),
        pa.field("partitions", pa.int32(), False),
        pa.field("partitions_from", pa.string(), False),
        pa.field("directories", pa.list_(pa.string()), False),
    ]
)

MAX_PARTITIONS = (1 << 31) - 1

_SHARE_PARTITION = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)
"""What a share partition is called there: the group, the id of the topic, and the partition."""


def coordinator_table(
    names: Iterable[str], found: Sequence[Partition], count: int | None = None
) -> pa.Table:
    """For each name the partition of each topic that it would be in, in the columns of :data:`COORDINATORS`.

    ``count`` is how many partitions each topic has; None: what the metadata log among ``found`` says, else 50. Raises NotThere (a ValueError)
    for a name that is no text, a count that cannot be, and a partition among ``found`` that is beyond the count.
    """
    if count is not None and not 1 <= count <= MAX_PARTITIONS:
        raise NotThere(f"a topic cannot have {count} partitions")
    said = {} if count is not None else _said(found)
    rows = []
    for name in names:
        for topic in _topics(name):
            number, source = (count, "given") if count is not None else said.get(topic, (DEFAULT_PARTITIONS, "default"))  # fmt: skip
            _refuse_more(topic, number, found)
            partition = partition_of(name, number)
            places = [p for p in found if (p.topic, p.partition) == (topic, partition)]
            rows.append(
                {
                    "name": name,
                    "topic": topic,
                    "partition": partition,
                    "partitions": number,
                    "partitions_from": source,
                    "directories": [utf8(os.fspath(p.directory)) for p in places],
                }
            )
    return pa.Table.from_pylist(rows, COORDINATORS)


def _topics(name: str) -> list[str]:
    more = [SHARE_GROUP_STATE] if _SHARE_PARTITION.fullmatch(name) else []
    return [CONSUMER_OFFSETS, TRANSACTION_STATE, *more]


def _said(found: Sequence[Partition]) -> Mapping[str, tuple[int, str]]:
    """How many partitions the topics have, as far as the metadata log is there and can be read."""
    logs = [p for p in found if p.topic == CLUSTER_METADATA and p.error is None]
    if not logs:
        return {}
    from kafka_log.report.metadata import state_table

    try:
        rows = state_table(logs, "topics").to_pylist()
    except (CodecError, DirectoryError, NotThere):
        return {}
    return {row["topic"]: (row["partitions"], "metadata") for row in rows if row["partitions"]}


def _refuse_more(topic: str, count: int, found: Sequence[Partition]) -> None:
    most = max((p.partition for p in found if p.topic == topic), default=-1)
    if most >= count:
        raise NotThere(f"{topic}-{most} is there: the topic has more than {count} partitions")
