"""What the records of ``__cluster_metadata`` add up to, one kind of thing at a time, by the rules of Kafka's own image of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_log.inspect.metadata.metadata_log import Event

Row = dict[str, Any]
Things = dict[Any, Row]
"""What there is, by what identifies it."""

TOPIC = 2
"""A topic, among the types of resources that have settings."""

_AS_THEY_ARE = ("replicas", "isr", "removing_replicas", "adding_replicas", "directories")
_ELR = ("eligible_leader_replicas", "last_known_elr")


@dataclass
class Topics:
    """Topics by their ids, and their partitions."""

    names: dict[bytes, str] = field(default_factory=dict)
    partitions: dict[bytes, dict[int, Row]] = field(default_factory=dict)


def topics(events: Iterable[Event]) -> Topics:
    """The topics and partitions after rows of the views ``topics``, ``partitions`` and ``metadata_events``."""
    state = Topics()
    for view, row in events:
        if view == "topics":
            _topic(state, row)
        elif view == "partitions":
            _partition(state, row)
        elif row["topic"] is not None:
            _clear_elr(state, row["topic"])
    return state


def _topic(state: Topics, row: Row) -> None:
    if row["is_deleted"]:
        state.names.pop(row["topic_id"], None)
        state.partitions.pop(row["topic_id"], None)
    else:
        state.names[row["topic_id"]] = row["topic"]


def _partition(state: Topics, row: Row) -> None:
    of_topic = state.partitions.setdefault(row["topic_id"], {})
    number = row["partition"]
    if not row["is_change"]:
        row = {name: value for name, value in row.items() if name != "is_change"}
        of_topic[number] = row | {name: row[name] or [] for name in (*_AS_THEY_ARE, *_ELR)}
    elif number in of_topic:
        of_topic[number] = changed(of_topic[number], row)


def changed(before: Row, change: Row) -> Row:
    """A partition after a change: what this does not say stays, and each leader that it says begins an epoch."""
    given = {n: change[n] for n in (*_AS_THEY_ARE, *_ELR) if change.get(n) is not None}
    if change.get("leader") is not None:
        given |= {"leader": change["leader"], "leader_epoch": _next(before["leader_epoch"])}
    return before | given | {"partition_epoch": _next(before["partition_epoch"])}


def _next(number: int) -> int:
    """The next number, as 32 bits hold it."""
    return (number + 1 + (1 << 31)) % (1 << 32) - (1 << 31)


def _clear_elr(state: Topics, name: str) -> None:
    """Forget eligible leader replicas: of a topic, or of all where the name is empty."""
    nothing: Row = {n: [] for n in _ELR}
    for topic_id, called in state.names.items():
        if name in ("", called):
            of_topic = state.partitions.get(topic_id, {})
            for number, row in of_topic.items():
                if any(row[n] for n in _ELR):
                    of_topic[number] = changed(row, nothing)


def brokers(events: Iterable[Event]) -> Things:
    """The brokers that are registered, by id. A change of a registration that is no more changes nothing."""
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


def configs(events: Iterable[Event]) -> Things:
    """The settings, by type and name of the resource and their own name. Those of a topic go with it."""
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
                resources.pop((TOPIC, names.pop(row["topic_id"])), None)
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
"""Views whose last row of a key counts, and the key. A feature is off at level 0."""


def last_ones(view: str, events: Iterable[Event]) -> Things:
    """Of each key of a view the last row, where it is no deletion."""
    out: Things = {}
    for _, row in events:
        key = tuple(_entity(row[name]) if name == "entity" else row[name] for name in KEYS[view])
        if row.get("is_deleted") or row.get("level") == 0:
            out.pop(key, None)
        else:
            out[key] = row
    return out


def _entity(parts: list[dict[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Whom a quota is for; the order in which it is said does not matter."""
    found = {str(part["entity_type"]): part["entity_name"] for part in parts}
    return tuple(sorted(found.items()))
