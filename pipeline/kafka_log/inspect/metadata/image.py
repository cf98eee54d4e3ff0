"""Build the state of a cluster from events of ``__cluster_metadata``, one kind at a time, by the rules of Kafka's metadata image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_codecs import ConfigResourceType
from kafka_log.inspect.metadata.metadata_log import Event

Row = dict[str, Any]
Things = dict[Any, Row]
"""Rows by their key."""

_COPIED = ("replicas", "isr", "removing_replicas", "adding_replicas", "directories")
_ELR = ("eligible_leader_replicas", "last_known_elr")


@dataclass
class Topics:
    """Topics by their ids, and their partitions."""

    names: dict[bytes, str] = field(default_factory=dict)
    partitions: dict[bytes, dict[int, Row]] = field(default_factory=dict)


def build_topics(events: Iterable[Event]) -> Topics:
    """Return the topics and partitions that exist after all events of the views ``topics``,
    ``partitions`` and ``metadata_events``, which are applied in order. A deleted topic is gone with
    its partitions.
    """
    state = Topics()
    for view, row in events:
        if view == "topics":
            _apply_topic(state, row)
        elif view == "partitions":
            _apply_partition(state, row)
        elif row["topic"] is not None:
            _clear_elr(state, row["topic"])
    return state


def _apply_topic(state: Topics, row: Row) -> None:
    """Add the topic of a row to ``state``. If the row is a deletion, remove it with its partitions
    instead, or do nothing if it is unknown.
    """
    if row["is_deleted"]:
        state.names.pop(row["topic_id"], None)
        state.partitions.pop(row["topic_id"], None)
    else:
        state.names[row["topic_id"]] = row["topic"]


def _apply_partition(state: Topics, row: Row) -> None:
    """Set a partition in ``state`` to a row, with ``[]`` for lists that are null. If the row is a
    change, replace only the lists and the leader that it gives in the known partition, and
    increment its partition epoch, and with a leader its leader epoch; do nothing if the partition
    is unknown.
    """
    of_topic = state.partitions.setdefault(row["topic_id"], {})
    number = row["partition"]
    if not row["is_change"]:
        row = {name: value for name, value in row.items() if name != "is_change"}
        of_topic[number] = row | {name: row[name] or [] for name in (*_COPIED, *_ELR)}
    elif number in of_topic:
        of_topic[number] = apply_change(of_topic[number], row)


def apply_change(before: Row, change: Row) -> Row:
    """Return a partition after a change, as a new row: columns that are null in the change stay,
    the partition epoch rises by 1, and a leader in the change starts a new leader epoch.
    """
    given = {n: change[n] for n in (*_COPIED, *_ELR) if change.get(n) is not None}
    if change.get("leader") is not None:
        given |= {"leader": change["leader"], "leader_epoch": _increment(before["leader_epoch"])}
    return before | given | {"partition_epoch": _increment(before["partition_epoch"])}


def _increment(number: int) -> int:
    """Return ``number + 1``, wrapped to a signed 32-bit integer."""
    return (number + 1 + (1 << 31)) % (1 << 32) - (1 << 31)


def _clear_elr(state: Topics, name: str) -> None:
    """Clear both lists of eligible leader replicas of the topic ``name``, or of all topics if
    ``name`` is ``""``. The partition epoch rises by 1 where a list was not empty.
    """
    no_replicas: Row = {n: [] for n in _ELR}
    for topic_id, called in state.names.items():
        if name in ("", called):
            of_topic = state.partitions.get(topic_id, {})
            for number, row in of_topic.items():
                if any(row[n] for n in _ELR):
                    of_topic[number] = apply_change(row, no_replicas)


def build_brokers(events: Iterable[Event]) -> Things:
    """Return the registered brokers by id. A registration replaces an earlier one, a deletion
    removes it, and a change of fencing or controlled shutdown counts only for a broker that is
    registered with the same epoch.
    """
    out: Things = {}
    for _, row in events:
        broker = row["broker_id"]
        if row["is_deleted"]:
            out.pop(broker, None)
        elif row["is_registration"]:
            out[broker] = row
        elif broker in out and out[broker]["broker_epoch"] == row["broker_epoch"]:
            fenced = row["is_fenced"]
            if row["fencing_change"]:
                fenced = row["fencing_change"] > 0
            if fenced is not None:
                out[broker] = out[broker] | {"is_fenced": fenced}
            if row["controlled_shutdown_change"]:
                out[broker] = out[broker] | {"is_in_controlled_shutdown": True}
    return out


def build_configs(events: Iterable[Event]) -> Things:
    """Return the configs by resource type, resource name and config name, after all events of the
    views ``configs`` and ``topics``, which are applied in order. A deleted config is gone; a
    deleted topic loses its configs.
    """
    resources: dict[tuple[int, str], dict[str, Row]] = {}
    names: dict[bytes, str] = {}
    for view, row in events:
        if view == "configs":
            of_resource = resources.setdefault((row["resource_type"], row["resource_name"]), {})
            if row["is_deleted"]:
                of_resource.pop(row["name"], None)
            else:
                of_resource[row["name"]] = row
        elif row["is_deleted"]:
            if row["topic_id"] in names:
                resources.pop((ConfigResourceType.TOPIC, names.pop(row["topic_id"])), None)
        else:
            names[row["topic_id"]] = row["topic"]
    return {(*key, name): row for key, rows in resources.items() for name, row in rows.items()}


KEYS: Mapping[str, tuple[str, ...]] = {
    "controllers": ("controller_id",),
    "features": ("feature",),
    "quotas": ("entity", "name"),
    "acls": ("acl_id",),
    "scram_credentials": ("user", "mechanism"),
    "delegation_tokens": ("token_id",),
    "producer_ids": (),
}
"""Key columns of the views whose state is the last row of each key. A feature is off at level 0."""


def last_rows_by_key(view: str, events: Iterable[Event]) -> Things:
    """Return the last row of each key of a view in :data:`KEYS`, by the key as a tuple, without
    deleted keys and features at level 0.
    """
    out: Things = {}
    for _, row in events:
        key = tuple(
            _entity_key(row[name]) if name == "entity" else row[name] for name in KEYS[view]
        )
        if row.get("is_deleted") or row.get("level") == 0:
            out.pop(key, None)
        else:
            out[key] = row
    return out


def _entity_key(parts: list[dict[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Return the entity of a quota as pairs of type and name, sorted by type."""
    found = {str(part["entity_type"]): part["entity_name"] for part in parts}
    return tuple(sorted(found.items()))
