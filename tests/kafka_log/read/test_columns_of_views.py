"""The columns of the views of Kafka's own topics: what each is, whether it may be null (``?``), and whether it must be asked for
(``*``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.arrow.view import Column
from kafka_codecs import CONSUMER_OFFSETS_KEY, CONSUMER_OFFSETS_VALUE
from kafka_log import read_table
from kafka_log.read.topic_views import topic_view
from tests.support.made_topics import entry, log

COLUMNS = {
    "brokers": [
        "broker_id int32",
        "broker_epoch int64",
        "is_registration bool",
        "incarnation_id uuid?",
        "rack string?",
        "is_fenced bool?",
        "is_in_controlled_shutdown bool?",
        "fencing_change int8?",
        "controlled_shutdown_change int8?",
        "end_points [name string, host string, port uint16, security_protocol int16]?",
        "log_dirs [uuid]?",
        "is_deleted bool",
    ],
    "configs": [
        "resource_type int8",
        "resource_name string",
        "name string",
        "value string?",
        "is_deleted bool",
    ],
    "groups": [
        "record_type int16",
        "group string",
        "member_id string?",
        "instance_id string?",
        "client_id string?",
        "client_host string?",
        "rack string?",
        "generation int32?",
        "protocol string?",
        "leader string?",
        "session_timeout_ms int32?",
        "rebalance_timeout_ms int32?",
        "subscribed_topics [string]?",
        "subscription binary?",
        "assignment binary?",
        "is_deleted bool",
    ],
    "offsets": [
        "group string",
        "topic string",
        "partition int32",
        "committed_offset int64?",
        "leader_epoch int32?",
        "metadata string?",
        "commit_time timestamp_ms?",
        "expire_time timestamp_ms?",
        "topic_id uuid?",
        "is_deleted bool",
    ],
    "partitions": [
        "topic_id uuid",
        "partition int32",
        "is_change bool",
        "leader int32?",
        "leader_epoch int32?",
        "partition_epoch int32?",
        "replicas [int32]?",
        "isr [int32]?",
        "removing_replicas [int32]?",
        "adding_replicas [int32]?",
        "directories [uuid]?",
        "eligible_leader_replicas [int32]?",
        "last_known_elr [int32]?",
    ],
    "remote_segments": [
        "topic string",
        "topic_id uuid",
        "partition int32",
        "segment_id uuid",
        "state int8",
        "broker_id int32",
        "event_time timestamp_ms",
        "start_offset int64?",
        "end_offset int64?",
        "max_timestamp timestamp_ms?",
        "size int32?",
        "leader_epochs [leader_epoch int32, offset int64]?",
        "custom_metadata binary?",
    ],
    "share_states": [
        "group string",
        "topic_id uuid",
        "partition int32",
        "is_snapshot bool",
        "snapshot_epoch int32?",
        "state_epoch int32?",
        "leader_epoch int32?",
        "start_offset int64?",
        "delivery_complete_count int32?",
        "create_time timestamp_ms?",
        "write_time timestamp_ms?",
        "state_batches [first_offset int64, last_offset int64, delivery_state int8, delivery_count int16]?",
        "is_deleted bool",
    ],
    "topics": [
        "topic string?",
        "topic_id uuid",
        "is_deleted bool",
    ],
    "transactions": [
        "transactional_id string",
        "producer_id int64?",
        "producer_epoch int16?",
        "timeout_ms int32?",
        "status int8?",
        "partitions [topic string, partition_ids [int32]]?",
        "last_update_time timestamp_ms?",
        "start_time timestamp_ms?",
        "previous_producer_id int64?",
        "next_producer_id int64?",
        "is_deleted bool",
    ],
    "group_epochs": [
        "record_type int16",
        "group string",
        "epoch int32?",
        "assignment_epoch int32?",
        "assignment_time timestamp_ms?",
        "metadata_hash int64?",
        "topology_epoch int32?",
        "protocol_type string?",
        "protocol string?",
        "leader string?",
        "state_time timestamp_ms?",
        "is_deleted bool",
    ],
    "group_topics": [
        "record_type int16",
        "group string",
        "topics [topic_id uuid, topic_name string, num_partitions int32]?",
        "initializing_topics [topic_id uuid, topic_name string, partitions [int32]]?",
        "initialized_topics [topic_id uuid, topic_name string, partitions [int32]]?",
        "deleting_topics [topic_id uuid, topic_name string]?",
        "is_deleted bool",
    ],
    "assignments": [
        "record_type int16",
        "group string",
        "member_id string",
        "is_target bool",
        "member_epoch int32?",
        "previous_member_epoch int32?",
        "state int8?",
        "partitions [topic_id uuid, partitions [int32]]?",
        "partitions_pending_revocation [topic_id uuid, partitions [int32]]?",
        "is_deleted bool",
    ],
    "task_assignments": [
        "record_type int16",
        "group string",
        "member_id string",
        "is_target bool",
        "member_epoch int32?",
        "previous_member_epoch int32?",
        "state int8?",
        "active_tasks [subtopology_id string, partitions [int32]]?",
        "standby_tasks [subtopology_id string, partitions [int32]]?",
        "warmup_tasks [subtopology_id string, partitions [int32]]?",
        "active_tasks_pending_revocation [subtopology_id string, partitions [int32]]?",
        "standby_tasks_pending_revocation [subtopology_id string, partitions [int32]]?",
        "warmup_tasks_pending_revocation [subtopology_id string, partitions [int32]]?",
        "is_deleted bool",
    ],
    "regular_expressions": [
        "group string",
        "regular_expression string",
        "topics [string]?",
        "metadata_offset int64?",
        "lookup_time timestamp_ms?",
        "is_deleted bool",
    ],
    "topologies": [
        "group string",
        "epoch int32?",
        "subtopologies [subtopology_id string, source_topics [string], source_topic_regex [string], "
        "repartition_sink_topics [string], repartition_source_topics [name string, partitions int32], "
        "state_changelog_topics [name string, partitions int32]]?",
        "is_deleted bool",
    ],
    "controllers": [
        "controller_id int32",
        "incarnation_id uuid?",
        "is_zk_migration_ready bool?",
        "end_points [name string, host string, port uint16, security_protocol int16]?",
        "features [name string, min_supported_version int16, max_supported_version int16]?",
        "is_deleted bool",
    ],
    "features": [
        "feature string",
        "level int16",
    ],
    "quotas": [
        "entity [entity_type string, entity_name string?]",
        "name string",
        "value double?",
        "is_deleted bool",
    ],
    "acls": [
        "acl_id uuid",
        "resource_type int8?",
        "resource_name string?",
        "pattern_type int8?",
        "principal string?",
        "host string?",
        "operation int8?",
        "permission_type int8?",
        "is_deleted bool",
    ],
    "scram_credentials": [
        "user string",
        "mechanism int8",
        "iterations int32?",
        "is_deleted bool",
        "salt binary?*",
        "stored_key binary?*",
        "server_key binary?*",
    ],
    "delegation_tokens": [
        "token_id string",
        "owner string?",
        "requester string?",
        "renewers [string]?",
        "issue_time timestamp_ms?",
        "max_time timestamp_ms?",
        "expire_time timestamp_ms?",
        "is_deleted bool",
    ],
    "producer_ids": [
        "broker_id int32",
        "broker_epoch int64?",
        "next_producer_id int64",
    ],
    "metadata_events": [
        "record_type int16",
        "name string?",
        "reason string?",
        "topic string?",
        "zk_migration_state int8?",
    ],
    "remote_partitions": [
        "topic string",
        "topic_id uuid",
        "partition int32",
        "state int8",
        "broker_id int32",
        "event_time timestamp_ms",
    ],
}


def shown(column: Column) -> str:
    if column.element is not None:
        inner = f"[{shown(column.element).partition(' ')[2]}]"
    elif column.type == "list":
        inner = f"[{', '.join(map(shown, column.members))}]"
    else:
        inner = column.type
    return f"{column.name} {inner}{'?' * column.nullable}{'*' * column.on_request}"


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    assert [shown(column) for column in topic_view(name, None).view.columns] == COLUMNS[name]


TASKS = [
    *("active_tasks", "standby_tasks", "warmup_tasks"),
    *("active_tasks_pending_revocation", "standby_tasks_pending_revocation"),
    "warmup_tasks_pending_revocation",
]


def tasks(name: str) -> list[dict[str, object]]:
    """Tasks that no other column has."""
    number = TASKS.index(name)
    return [{"subtopology_id": f"of-{name}", "partitions": [number, 10 + number]}]


@pytest.mark.parametrize(("kind", "names"), [(21, TASKS[:3]), (22, TASKS)])
def test_each_column_of_tasks_holds_its_own(tmp_path: Path, kind: int, names: list[str]) -> None:
    """A broker's assignor gives a member one sort of task at a time, which says little of the others."""
    key = CONSUMER_OFFSETS_KEY.build({"type": kind, "group_id": "g", "member_id": "m"})
    epochs = {"member_epoch": 5, "previous_member_epoch": 4, "state": 1} if kind == 22 else {}
    fields = {"version": 0, **epochs, **{name: tasks(name) for name in names}}
    (layout,) = {CONSUMER_OFFSETS_VALUE[k] for k in CONSUMER_OFFSETS_VALUE if int(k) == kind}
    value = layout.build(fields)
    path = log(tmp_path, "__consumer_offsets-0", entry(0, key, value))
    (row,) = read_table(path, view="task_assignments").to_pylist()
    assert {name: row[name] for name in TASKS} == {
        name: tasks(name) if name in names else None for name in TASKS
    }
    said = {"member_epoch": None, "previous_member_epoch": None, "state": None, **epochs}
    assert {name: row[name] for name in said} == said
    assert (row["group"], row["member_id"], row["is_target"]) == ("g", "m", kind == 21)
