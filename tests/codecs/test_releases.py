"""When each part of the formats came, and by which proposal, beside what Kafka's release notes and proposals say.

- KIP-31, KIP-32 (message format 1): 0.10.0. KIP-33 (time index): 0.10.1. Format 0: 0.8.0, with offset indexes.
- LZ4: 0.8.2. zstd, KIP-110: 2.1.0.
- KIP-98 (record batches, transactions): 0.11.0; KIP-82 (headers): 0.11.0.
- KIP-482 (tagged fields): 2.4.0.
- KIP-595 and KIP-630 were previews until 2.8; control record types 2 to 4 have their numbers since 3.0.0.
- KIP-534 (delete horizon, KAFKA-8522): 3.1.0, which also renamed firstTimestamp to baseTimestamp.
- KIP-101 (leader epochs): 0.11.0. KIP-516 (topic ids): 2.8.0. KIP-858 (ids of log directories): 3.7.0.
- KIP-853: KRAFT_VERSION and KRAFT_VOTERS are in ControlRecordType since 3.8.0.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Any

import pytest

from codecgen.plan import as_of, make_plan
from codecgen.plan.as_of import release_key
from codecgen.schema.model import Model
from codecgen.schema.types import BitsType, Since
from tests.paths import SCHEMAS
from tests.support.message_format_pages import (
    RELEASES,
    Difference,
    compare,
    misprints,
    page,
    plan_of,
)
from tests.support.schema_models import model

FIRST: dict[str, tuple[str, tuple[int, ...]]] = {
    "message": ("0.8.0", ()),
    "message@0": ("0.8.0", ()),
    "message@1": ("0.10.0", (31, 32)),
    "offset_index": ("0.8.0", ()),
    "offset_index_entry": ("0.8.0", ()),
    "time_index": ("0.10.1", (33,)),
    "time_index_entry": ("0.10.1", (33,)),
    "transaction_index": ("0.11.0", (98,)),
    "transaction_index_entry": ("0.11.0", (98,)),
    "producer_snapshot": ("0.11.0", (98,)),
    "producer_snapshot_entry": ("0.11.0", (98,)),
    "clean_shutdown": ("0.8.0", ()),
    "offset_checkpoint": ("0.8.0", ()),
    "leader_epoch_checkpoint": ("0.11.0", (101,)),
    "partition_metadata": ("2.8.0", (516,)),
    "meta_properties": ("0.8.2", ()),
    "meta_properties.directory_id": ("3.7.0", (858,)),
    "record_batch": ("0.11.0", (98,)),
    "record": ("0.11.0", (98,)),
    "header": ("0.11.0", (82,)),
    "control_record_key": ("0.11.0", (98,)),
    "end_txn_marker": ("0.11.0", (98,)),
    "leader_change_message": ("3.0.0", (595,)),
    "voter": ("3.0.0", (595,)),
    "snapshot_header_record": ("3.0.0", (630,)),
    "snapshot_footer_record": ("3.0.0", (630,)),
    "kraft_version_record": ("3.8.0", (853,)),
    "voters_record": ("3.8.0", (853,)),
    "voters_record_voter": ("3.8.0", (853,)),
    "voters_record_endpoint": ("3.8.0", (853,)),
    "kraft_version_feature": ("3.8.0", (853,)),
    "compression.gzip": ("0.8.0", ()),
    "compression.snappy": ("0.8.0", ()),
    "compression.lz4": ("0.8.2", ()),
    "compression.zstd": ("2.1.0", (110,)),
    "control_record_type.abort": ("0.11.0", ()),
    "control_record_type.commit": ("0.11.0", ()),
    "control_record_type.leader_change": ("3.0.0", (595,)),
    "control_record_type.snapshot_header": ("3.0.0", (630,)),
    "control_record_type.snapshot_footer": ("3.0.0", (630,)),
    "control_record_type.kraft_version": ("3.8.0", (853,)),
    "control_record_type.kraft_voters": ("3.8.0", (853,)),
    "record_batch.is_control": ("0.11.0", ()),
    "record_batch.has_delete_horizon": ("3.1.0", (534,)),
    "record_batch.delete_horizon": ("3.1.0", ()),
}
"""The release that first had it, and the proposals. A part of something has none of its own when it came with it."""

WITHOUT_A_CHANGE = {"1.0.0", "2.0.0", "2.7.0"}
"""Releases that `--as-of` takes although no format changed in them: the first ones of lines 1 and 2, and the last one whose page has a
misprint (test_until_when_the_page_had_varint)."""

WRITTEN_UNTIL = {0: "0.10.0", 1: "0.11.0"}
"""Format 0 was written by 0.8.0 to 0.9, format 1 by 0.10.0 to 0.10.2."""


def parts(found: Model) -> dict[str, Since | None]:
    """What is there in a model, with its own ``since``."""
    out: dict[str, Since | None] = {}
    for layout in found.layouts.values():
        out[layout.name] = layout.since
        for version, (since, _) in layout.version_notes.items():
            out[f"{layout.name}@{version}"] = since
        for value in layout.derived:
            out[f"{layout.name}.{value.name}"] = value.since
        for field in layout.fields:
            if isinstance(field.type, BitsType):
                for member in field.type.members:
                    out[f"{layout.name}.{member.name}"] = member.since
    for text in found.texts.values():
        out[text.name] = text.since
        out |= {f"{text.name}.{key.name}": key.since for key in text.properties}
    for enum in found.enums.values():
        for value in enum.values:
            out[f"{enum.name}.{value.name}"] = value.since
    return out


@cache
def parts_as_of(release: str) -> frozenset[str]:
    return frozenset(parts(as_of(model(), release)))


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FIRST)
def test_the_release_that_first_had_it(name: str) -> None:
    release, proposals = FIRST[name]
    every = model().manifest.releases
    there = [r for r in every if name in parts_as_of(r)]
    assert there == list(every[list(every).index(release) :])
    since = parts(model())[name]
    references: Any = dict(since.references) if since else {}
    assert references.get("kip", ()) == proposals


def test_all_layouts_and_values_are_listed() -> None:
    """But for the draft, what others write into values, names that came with the enum or the layout that they are in, and
    what lies in Kafka's own topics, which test_topic_releases is about."""
    listed = {name.partition("@")[0] for name in FIRST}
    apart = ("drafts/", "wire/", "coordinator/", "metadata/", "remote/")
    layouts = model().layouts.values()
    assert {one.name for one in layouts if not one.span.file.startswith(apart)} <= listed
    assert set(model().texts) <= listed
    for enum in ("compression", "control_record_type"):
        values = {f"{enum}.{v.name}" for v in model().enums[enum].values}
        assert values - {"compression.none"} <= listed


def test_releases_that_can_be_asked_for() -> None:
    """They are in the order in which Kafka published them; a release that a schema names without being listed is an error of check."""
    releases = model().manifest.releases
    assert list(releases) == sorted(releases, key=release_key)
    texts = (path.read_text(encoding="utf-8") for path in SCHEMAS.rglob("*.yaml"))
    lines = [line for text in texts for line in text.splitlines()]
    facts = "\n".join(line for line in lines if not line.startswith(("releases:", "  as_of:")))
    named = set(re.findall(r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])", facts))
    assert set(releases) - named == WITHOUT_A_CHANGE


def test_the_draft_is_that_of_kip_98() -> None:
    drafts = {name: layout.draft for name, layout in model().layouts.items() if layout.draft}
    assert set(drafts) == {"kip_98_message_set", "kip_98_message", "kip_98_control_message_key"}
    assert {draft.references for draft in drafts.values()} == {(("kip", (98,)),)}


def test_until_when_messages_were_written() -> None:
    notes = model().layouts["message"].version_notes
    assert {version: until.release for version, (_, until) in notes.items()} == WRITTEN_UNTIL


@pytest.mark.parametrize(
    ("release", "name"),
    [("2.8.0", "firstTimestamp"), ("3.0.0", "firstTimestamp"), ("3.1.0", "baseTimestamp")],
)
def test_the_base_timestamp_was_the_first_one(release: str, name: str) -> None:
    plan = make_plan(as_of(model(), release), release)
    fields = {f.name: f for f in plan.model.layouts["record_batch"].fields}
    assert plan.spelling("base_timestamp", fields["base_timestamp"].spelled) == name


def test_a_misprint_of_a_version_is_that_versions() -> None:
    """The page of format 0 leaves LZ4 out; that of format 1 has it. A CRC is wrong in both."""
    checked = set()
    for release in RELEASES:
        listed = page(release)
        differences = {(d.where, d.version) for d in compare(plan_of(model(), release), listed)}
        for name, (where, misprint) in product(listed, misprints(model()).items()):
            layout, at, version = name.partition("@")
            if at and where.startswith(f"{layout}."):
                one = Difference(where, misprint.shown, misprint, int(version))
                assert one.excused(release) == ((where, int(version)) in differences), one
                checked.add((where, int(version)))
    assert checked == {
        (f"message.{where}", version)
        for where in ("crc", "attributes.compression")
        for version in (0, 1)
    }


@pytest.mark.parametrize(("release", "type_"), [("2.4.0", "varint"), ("2.7.0", "varint"), ("2.8.0", "varlong")])  # fmt: skip
def test_until_when_the_page_had_varint(release: str, type_: str) -> None:
    """timestampDelta on the pages "Message Format" of 2.4, 2.7 and 2.8: pull request 8870 mended it after 2.7 was cut."""
    (misprint,) = (
        m for where, m in misprints(model()).items() if where == "record.timestamp_delta"
    )
    difference = Difference("record.timestamp_delta", "varint", misprint, None)
    assert difference.excused(release) == (type_ == "varint")
