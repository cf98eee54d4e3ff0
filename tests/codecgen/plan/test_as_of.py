"""Models as of a release: what came later is not there, and old names are back."""

from __future__ import annotations

import pytest

from codecgen.check import PASSES
from codecgen.diagnostics import render
from codecgen.plan import as_of, make_plan
from codecgen.plan.as_of import exists_at, release_key
from codecgen.schema.lookup import enum_uses
from codecgen.schema.model import Model
from codecgen.schema.types import Since
from codecgen.targets.registry import TARGETS
from tests.codecgen.schemas import model_of, our_model

OURS = our_model()


def bits(model: Model, layout: str, field: str) -> list[str]:
    return [
        m.name
        for f in model.layouts[layout].fields
        if f.name == field
        for m in getattr(f.type, "members", ())
    ]


def values(model: Model, enum: str) -> list[str]:
    return [v.name for v in model.enums[enum].values]


def spelled(model: Model, layout: str, field: str) -> str | None:
    plan = make_plan(model)
    return next(
        plan.spelling(f.name, f.spelled) for f in model.layouts[layout].fields if f.name == field
    )


def test_no_release_is_the_model_itself() -> None:
    assert as_of(OURS, None) is OURS


def test_releases_are_numbers() -> None:
    releases = ["0.8.0", "0.10.0", "0.11", "1", "2.1.0", "2.10"]
    assert sorted(releases, key=release_key) == releases
    assert release_key("2.1") == release_key("2.1.0.0")
    assert exists_at(Since("2.1.0"), "2.1")
    assert not exists_at(Since("2.10"), "2.9")
    assert exists_at(None, "0") and exists_at(Since(), "0")


def test_kafka_0_8_has_message_version_0_alone() -> None:
    old = as_of(OURS, "0.8.0")
    own = {layout.name for layout in old.layouts.values() if layout.span.file[:5] != "wire/"}
    assert own == {"message", "offset_index", "offset_index_entry", "clean_shutdown"}
    assert [p.version for p in make_plan(old).versions["message"]] == [0]
    assert values(old, "compression") == ["none", "gzip", "snappy"]
    enums = {enum.name for enum in old.enums.values() if enum.span.file[:5] != "wire/"}
    assert enums == {"compression", "timestamp_type"}
    assert [key for key, _ in old.choices["log_entry"].cases] == [0]
    assert "control_record_value" not in old.choices


def test_kafka_0_10_has_both_versions_of_messages() -> None:
    plan = make_plan(as_of(OURS, "0.10.0"))
    assert [p.version for p in plan.versions["message"]] == [0, 1]
    assert values(plan.model, "compression") == ["none", "gzip", "snappy", "lz4"]


def test_kafka_0_11_has_record_batches_without_zstd() -> None:
    old = as_of(OURS, "0.11.0")
    assert values(old, "compression") == ["none", "gzip", "snappy", "lz4"]
    assert bits(old, "record_batch", "attributes") == [
        "compression",
        "timestamp_type",
        "is_transactional",
        "is_control",
        "unused",
    ]
    assert spelled(old, "record_batch", "base_timestamp") == "firstTimestamp"
    assert [key for key, _ in old.choices["control_record_value"].cases] == ["abort", "commit"]
    assert "delete_horizon" not in [d.name for d in old.layouts["record_batch"].derived]
    assert not [name for name in old.layouts if name.startswith("kip_98")]


def test_kafka_2_1_has_zstd_and_3_1_the_delete_horizon() -> None:
    assert "zstd" in values(as_of(OURS, "2.1.0"), "compression")
    assert "has_delete_horizon" not in bits(as_of(OURS, "3.0.0"), "record_batch", "attributes")
    new = as_of(OURS, "3.1.0")
    assert "has_delete_horizon" in bits(new, "record_batch", "attributes")
    assert spelled(new, "record_batch", "base_timestamp") == "baseTimestamp"


def test_offsets_do_not_change_with_releases() -> None:
    """What was added to record batches took bits that were there."""
    of_today = [
        (f.name, f.offset, f.size) for f in make_plan(OURS).versions["record_batch"][0].fields
    ]
    old = make_plan(as_of(OURS, "0.11.0")).versions["record_batch"][0]
    assert [(f.name, f.offset, f.size) for f in old.fields] == of_today


@pytest.mark.share(27, ci=4)
@pytest.mark.parametrize("release", OURS.manifest.releases)
def test_every_release_is_sound_and_can_be_generated(release: str) -> None:
    model = as_of(OURS, release)
    for layout in model.layouts.values():
        assert all(ref.layout in model.layouts for ref in model.references(layout))
        assert all(enum in model.enums for _, enum, _ in enum_uses(layout))
    # Fields of later versions stay where they are; choices and freedoms speak of today's formats.
    today = {"versions", "choices", "freedoms"}
    found = [d for check in PASSES if check.name not in today for d in check.run(model)]
    assert render(found, model.files) == ""
    plan = make_plan(model, release)
    for name in TARGETS.keys() - {"docs"}:
        emitted = TARGETS[name](plan)
        assert not emitted.diagnostics
        for path, text in emitted.files.items():
            if path.endswith(".py"):
                compile(text, path, "exec")


@pytest.mark.share(27, ci=4)
@pytest.mark.parametrize("release", OURS.manifest.releases)
def test_every_release_has_its_pages(release: str) -> None:
    emitted = TARGETS["docs"](make_plan(as_of(OURS, release), release))
    assert emitted.files and not emitted.diagnostics


PARTS = """
layout: holder
since: {app: 1.0}
fields:
  a: u8
  part: {layout: part, since: {app: 1.1}}
---
layout: part
since: {app: 1.1}
fields: {b: u8}
---
layout: later
since: {app: 1.0}
fields:
  parts: {array: part, count: u8, since: {app: 1.1}}
  c: {type: u8, enum: kind, only: [old, new], since: {app: 1.1}}
---
enums: {kind: {values: {old: 0, new: {value: 1, since: {app: 2.0}}}}}
"""


COMPARED = """
layout: packet
since: {app: 1.0}
versions: 0-1
version_notes: {0: {since: {app: 1.0}}, 1: {since: {app: 2.0}}}
fields:
  codec: {type: u8, enum: codecs}
  body:
    array: part
    until: end
    compressed:
      {by: codec, limit: 9, except: [lz4, snappy], variants: {snappy: {write: xerial, read: xerial}}}
examples:
  - {name: zero, version: 0, build: true, values: {codec: none, body: []}}
  - {name: one, version: 1, build: true, values: {codec: none, body: []}}
documentation:
  overhead:
    sizes: [1]
    columns:
      - {title: Old, layout: part, each: {}}
      - {title: New, layout: later, each: {}}
---
layout: part
fields: {x: u8}
---
layout: later
since: {app: 2.0}
fields: {x: u8}
---
enums: {codecs: {values: {none: 0, lz4: 1, snappy: {value: 2, since: {app: 2.0}}}}}
"""


def test_examples_tables_and_codecs_come_and_go() -> None:
    model = model_of(COMPARED)
    old = as_of(model, "1.0").layouts["packet"]
    assert [e.name for e in old.examples] == ["zero"]
    assert list(old.version_notes) == [0]
    compression = getattr(old.fields[1].type, "compression", None)
    assert compression is not None
    assert (compression.excluded, compression.variants) == (("lz4",), ())
    assert old.overhead is not None
    assert [c.title for c in old.overhead.columns] == ["Old"]
    assert as_of(model, "2.0").layouts == model.layouts


def test_fields_layouts_and_values_come_and_go() -> None:
    model = model_of(PARTS)
    assert set(as_of(model, "0.9").layouts) == set()
    oldest = as_of(model, "1.0")
    assert {name: [f.name for f in x.fields] for name, x in oldest.layouts.items()} == {
        "holder": ["a"],
        "later": [],
    }
    assert dict(oldest.enums) == {}
    middle = as_of(model, "1.1")
    kind = middle.layouts["later"].fields[1].type
    assert getattr(kind, "only", None) == ("old",)
    assert values(middle, "kind") == ["old"]
    assert as_of(model, "2.0").layouts == model.layouts


CHOSEN = """
choice: bodies
given: {kind: kinds}
by: kind
cases: {one: part@0, two: part@1, three: plain@1}
---
layout: part
since: {app: 1.0}
versions: 0-1
version_notes: {0: {since: {app: 1.0}}, 1: {since: {app: 2.0}}}
fields: {x: u8}
---
layout: plain
versions: 0-1
version_notes: {0: {since: {app: 1.0}}}
fields: {x: u8}
---
layout: holder
fields:
  kind: u8
  body: {choice: later, given: {kind: kind}}
---
choice: later
since: {app: 2.0}
given: {kind: u8}
by: kind
cases: {0: plain@0}
---
enums: {kinds: {values: {one: 0, two: 1, three: 2}}}
"""


def test_choices_cases_and_their_enums_come_and_go() -> None:
    model = model_of(CHOSEN)
    old = as_of(model, "1.0")
    assert [(key, str(ref)) for key, ref in old.choices["bodies"].cases] == [
        ("one", "part@0"),
        ("three", "plain@1"),
    ]
    assert values(old, "kinds") == ["one", "two", "three"]
    assert set(old.layouts) == {"part", "plain"} and set(old.choices) == {"bodies"}
    assert old.layouts["plain"] == model.layouts["plain"]
    new = as_of(model, "2.0")
    assert (new.layouts, new.choices, new.enums) == (model.layouts, model.choices, model.enums)
