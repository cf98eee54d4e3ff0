"""Tables of a cluster's metadata as of an offset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from codecgen.runtime.enums import Enumeration
from kafka_codecs import (
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ConfigResourceType,
    ScramMechanism,
)
from kafka_log.inspect.metadata import image as state
from kafka_log.inspect.metadata.answer import answer_metadata, metadata_replicas
from kafka_log.inspect.metadata.metadata_log import Event
from kafka_log.inspect.partition_headers import OnDamage
from kafka_log.logs.partitions import Partition
from kafka_log.read.topic_views import topic_view

Row = dict[str, Any]

_UUID = pa.binary(16)
_IDS = pa.list_(pa.int32())
_TIME = pa.timestamp("ms", "UTC")
_ENTITY = pa.list_(pa.struct([("entity_type", pa.string()), ("entity_name", pa.string())]))


@dataclass(frozen=True)
class Kind:
    """A kind of metadata: its columns, its key columns, the views that it is read from, and the function that builds its rows from their events."""

    schema: pa.Schema
    key: tuple[str, ...]
    views: tuple[str, ...]
    rows: Callable[[Iterable[Event]], Iterable[Row]]

    def without_secrets(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield copies of rows with :data:`~codecgen.runtime.sensitive.REDACTED` in the place of
        each secret that is not null.
        """
        secrets = [column for view in self.views for column in topic_view(view, None).secrets]
        for row in rows:
            shown = [column for column in secrets if column.name in row]
            yield row | {c.name: c.hide_secrets(row[c.name], row) for c in shown}


def state_table(
    partitions: Sequence[Partition],
    what: str,
    as_of: int | None = None,
    *,
    topics: Container[str] | None = None,
    numbers: Container[int] | None = None,
    salvage: bool = False,
    on_damage: OnDamage | None = None,
    show_secrets: bool = False,
) -> pa.Table:
    """Return the state of the kind of metadata ``what`` after the record at ``as_of`` (None: the
    end), one row per object, by key. ``topics`` and partition ``numbers`` select objects (None:
    all); secrets are hidden unless ``show_secrets``. Raise ValueError if the kind is unknown;
    NotFoundError if there is no metadata log, or ``as_of`` is outside of it; CodecError or
    DirectoryError if no state is readable, or for damage without ``on_damage`` and ``salvage``.

    If records are unreadable, unknown or missing, the answer is as of the last offset before them. A damaged snapshot is only
    reported if the log has the same records.

    Args:
        partitions: Partitions with the metadata log among them.
        what: One of :data:`KINDS`.
        as_of: Offset of the last record that counts; None is the end of the log.
        topics: Selects topics, their partitions and configs; None selects all.
        numbers: Selects partition numbers; None selects all.
        salvage: Skip unreadable records instead of ending the answer before them.
        on_damage: Called with a line for each problem; None raises the problem.
        show_secrets: Show secrets instead of ``(redacted)``.
    """
    kind = find_kind(what)
    needs_end = as_of is None and (on_damage is not None or not salvage)
    replicas = metadata_replicas(partitions, on_damage, checks_ends=needs_end)
    found = answer_metadata(replicas, kind.views, kind.rows, as_of, salvage=salvage)
    if on_damage is not None:
        for line in found.describe_gaps():
            on_damage(line)
    elif not salvage:
        found.raise_for_reason()
    rows = found.rows if show_secrets else kind.without_secrets(found.rows)
    return make_table(kind, rows, topics, numbers)


def make_table(
    kind: Kind,
    rows: Iterable[Row],
    topics: Container[str] | None,
    numbers: Container[int] | None,
) -> pa.Table:
    """Return the rows of the topics and partition numbers (None: all) as a table in the schema of
    the kind, sorted by its key.
    """
    chosen = [row for row in sort_by_key(kind, rows) if _is_wanted(row, topics, numbers)]
    return pa.Table.from_pylist(chosen, kind.schema)


def find_kind(what: str) -> Kind:
    """Return the kind with a name. Raise ValueError if there is none."""
    if not isinstance(what, str) or what not in KINDS:
        raise ValueError(f"{what!r} is not a kind of metadata; known: {', '.join(KINDS)}")
    return KINDS[what]


def sort_by_key(kind: Kind, rows: Iterable[Row]) -> list[Row]:
    """Return rows sorted by the kind's key columns, null last."""

    def key(row: Row) -> list[tuple[bool, Any]]:
        """Return the key of a row in a form that can be compared."""
        values = [row[name] for name in kind.key]
        return [
            (v is None, "" if v is None else str(v) if isinstance(v, list) else v) for v in values
        ]

    return sorted(rows, key=key)


def _is_wanted(row: Row, topics: Container[str] | None, numbers: Container[int] | None) -> bool:
    """Return whether a row is of one of ``topics`` and ``numbers``; None means all. A config
    belongs to its topic; configs of other resources are wanted only if ``topics`` is None. All
    other rows without a topic are wanted, and rows without a partition have any number.
    """
    topic = row.get("topic")
    if "resource_name" in row and "principal" not in row:
        is_of_topic = row["resource_type"] == name_of_resource(ConfigResourceType.TOPIC)
        topic = row["resource_name"] if is_of_topic else None
    elif "topic" not in row:
        return True
    if topics is not None and topic not in topics:
        return False
    return numbers is None or "partition" not in row or row["partition"] in numbers


# ---------------------------------------------------------------- kinds


def _topics(events: Iterable[Event]) -> Iterable[Row]:
    """Yield a row per topic: name, id, number of partitions, largest number of replicas, and
    numbers of partitions without a leader and with fewer in-sync replicas than replicas.
    """
    found = state.build_topics(events)
    for topic_id, name in found.names.items():
        of_topic = found.partitions.get(topic_id, {}).values()
        yield {
            "topic": name,
            "topic_id": topic_id,
            "partitions": len(of_topic),
            "replicas": max((len(row["replicas"]) for row in of_topic), default=0),
            "no_leader": sum(row["leader"] is not None and row["leader"] < 0 for row in of_topic),
            "under_replicated": sum(len(row["isr"]) < len(row["replicas"]) for row in of_topic),
        }


def _partitions(events: Iterable[Event]) -> Iterable[Row]:
    """Yield a row per partition of the view ``partitions``, after all events, with the topic's name
    in ``topic``; None if the topic's record is missing.
    """
    found = state.build_topics(events)
    for topic_id, of_topic in found.partitions.items():
        name = found.names.get(topic_id)
        for row in of_topic.values():
            yield row | {"topic": name}


def _brokers(events: Iterable[Event]) -> Iterable[Row]:
    """Yield a row per registered broker."""
    for row in state.build_brokers(events).values():
        yield row | {"listeners": format_listeners(row["end_points"])}


def _configs(events: Iterable[Event]) -> Iterable[Row]:
    """Yield a row per config, with the name of its resource type."""
    for row in state.build_configs(events).values():
        yield row | {"resource_type": name_of_resource(row["resource_type"])}


def _last_rows_of(view: str) -> Callable[[Iterable[Event]], Iterable[Row]]:
    """Return a function that yields, from events of ``view``, the last row of each key that is not
    deleted, with names in the place of numbers and end points as listeners.
    """

    def rows(events: Iterable[Event]) -> Iterable[Row]:
        """Yield the last row of each key."""
        for row in state.last_rows_by_key(view, events).values():
            yield _WORDS.get(view, dict)(row)

    return rows


_WORDS: Mapping[str, Callable[[Row], Row]] = {
    "controllers": lambda row: row | {"listeners": format_listeners(row["end_points"])},
    "scram_credentials": lambda row: (
        row | {"mechanism": name_of_number(ScramMechanism, row["mechanism"])}
    ),
    "acls": lambda row: (
        row | {name: name_of_number(names, row[name]) for name, names in OF_ACLS.items()}
    ),
}


def _columns(*columns: tuple[str, Any], optional: Collection[str] = ()) -> pa.Schema:
    """Return a schema; only the columns in ``optional`` are nullable."""
    return pa.schema([pa.field(name, kind, name in optional) for name, kind in columns])


_OF_TOPICS = ("topics", "partitions", "metadata_events")
_TEXT, _INT, _LONG, _BOOL, _TEXTS = pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.list_(pa.string())  # fmt: skip

KINDS: Mapping[str, Kind] = {
    "topics": Kind(
        _columns(("topic", _TEXT), ("topic_id", _UUID), ("partitions", _LONG), ("replicas", _LONG), ("no_leader", _LONG), ("under_replicated", _LONG)),
        ("topic", "topic_id"), _OF_TOPICS, _topics,
    ),
    "partitions": Kind(
        _columns(("topic", _TEXT), ("topic_id", _UUID), ("partition", _INT), ("leader", _INT), ("leader_epoch", _INT), ("partition_epoch", _INT), ("replicas", _IDS), ("isr", _IDS), ("removing_replicas", _IDS), ("adding_replicas", _IDS), ("eligible_leader_replicas", _IDS), ("last_known_elr", _IDS), ("directories", pa.list_(_UUID)), optional=("topic", "leader")),
        ("topic", "topic_id", "partition"), _OF_TOPICS, _partitions,
    ),
    "configs": Kind(
        _columns(("resource_type", _TEXT), ("resource_name", _TEXT), ("name", _TEXT), ("value", _TEXT)),
        ("resource_type", "resource_name", "name"), ("topics", "configs"), _configs,
    ),
    "brokers": Kind(
        _columns(("broker_id", _INT), ("broker_epoch", _LONG), ("rack", _TEXT), ("is_fenced", _BOOL), ("is_in_controlled_shutdown", _BOOL), ("listeners", _TEXTS), ("incarnation_id", _UUID), optional=("rack",)),
        ("broker_id",), ("brokers",), _brokers,
    ),
    "controllers": Kind(
        _columns(("controller_id", _INT), ("listeners", _TEXTS), ("incarnation_id", _UUID)),
        ("controller_id",), ("controllers",), _last_rows_of("controllers"),
    ),
    "features": Kind(
        _columns(("feature", _TEXT), ("level", pa.int16())),
        ("feature",), ("features",), _last_rows_of("features"),
    ),
    "quotas": Kind(
        _columns(("entity", _ENTITY), ("name", _TEXT), ("value", pa.float64())),
        ("entity", "name"), ("quotas",), _last_rows_of("quotas"),
    ),
    "acls": Kind(
        _columns(("acl_id", _UUID), ("resource_type", _TEXT), ("resource_name", _TEXT), ("pattern_type", _TEXT), ("principal", _TEXT), ("host", _TEXT), ("operation", _TEXT), ("permission_type", _TEXT)),
        ("acl_id",), ("acls",), _last_rows_of("acls"),
    ),
    "scram": Kind(
        _columns(("user", _TEXT), ("mechanism", _TEXT), ("iterations", _INT)),
        ("user", "mechanism"), ("scram_credentials",), _last_rows_of("scram_credentials"),
    ),
    "tokens": Kind(
        _columns(("token_id", _TEXT), ("owner", _TEXT), ("requester", _TEXT), ("renewers", _TEXTS), ("issue_time", _TIME), ("max_time", _TIME), ("expire_time", _TIME)),
        ("token_id",), ("delegation_tokens",), _last_rows_of("delegation_tokens"),
    ),
    "producer_ids": Kind(
        _columns(("next_producer_id", _LONG)),
        (), ("producer_ids",), _last_rows_of("producer_ids"),
    ),
}  # fmt: skip
"""Kinds of metadata, by name."""


OF_ACLS: Mapping[str, type[Enumeration]] = {
    "resource_type": AclResourceType,
    "pattern_type": AclPatternType,
    "operation": AclOperation,
    "permission_type": AclPermissionType,
}
"""Enums of the numbers in columns of ACLs."""


def name_of_number(names: type[Enumeration], number: int) -> str:
    """Return the label of a number in an enum, or the number as text if it has none."""
    return next((name.label for name in names if name == number), str(number))


def name_of_resource(number: int) -> str:
    """Return the type of a config's resource in lower-case words, such as ``broker logger``, or the
    number as text if it has no name.
    """
    return name_of_number(ConfigResourceType, number).lower().replace("_", " ")


def format_listeners(end_points: list[dict[str, Any]]) -> list[str]:
    """Return the listeners of a broker or controller as ``NAME://HOST:PORT``, IPv6 addresses in
    brackets.
    """
    return [
        f"{p['name']}://[{p['host']}]:{p['port']}"
        if ":" in p["host"]
        else f"{p['name']}://{p['host']}:{p['port']}"
        for p in end_points
    ]
