"""The columns of the views of Kafka's own topics that tests/arrow/test_topic_views.py does not build rows of: what each is, whether it
may be null (``?``), and whether it must be asked for (``*``)."""

from __future__ import annotations

import pytest

from codecgen.runtime.arrow.view import Column
from kafka_log.tables.topic_views import topic_view

COLUMNS = {
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
