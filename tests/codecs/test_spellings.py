"""Names as Kafka writes them, and units, beside what Kafka's classes and its documentation of the message format say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from codecgen.schema.model import Field
from codecgen.schema.types import ScalarType
from tests.support.schema_models import model

CONSTANTS = {
    "acl_operation": "ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT",
    "acl_pattern_type": "LITERAL PREFIXED",
    "acl_permission_type": "DENY ALLOW",
    "acl_resource_type": "TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER",
    "compression": "none gzip snappy lz4 zstd",
    "config_resource_type": "TOPIC BROKER BROKER_LOGGER CLIENT_METRICS GROUP",
    "consumer_member_state": "STABLE UNREVOKED_PARTITIONS UNRELEASED_PARTITIONS UNKNOWN",
    "consumer_offsets_record_type": "LEGACY_OFFSET_COMMIT OFFSET_COMMIT GROUP_METADATA CONSUMER_GROUP_METADATA CONSUMER_GROUP_PARTITION_METADATA CONSUMER_GROUP_MEMBER_METADATA CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT SHARE_GROUP_MEMBER_METADATA SHARE_GROUP_METADATA SHARE_GROUP_TARGET_ASSIGNMENT_METADATA SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT SHARE_GROUP_STATE_PARTITION_METADATA CONSUMER_GROUP_REGULAR_EXPRESSION STREAMS_GROUP_METADATA STREAMS_GROUP_MEMBER_METADATA STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT STREAMS_GROUP_TOPOLOGY",
    "control_record_type": "ABORT COMMIT LEADER_CHANGE SNAPSHOT_HEADER SNAPSHOT_FOOTER KRAFT_VERSION KRAFT_VOTERS",
    "controlled_shutdown_change": "NONE IN_CONTROLLED_SHUTDOWN",
    "delivery_state": "AVAILABLE ACQUIRED ACKNOWLEDGED ARCHIVING ARCHIVED",
    "fencing_change": "UNFENCE NONE FENCE",
    "kip_98_control_message_type": "COMMIT ABORT",
    "leader_recovery_state": "NO_CHANGE RECOVERED RECOVERING",
    "metadata_record_type": "REGISTER_BROKER_RECORD UNREGISTER_BROKER_RECORD TOPIC_RECORD PARTITION_RECORD CONFIG_RECORD PARTITION_CHANGE_RECORD FENCE_BROKER_RECORD UNFENCE_BROKER_RECORD REMOVE_TOPIC_RECORD DELEGATION_TOKEN_RECORD USER_SCRAM_CREDENTIAL_RECORD FEATURE_LEVEL_RECORD CLIENT_QUOTA_RECORD PRODUCER_IDS_RECORD BROKER_REGISTRATION_CHANGE_RECORD ACCESS_CONTROL_ENTRY_RECORD REMOVE_ACCESS_CONTROL_ENTRY_RECORD NO_OP_RECORD ZK_MIGRATION_STATE_RECORD REMOVE_USER_SCRAM_CREDENTIAL_RECORD BEGIN_TRANSACTION_RECORD END_TRANSACTION_RECORD ABORT_TRANSACTION_RECORD REMOVE_DELEGATION_TOKEN_RECORD REGISTER_CONTROLLER_RECORD CLEAR_ELR_RECORD UNREGISTER_CONTROLLER_RECORD",
    "remote_log_metadata_record_type": "REMOTE_LOG_SEGMENT_METADATA_RECORD REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD REMOTE_PARTITION_DELETE_METADATA_RECORD REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD",
    "remote_log_segment_state": "COPY_SEGMENT_STARTED COPY_SEGMENT_FINISHED DELETE_SEGMENT_STARTED DELETE_SEGMENT_FINISHED",
    "remote_partition_delete_state": "DELETE_PARTITION_MARKED DELETE_PARTITION_STARTED DELETE_PARTITION_FINISHED",
    "scram_mechanism": "SCRAM-SHA-256 SCRAM-SHA-512",
    "security_protocol": "PLAINTEXT SSL SASL_PLAINTEXT SASL_SSL",
    "share_group_state_record_type": "SHARE_SNAPSHOT SHARE_UPDATE",
    "streams_member_state": "STABLE UNREVOKED_TASKS UNRELEASED_TASKS UNKNOWN",
    "timestamp_type": "CreateTime LogAppendTime",
    "transaction_state_record_type": "TRANSACTION_LOG",
    "transaction_status": "Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead PrepareEpochFence",
    "zk_migration_state": "NONE MIGRATION PRE_MIGRATION POST_MIGRATION",
}  # fmt: skip
"""The constants of Kafka's enums by the enum here, in the order of the schemas; where Kafka prints others (CompressionType,
TimestampType, TransactionState, ScramMechanism), what it prints."""
OWN_NAMES = {"leader_recovery_state": {"unchanged": "no_change"}}
"""Values that have another name here than in Kafka."""

DOCUMENTED = {
    "consumer_group_regular_expression_value.image_version": "version",
    "header.key": "headerKey",
    "header.value": "Value",
    "kip_98_message.crc": "CRC",
    "kip_98_message.key_length": "KeyLen",
    "kip_98_message_set.crc": "CRC",
    "kip_98_message_set.pid": "PID",
    "kraft_version_record.kraft_version": "kRaftVersion",
    "message.magic": "magic_byte",
    "message.message_size": "message_size",
    "message.messages": "value",
    "producer_snapshot.entries": "producerEntries",
    "producer_snapshot_entry.producer_epoch": "epoch",
    "record.headers": "Headers",
    "record_batch.record_count": "recordsCount",
    "voters_record_voter.kraft_version_feature": "kRaftVersionFeature",
}
"""Fields whose name in Kafka's documents is not the one here in camel case."""
TIMES = ("timestamp", "timestamp_ms", "timeout", "timeout_ms", "timestamp_delta", "delete_horizon")
"""How names of times and durations end; Kafka has all of them in milliseconds."""


def fields() -> Iterator[tuple[str, Field]]:
    """Yield each field with its place, `layout.field`; fields of elements are in layouts of their own."""
    for layout in model().layouts.values():
        for one in layout.fields:
            yield f"{layout.name}.{one.name}", one


def test_every_enum_is_here() -> None:
    kafkas = {
        enum.name for enum in model().enums.values() if not enum.span.file.startswith("wire/")
    }
    assert set(CONSTANTS) == kafkas


@pytest.mark.parametrize("name", CONSTANTS)
def test_values_are_spelled_as_kafka_does(name: str) -> None:
    values = model().enums[name].values
    spellings = [value.spelled or value.name for value in values]
    assert spellings == CONSTANTS[name].split()
    assert [value.name for value in values] == [own_name(name, spelling) for spelling in spellings]


def own_name(enum: str, spelling: str) -> str:
    """Return the spelling in lower case, its words joined by `_`."""
    in_camel_case = any(map(str.islower, spelling))
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", spelling) if in_camel_case else spelling
    name = words.replace("-", "_").lower()
    return next((own for own, kafkas in OWN_NAMES.get(enum, {}).items() if kafkas == name), name)


def test_fields_are_spelled_as_in_kafkas_documents() -> None:
    assert {place: one.spelled for place, one in fields() if one.spelled} == DOCUMENTED


def units() -> Iterator[tuple[str, str, str | None]]:
    """Yield place, type and unit of each field and derived value that is a number, and of each column of a view."""
    for place, one in fields():
        if isinstance(one.type, ScalarType):
            yield place, one.type.name, one.unit
    for layout in model().layouts.values():
        yield from ((f"{layout.name}.{one.name}", one.type, one.unit) for one in layout.derived)
    for view in model().views.values():
        yield from ((f"{view.name}.{one.name}", one.type, one.unit) for one in view.columns)


def test_times_are_in_milliseconds_and_nothing_else_has_a_unit() -> None:
    found = list(units())
    assert len(found) > 400
    for place, type_, unit in found:
        # The type timestamp_ms of a column says it already.
        is_time = place.endswith(TIMES) and type_ != "timestamp_ms"
        assert unit == ("ms" if is_time else None), place


def test_titles() -> None:
    assert model().manifest.title == "Kafka's record formats"
    (draft,) = (one for one in model().layouts.values() if one.overhead)
    assert draft.overhead is not None
    titles = {column.layout.layout: column.title for column in draft.overhead.columns}
    assert titles == {"message": "Old format", "kip_98_message_set": "New format"}
