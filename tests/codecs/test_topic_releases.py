"""When each message of Kafka's own topics came, and by which proposal.

``tests/data/topic_releases.jsonl`` was made from the definitions in Kafka's sources (3.0.0 to 3.9.0) and in its jars (4.0.0 to
4.4.0): the release from which on a version of a message has had the fields that it has in 4.4.0, tagged ones aside, and
the release that brought each tagged field. What is older is in Kafka's sources by hand (``GroupMetadataManager``,
``OffsetManager``, ``TransactionLog``), proposals are those that its definitions and its release notes name.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecgen.schema.model import Layout
from codecgen.schema.types import Since
from tests.brokers.message_shapes import layout_of, plan
from tests.paths import ROOT

LINES = (ROOT / "tests" / "data" / "topic_releases.jsonl").read_text("utf-8").splitlines()
MESSAGES: dict[str, dict[str, Any]] = {m["message"]: m for m in map(json.loads, LINES)}

OLDER = {
    "legacy_offset_commit_key": "0.8.2",
    "legacy_offset_commit_value": "0.8.2",
    "offset_commit_key": "0.9.0",
    "offset_commit_value@0": "0.8.2",
    "offset_commit_value@1": "0.9.0",
    "offset_commit_value@2": "2.1.0",
    "offset_commit_value@3": "2.1.0",
    "group_metadata_key": "0.9.0",
    "group_metadata_value@0": "0.9.0",
    "group_metadata_value@1": "0.10.1",
    "group_metadata_value@2": "2.1.0",
    "group_metadata_value@3": "2.3.0",
    "transaction_log_key": "0.11.0",
    "transaction_log_value@0": "0.11.0",
    "consumer_protocol_subscription@0": "0.9.0",
    "consumer_protocol_subscription@1": "2.4.0",
    "consumer_protocol_subscription@2": "3.4.0",
    "consumer_protocol_subscription@3": "3.4.0",
    "consumer_protocol_assignment@0": "0.9.0",
    "consumer_protocol_assignment@1": "2.4.0",
    "consumer_protocol_assignment@2": "3.4.0",
    "consumer_protocol_assignment@3": "3.4.0",
}
"""What was there before Kafka's sources had such definitions of it, or under another name."""

WRITTEN_SINCE = {"consumer_group_": "3.7.0", "share_group_": "4.0.0"}
"""Definitions that were there before a broker wrote them: groups of both kinds came as early access."""

PROPOSALS: dict[str, tuple[int, ...]] = {
    "legacy_offset_commit_key": (),
    "legacy_offset_commit_value": (),
    "offset_commit_key": (),
    "offset_commit_value": (),
    "offset_commit_value@2": (211,),
    "offset_commit_value@3": (320,),
    "offset_commit_value@4": (915,),
    "offset_commit_value.topic_id": (848,),
    "group_metadata_key": (),
    "group_metadata_value": (),
    "group_metadata_value@1": (62,),
    "group_metadata_value@2": (211,),
    "group_metadata_value@3": (345,),
    "group_metadata_value@4": (915,),
    "consumer_protocol_subscription": (),
    "consumer_protocol_assignment": (),
    **{
        f"consumer_protocol_{name}@{version}": (proposal,)
        for name in ("subscription", "assignment")
        for version, proposal in ((1, 429), (2, 792), (3, 881))
    },
    "consumer_group_metadata_value.metadata_hash": (1101,),
    "consumer_group_assigned_partitions.assignment_epochs": (1251,),
    "share_group_metadata_value": (932, 1101),
    "transaction_log_value@1": (915, 890),
    "transaction_log_value.": (890,),
    "share_snapshot_value.delivery_complete_count": (1226,),
    "share_update_value.delivery_complete_count": (1226,),
    "register_broker_record@1": (841,),
    "register_broker_record@2": (866,),
    "register_broker_record@3": (858,),
    "register_broker_record@4": (1066,),
    "broker_registration_change_record@1": (841,),
    "broker_registration_change_record@2": (858,),
    "broker_registration_change_record@3": (1066,),
    "partition_record@1": (858,),
    "partition_record@2": (966,),
    "partition_change_record@1": (858,),
    "partition_change_record@2": (966,),
    "partition_record.leader_recovery_state": (704,),
    "partition_change_record.leader_recovery_state": (704,),
    "delegation_token_record": (),
    "remove_delegation_token_record": (),
    "user_scram_credential_record": (900,),
    "remove_user_scram_credential_record": (900,),
    "feature_level_record": (778,),
    "producer_ids_record": (730,),
    "access_control_entry_record": (801,),
    "remove_access_control_entry_record": (801,),
    "no_op_record": (835,),
    "zk_migration_state_record": (866,),
    "begin_transaction_record": (868,),
    "end_transaction_record": (868,),
    "abort_transaction_record": (868,),
    "register_controller_record": (919,),
    "clear_elr_record": (966,),
    "unregister_controller_record": (),
    "remote_log_segment_metadata_record.txn_index_empty": (1058,),
    "remote_log_segment_metadata_snapshot_record.txn_index_empty": (1058,),
    "remote_": (405,),
    "topic_id_partition": (405,),
    "segment_leader_epoch": (405,),
    "consumer_group_": (848,),
    "classic_member_metadata": (848,),
    "share_": (932,),
    "streams_group_": (1071,),
    "transaction_log_": (98,),
    "": (631,),
}
"""The proposals of a layout, a version or a tagged field; or of all that have names that begin so, without a dot or an @.
What is tagged has none of its own otherwise."""


def proposals(name: str) -> tuple[int, ...]:
    if name in PROPOSALS:
        return PROPOSALS[name]
    base, dot, _ = name.partition(".")
    if dot:
        return PROPOSALS.get(f"{base}.", ())
    found = max((n for n in PROPOSALS if base.partition("@")[0].startswith(n)), key=len)
    return PROPOSALS[found]


def release(since: Since | None) -> str | None:
    return None if since is None else since.release


def numbers(since: Since | None) -> Any:
    references: dict[str, Any] = {} if since is None else dict(since.references)
    return references.get("kip", ())


def later(one: str, other: str) -> str:
    order = list(plan().manifest.releases)
    return max(one, other, key=order.index)


def expected(message: str, version: int) -> str:
    """The release that first wrote a version of a message as it is today."""
    name = layout_of(message)
    for key in (name, f"{name}@{version}"):
        if key in OLDER:
            return OLDER[key]
    found: str = MESSAGES[message]["versions"][str(version)]
    if found == "3.9.0":  # share groups, of which this release knows the records but has no groups
        found = "4.0.0"
    for prefix, floor in WRITTEN_SINCE.items():
        if name.startswith(prefix):
            found = later(found, floor)
    return found


@pytest.mark.parametrize("message", MESSAGES)
def test_the_release_that_first_had_a_message(message: str) -> None:
    layout = plan().model.layouts[layout_of(message)]
    first = min(map(int, MESSAGES[message]["versions"]))
    assert release(layout.since) == expected(message, first)
    assert numbers(layout.since) == proposals(layout.name)


@pytest.mark.parametrize("message", [m for m in MESSAGES if len(MESSAGES[m]["versions"]) > 1])
def test_the_release_that_first_had_a_version(message: str) -> None:
    layout = plan().model.layouts[layout_of(message)]
    assert list(layout.version_notes) == list(map(int, MESSAGES[message]["versions"]))
    for version, (since, _) in layout.version_notes.items():
        name = f"{layout.name}@{version}"
        assert release(since) == expected(message, version), name
        wanted = proposals(layout.name) if version == 0 else PROPOSALS.get(name, ())
        assert numbers(since) == wanted, name


def test_until_when_a_version_was_written() -> None:
    until = {
        f"{layout.name}@{version}": release(until)
        for layout in map(plan().model.layouts.__getitem__, map(layout_of, MESSAGES))
        for version, (_, until) in layout.version_notes.items()
        if until is not None
    }
    assert until == {"offset_commit_value@0": "0.9.0"}


@pytest.mark.parametrize("message", [m for m in MESSAGES if MESSAGES[m]["tagged"]])
def test_the_release_that_brought_a_tagged_field(message: str) -> None:
    """A tagged field says so itself where it is younger than the versions that have it."""
    for way, brought in MESSAGES[message]["tagged"].items():
        layout = plan().model.layouts[layout_of(message)]
        *around, name = way.split(".")
        for step in around:
            layout = held(layout, step)
        field = next(f for f in layout.fields if f.name == name and f.tag is not None)
        versions = layout.all_versions()
        low = next(v for v in versions if field.versions is None or v in field.versions)
        base = release(layout.since)
        if low is not None and low in layout.version_notes:
            base = release(layout.version_notes[low][0])
        where = f"{layout.name}.{name}"
        assert (release(field.since) or base) == brought, where
        assert numbers(field.since) == (proposals(where) if field.since else ()), where


def held(layout: Layout, step: str) -> Layout:
    """The layout of a field or of the elements of an array."""
    type_: Any = next(f for f in layout.fields if f.name == step).type
    ref = getattr(type_, "element", None) or type_.layout
    found: Layout = plan().model.layouts[ref.layout]
    return found


SHARED = {
    "consumer_group_assigned_partitions": "3.7.0",
    "consumer_group_partition_racks": "3.8.0",
    "classic_member_metadata": "3.8.0",
    "share_group_state_topic": "4.1.0",
    "streams_group_current_tasks": "4.1.0",
    "streams_group_target_tasks": "4.1.0",
    "streams_group_topic": "4.1.0",
    "registered_endpoint": "3.0.0",
    "registered_feature": "3.0.0",
    "remote_log_segment_id": "3.0.0",
    "topic_id_partition": "3.0.0",
    "segment_leader_epoch": "3.0.0",
    "metadata_record": "3.0.0",
    "remote_log_metadata_record": "3.0.0",
}
"""Layouts that messages hold, and the frames."""


def test_the_release_that_first_had_what_messages_hold() -> None:
    folders = ("coordinator/", "metadata/", "remote/")
    others = {
        layout.name: layout
        for layout in plan().model.layouts.values()
        if layout.span.file.startswith(folders) and not layout.is_local
    }
    for message in MESSAGES:
        others.pop(layout_of(message))
    assert {name: release(layout.since) for name, layout in others.items()} == SHARED
    for name, layout in others.items():
        assert numbers(layout.since) == proposals(name), name


@pytest.mark.parametrize("enum", [n for n in plan().model.enums if n.endswith("_record_type") and n != "control_record_type"])  # fmt: skip
def test_a_type_of_record_came_with_its_message(enum: str) -> None:
    layouts = plan().model.layouts
    for value in plan().model.enums[enum].values:
        layout = layouts.get(value.name) or layouts[f"{value.name}_key"]
        assert value.since == layout.since or (release(value.since), numbers(value.since)) == (
            release(layout.since),
            numbers(layout.since),
        ), value.name


def test_the_next_producer_id_had_another_name() -> None:
    [field] = [f for f in plan().model.layouts["producer_ids_record"].fields if f.formerly]
    assert field.formerly is not None
    assert (field.name, field.formerly.name, field.formerly.until) == (
        *("next_producer_id", "producer_ids_end", "3.2.0"),
    )
