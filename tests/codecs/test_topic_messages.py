"""What lies in Kafka's own topics, beside Kafka's own classes: fields, versions, what is there when nothing was set, and what
the classes write of messages that were made up.

``tests/data/topic_messages.jsonl`` was made by Kafka 4.4.0 (``python -m tests.brokers.topic_messages``).
"""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from codecgen.schema.lookup import reference_of
from codecgen.schema.types import ScalarType
from tests.brokers.message_shapes import (
    codec,
    in_version,
    kafka_shape,
    layout_of,
    plan,
    plans,
    prefix,
    shape,
)
from tests.support.topic_messages import FOLDERS, MESSAGES, VERSIONS


def test_every_layout_is_one_of_kafka_or_in_one() -> None:
    """No message is left out, and a layout that is none is held by one."""
    ours = {
        layout.name
        for layout in plan().model.layouts.values()
        if layout.span.file.startswith(FOLDERS)
    }
    theirs = {layout_of(name) for name in MESSAGES}
    assert theirs <= ours
    held = {
        ref.layout
        for layout in plan().model.layouts.values()
        for field in layout.fields
        if (ref := reference_of(field)) is not None
    }
    assert ours - theirs - held == {"metadata_record", "remote_log_metadata_record"}


def test_what_messages_hold_has_one_version() -> None:
    theirs = {layout_of(name) for name in MESSAGES}
    for name, layout in plan().model.layouts.items():
        if layout.span.file.startswith(FOLDERS) and not layout.is_local and name not in theirs:
            framed = name.endswith("metadata_record")
            assert [p.version for p in plan().versions[name]] == [None if framed else 0], name


@pytest.mark.parametrize("name", MESSAGES)
def test_the_versions_are_those_of_kafka(name: str) -> None:
    assert [p.version or 0 for p in plans(name)] == [int(v) for v in MESSAGES[name]["versions"]]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_the_fields_are_those_of_kafka(name: str, version: int) -> None:
    assert shape(name, version) == kafka_shape(MESSAGES[name]["versions"][str(version)])


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_what_kafka_writes_is_read_and_written_again(name: str, version: int) -> None:
    layout = codec(name, version)
    message = MESSAGES[name]
    for example in [message["unset"][str(version)], *message["examples"][str(version)]]:
        data = prefix(name, version) + bytes.fromhex(example)
        assert layout.build(layout.parse(data)) == data


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_what_is_there_when_nothing_was_set(name: str, version: int) -> None:
    """Fields that have a default can be left out, and hold what they hold in Kafka's classes; so do tagged fields that are
    not in the bytes."""
    layout, found = codec(name, version), in_version(name, version)
    data = prefix(name, version) + bytes.fromhex(MESSAGES[name]["unset"][str(version)])
    value = layout.parse(data)
    given = {
        fp.name: value[fp.name]
        for fp in found.in_order
        if fp.default is None and fp.field.absent is None and not fp.field.is_version
    }
    assert layout.build(given) == data
    for fp in found.tagged:
        spelled = plan().spelling(fp.name, fp.field.spelled)
        assert same(value[fp.name], MESSAGES[name]["tagged"][spelled]), fp.name


def same(ours: Any, theirs: Any) -> bool:
    """Whether a value is that of Kafka's JSON: zeros of a uuid are text there."""
    if isinstance(theirs, str):
        return bool(ours == uuid.UUID(int=0))
    if isinstance(theirs, dict):
        return all(same(ours[snake(name)], value) for name, value in theirs.items())
    return type(ours) is type(theirs) is bool or bool(ours == theirs)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


DEFAULTS = {
    "offset_commit_value": {"leader_epoch": -1, "expire_timestamp": -1},
    "group_metadata_value": {"current_state_timestamp": -1},
    "group_metadata_value_members": {"group_instance_id": None, "rebalance_timeout": -1},
    "consumer_group_member_metadata_value": {"rebalance_timeout_ms": -1},
    "classic_member_metadata": {"session_timeout_ms": 0},
    "streams_group_member_metadata_value": {"rebalance_timeout_ms": -1, "user_endpoint": None},
    "consumer_protocol_subscription": {"user_data": None, "generation_id": -1, "rack_id": None},
    "consumer_protocol_assignment": {"user_data": None},
    "register_broker_record": {
        "is_migrating_zk_broker": False,
        "fenced": True,
        "in_controlled_shutdown": False,
    },
    "partition_record": {"leader": -1},
    "producer_ids_record": {"broker_epoch": -1},
    "metadata_record": {"frame_version": 1},
    "remote_log_metadata_record": {"frame_version": 1},
    **{
        f"remote_log_segment_metadata_{name}": {"custom_metadata": None}
        for name in ("record", "update_record", "snapshot_record")
    },
}
"""Fields that need not be given, with what they hold then in Kafka's classes."""


def test_which_fields_need_not_be_given() -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, layout in plan().model.layouts.items():
        if layout.span.file.startswith(FOLDERS):
            for fp in plan().versions[name][-1].in_order:
                settled = fp.field.is_version or fp.field.const is not None or fp.field.hidden
                if (fp.default is not None or fp.field.absent is not None) and not settled:
                    found.setdefault(name, {})[fp.name] = ...
    wanted = {name: set(fields) for name, fields in DEFAULTS.items()}
    wanted["offset_commit_value"] -= {"expire_timestamp"}  # not in the last version
    assert {name: set(fields) for name, fields in found.items()} == wanted


ENUMS = {
    "consumer_offsets_record_type": {
        "LEGACY_OFFSET_COMMIT": 0,
        "OFFSET_COMMIT": 1,
        "GROUP_METADATA": 2,
        "CONSUMER_GROUP_METADATA": 3,
        "CONSUMER_GROUP_PARTITION_METADATA": 4,
        "CONSUMER_GROUP_MEMBER_METADATA": 5,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA": 6,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER": 7,
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT": 8,
        "SHARE_GROUP_MEMBER_METADATA": 10,
        "SHARE_GROUP_METADATA": 11,
        "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA": 12,
        "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER": 13,
        "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT": 14,
        "SHARE_GROUP_STATE_PARTITION_METADATA": 15,
        "CONSUMER_GROUP_REGULAR_EXPRESSION": 16,
        "STREAMS_GROUP_METADATA": 17,
        "STREAMS_GROUP_MEMBER_METADATA": 19,
        "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA": 20,
        "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER": 21,
        "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT": 22,
        "STREAMS_GROUP_TOPOLOGY": 23,
    },
    "transaction_state_record_type": {"TRANSACTION_LOG": 0},
    "share_group_state_record_type": {"SHARE_SNAPSHOT": 0, "SHARE_UPDATE": 1},
    "consumer_member_state": {
        "STABLE": 0,
        "UNREVOKED_PARTITIONS": 1,
        "UNRELEASED_PARTITIONS": 2,
        "UNKNOWN": 127,
    },
    "streams_member_state": {
        "STABLE": 1,
        "UNREVOKED_TASKS": 2,
        "UNRELEASED_TASKS": 3,
        "UNKNOWN": 127,
    },
    "transaction_status": {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
        "Dead": 6,
        "PrepareEpochFence": 7,
    },
    "delivery_state": {
        "AVAILABLE": 0,
        "ACQUIRED": 1,
        "ACKNOWLEDGED": 2,
        "ARCHIVING": 3,
        "ARCHIVED": 4,
    },
    "metadata_record_type": {
        "REGISTER_BROKER_RECORD": 0,
        "UNREGISTER_BROKER_RECORD": 1,
        "TOPIC_RECORD": 2,
        "PARTITION_RECORD": 3,
        "CONFIG_RECORD": 4,
        "PARTITION_CHANGE_RECORD": 5,
        "FENCE_BROKER_RECORD": 7,
        "UNFENCE_BROKER_RECORD": 8,
        "REMOVE_TOPIC_RECORD": 9,
        "DELEGATION_TOKEN_RECORD": 10,
        "USER_SCRAM_CREDENTIAL_RECORD": 11,
        "FEATURE_LEVEL_RECORD": 12,
        "CLIENT_QUOTA_RECORD": 14,
        "PRODUCER_IDS_RECORD": 15,
        "BROKER_REGISTRATION_CHANGE_RECORD": 17,
        "ACCESS_CONTROL_ENTRY_RECORD": 18,
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": 19,
        "NO_OP_RECORD": 20,
        "ZK_MIGRATION_STATE_RECORD": 21,
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": 22,
        "BEGIN_TRANSACTION_RECORD": 23,
        "END_TRANSACTION_RECORD": 24,
        "ABORT_TRANSACTION_RECORD": 25,
        "REMOVE_DELEGATION_TOKEN_RECORD": 26,
        "REGISTER_CONTROLLER_RECORD": 27,
        "CLEAR_ELR_RECORD": 28,
        "UNREGISTER_CONTROLLER_RECORD": 29,
    },
    "leader_recovery_state": {"NO_CHANGE": -1, "RECOVERED": 0, "RECOVERING": 1},
    "config_resource_type": {
        "TOPIC": 2,
        "BROKER": 4,
        "BROKER_LOGGER": 8,
        "CLIENT_METRICS": 16,
        "GROUP": 32,
    },
    "scram_mechanism": {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2},
    "security_protocol": {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3},
    "fencing_change": {"UNFENCE": -1, "NONE": 0, "FENCE": 1},
    "controlled_shutdown_change": {"NONE": 0, "IN_CONTROLLED_SHUTDOWN": 1},
    "acl_resource_type": {
        "TOPIC": 2,
        "GROUP": 3,
        "CLUSTER": 4,
        "TRANSACTIONAL_ID": 5,
        "DELEGATION_TOKEN": 6,
        "USER": 7,
    },
    "acl_pattern_type": {"LITERAL": 3, "PREFIXED": 4},
    "acl_operation": {
        "ALL": 2,
        "READ": 3,
        "WRITE": 4,
        "CREATE": 5,
        "DELETE": 6,
        "ALTER": 7,
        "DESCRIBE": 8,
        "CLUSTER_ACTION": 9,
        "DESCRIBE_CONFIGS": 10,
        "ALTER_CONFIGS": 11,
        "IDEMPOTENT_WRITE": 12,
        "CREATE_TOKENS": 13,
        "DESCRIBE_TOKENS": 14,
        "TWO_PHASE_COMMIT": 15,
    },
    "acl_permission_type": {"DENY": 2, "ALLOW": 3},
    "zk_migration_state": {"NONE": 0, "MIGRATION": 1, "PRE_MIGRATION": 2, "POST_MIGRATION": 3},
    "remote_log_metadata_record_type": {
        "REMOTE_LOG_SEGMENT_METADATA_RECORD": 0,
        "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD": 1,
        "REMOTE_PARTITION_DELETE_METADATA_RECORD": 2,
        "REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD": 3,
    },
    "remote_log_segment_state": {
        "COPY_SEGMENT_STARTED": 0,
        "COPY_SEGMENT_FINISHED": 1,
        "DELETE_SEGMENT_STARTED": 2,
        "DELETE_SEGMENT_FINISHED": 3,
    },
    "remote_partition_delete_state": {
        "DELETE_PARTITION_MARKED": 0,
        "DELETE_PARTITION_STARTED": 1,
        "DELETE_PARTITION_FINISHED": 2,
    },
}
"""The numbers of Kafka's enums (``CoordinatorRecordType``, ``MetadataRecordType``, ``TransactionState``, ``RecordState`` and
others of 4.4.0; ``ZkMigrationState`` of 3.9.0), without those that stand for anything or for nothing."""


def test_the_enums_are_those_of_kafka() -> None:
    ours = {
        name: {plan().spelling(v.name, v.spelled): v.value for v in enum.values}
        for name, enum in plan().model.enums.items()
        if enum.span.file.startswith(FOLDERS)
    }
    assert ours == ENUMS


USES = {
    "consumer_group_current_member_assignment_value.state": "consumer_member_state",
    "share_group_current_member_assignment_value.state": "consumer_member_state",
    "streams_group_current_member_assignment_value.state": "streams_member_state",
    "transaction_log_value.transaction_status": "transaction_status",
    "share_snapshot_value_state_batches.delivery_state": "delivery_state",
    "share_update_value_state_batches.delivery_state": "delivery_state",
    "partition_record.leader_recovery_state": "leader_recovery_state",
    "partition_change_record.leader_recovery_state": "leader_recovery_state",
    "config_record.resource_type": "config_resource_type",
    "user_scram_credential_record.mechanism": "scram_mechanism",
    "remove_user_scram_credential_record.mechanism": "scram_mechanism",
    "broker_registration_change_record.fenced": "fencing_change",
    "broker_registration_change_record.in_controlled_shutdown": "controlled_shutdown_change",
    "registered_endpoint.security_protocol": "security_protocol",
    "access_control_entry_record.resource_type": "acl_resource_type",
    "access_control_entry_record.pattern_type": "acl_pattern_type",
    "access_control_entry_record.operation": "acl_operation",
    "access_control_entry_record.permission_type": "acl_permission_type",
    "zk_migration_state_record.zk_migration_state": "zk_migration_state",
    "metadata_record.api_key": "metadata_record_type",
    "remote_log_metadata_record.api_key": "remote_log_metadata_record_type",
    "remote_log_segment_metadata_record.remote_log_segment_state": "remote_log_segment_state",
    "remote_log_segment_metadata_update_record.remote_log_segment_state": "remote_log_segment_state",
    "remote_log_segment_metadata_snapshot_record.remote_log_segment_state": "remote_log_segment_state",
    "remote_partition_delete_metadata_record.remote_partition_delete_state": "remote_partition_delete_state",
}
"""Fields whose numbers Kafka's code takes for an enum: ours."""


def test_which_fields_have_enums() -> None:
    """Keys have one more, whose only value is the type of the record."""
    ours = {
        f"{layout.name}.{field.name}": field.type.enum
        for layout in plan().model.layouts.values()
        if layout.span.file.startswith(FOLDERS)
        for field in layout.fields
        if isinstance(field.type, ScalarType) and field.type.enum and field.const is None
    }
    assert ours == USES
    for name in MESSAGES:
        if name.endswith("Key"):
            topic = "share_group_state" if name.startswith(("ShareSnapshot", "ShareUpdate")) else "consumer_offsets"  # fmt: skip
            topic = "transaction_state" if name.startswith("Transaction") else topic
            first = plans(name)[0].fields[0].field
            assert isinstance(first.type, ScalarType)
            assert first.type.enum == f"{topic}_record_type"
            expected = ENUMS[first.type.enum][layout_of(name).removesuffix("_key").upper()]
            assert first.const == layout_of(name).removesuffix("_key") or first.const == expected


CHOICES = {
    "consumer_offsets_key": ("consumer_offsets_record_type", "_key"),
    "consumer_offsets_value": ("consumer_offsets_record_type", "_value"),
    "transaction_state_key": ("transaction_state_record_type", "_key"),
    "transaction_state_value": ("transaction_state_record_type", "_value"),
    "share_group_state_key": ("share_group_state_record_type", "_key"),
    "share_group_state_value": ("share_group_state_record_type", "_value"),
    "metadata_body": ("metadata_record_type", ""),
    "remote_log_metadata_body": ("remote_log_metadata_record_type", ""),
}
"""The enum whose values are the cases of a choice, and what the names of the layouts add to theirs."""


def test_a_type_of_record_is_that_of_its_layout() -> None:
    found = {
        name: choice
        for name, choice in plan().model.choices.items()
        if choice.span.file.startswith(FOLDERS)
    }
    assert set(found) == set(CHOICES)
    for name, choice in found.items():
        enum, suffix = CHOICES[name]
        values = {v.name: v.value for v in plan().model.enums[enum].values}
        cases = {values.get(str(case), case): ref.layout for case, ref in choice.cases}
        assert cases == {number: value + suffix for value, number in values.items()}
        assert (choice.by, choice.given) == (("type", None) if suffix == "_key" else (None, enum))
