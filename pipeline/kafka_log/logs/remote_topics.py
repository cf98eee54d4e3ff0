"""Topic ids of copies in tiered storage: a topic that was deleted and created again has the name, but not the id, of the earlier one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from uuid import UUID

from codecgen.runtime.errors import Where
from kafka_log.logs.broker_files import find_topic_id, read_topic_id
from kafka_log.logs.names import parse_remote_topic_id
from kafka_log.logs.partitions import Partition, SkippedPath
from kafka_log.segment.positioned_reads import UnreadableError

Key = tuple[str, int]

OTHER_TOPIC = "its topic id is not that of the live partition: these are copies of an earlier topic with this name"
"""Reason for skipping a directory in tiered storage."""


def skip_earlier_topics(
    partitions: Sequence[Partition],
) -> tuple[list[Partition], list[SkippedPath]]:
    """Return the partitions without the remote ones whose topic id differs from that of the live
    partition with the same topic and number, and a SkippedPath for each of these. Keep them all if
    no such live partition states its topic id in ``partition.metadata``; keep remote directories
    whose name has no id.
    """
    remote = {p.key for p in partitions if p.state == "remote"}
    live: dict[Key, set[UUID]] = {}
    for p in partitions:
        if p.key in remote and p.state == "live" and (stated := read_topic_id(p.directory)):
            live.setdefault(p.key, set()).add(UUID(bytes=stated))
    kept: list[Partition] = []
    skipped: list[SkippedPath] = []
    for p in partitions:
        topic = get_remote_topic_id(p)
        if topic is None or topic in live.get(p.key, {topic}):
            kept.append(p)
        else:
            skipped.append(SkippedPath(p.directory, OTHER_TOPIC, p.topic))
    return kept, skipped


def get_remote_topic_id(partition: Partition) -> UUID | None:
    """Return the topic id in the name of a remote partition's directory. Return None for a
    partition in another state, or a directory whose name has no topic id.
    """
    return parse_remote_topic_id(partition.directory) if partition.state == "remote" else None


def find_mixed_topics(partitions: Iterable[Partition]) -> dict[Key, UnreadableError]:
    """Return, not raise, an error for each topic and partition number whose remote partitions with
    segments have several topic ids, or whose live partitions state none because damage hides it;
    ``{}`` if there are none. The error names the directory of the first one with another id, or the
    live one. Remote directories whose name has no id are ignored.
    """
    first: dict[Key, UUID] = {}
    errors: dict[Key, UnreadableError] = {}
    found = list(partitions)
    for p in found:
        topic = get_remote_topic_id(p) if p.segments else None
        if topic is None or first.setdefault(p.key, topic) == topic or p.key in errors:
            continue
        reason = (
            f"tiered storage has copies of several topics with the name {p.topic}, and no live partition states the topic id of the one"
            " that exists; to read one of them, pass its directory alone"
        )
        errors[p.key] = UnreadableError(reason, Where(file=os.fspath(p.directory)))
    live = [(p, *find_topic_id(p.directory)) for p in found if p.key in first and p.state == "live"]
    known = {p.key for p, stated, _ in live if stated is not None}
    for p, _, hidden in live:
        if hidden is not None and p.key not in known:
            reason = (
                f"the topic id of the live partition is not known ({hidden}), so that the copies in tiered storage may be those of an earlier"
                " topic with this name; to read them, pass their directory alone"
            )
            errors.setdefault(p.key, UnreadableError(reason, Where(file=os.fspath(p.directory))))
    return errors
