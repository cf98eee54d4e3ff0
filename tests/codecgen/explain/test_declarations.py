"""What `explain` and `diff` say."""

from __future__ import annotations

import re

import pytest

from codecgen.diagnostic_catalog import CATALOG
from codecgen.diff import Side, diff
from codecgen.explain.declarations import UnknownName, explain, explain_diagnostic
from codecgen.plan import as_of
from tests.codecgen.schemas import model_of, our_model

OURS = our_model()


def rows(name: str) -> dict[str, str]:
    """The rows of an explanation: key -> text (repeated keys are joined)."""
    out: dict[str, str] = {}
    key = ""
    for line in explain(OURS, name).split("\n")[1:]:
        if re.match(r"  \S.{11} \S", line):
            key, value = line[2:14].strip(), line[15:]
            out[key] = f"{out[key]}; {value}" if key in out else value
        elif key and line.startswith(" " * 15):
            out[key] += " " + line.strip()
        else:
            key = ""
    return out


MESSAGES = """\
layout: front
versions: 1-2
message: {role: header, key_field: key, version_field: version}
fields: {key: u8, version: u8}
---
layout: get
versions: 0-3
message: {role: request, key: 3, header: {0-1: front@1, 2+: front@2}, unstable: 3, facts: {port: [a, b]}}
fields: {x: u8}
---
layout: got
versions: 0
message: {role: response, key: 3, header: front@1}
fields: {x: u8}
"""


def test_messages() -> None:
    model = model_of(MESSAGES)
    lines = [line.strip() for line in explain(model, "get").split("\n")]
    assert lines[2:7] == [
        "versions     0-3",
        "message      request with the key 3",
        "header       front@1 in versions 0-1, front@2 in versions 2+",
        "may change   versions 3",
        "port         a, b",
    ]
    assert "header       front@1" in explain(model, "got")
    text = "message      header; key and version name the message that follows"
    assert text in explain(model, "front")


def test_a_checksum() -> None:
    text = explain(OURS, "record_batch.crc")
    assert re.match(
        r"record_batch\.crc: field of record_batch \(records/record_batch\.yaml:\d+\)\n", text
    )
    found = rows("record_batch.crc")
    assert found["type"] == "uint32"
    assert found["place"] == "bytes 17 to 20"
    assert found["since"] == "kafka 0.11.0, kip 98"
    assert found["checksum"] == "crc32c over attributes to the end"
    assert found["measured by"] == "batch_length"
    assert found["misprint"].startswith("documents say 'int32'")
    assert "covered by" not in found


def test_what_covers_and_measures_a_field() -> None:
    found = rows("record_batch.base_timestamp")
    assert found["covered by"] == "crc (crc32c)"
    assert found["formerly"] == "first_timestamp, until 3.1.0"
    assert found["spelled"] == "baseTimestamp in the format's own documents"
    assert found["written"] == "-1 when there is no value"


def test_a_place_by_version() -> None:
    assert rows("message@0.key")["place"] == "from byte 18; size 4, + length"
    both = rows("message.key")["place"]
    assert "byte 18" in both and "in version 0" in both
    assert "byte 26" in both and "in version 1" in both


def test_bits_and_their_values() -> None:
    found = rows("record_batch.attributes.compression")
    assert found["bits"] == "0-2 of attributes"
    assert found["type"] == "a value of compression"
    text = explain(OURS, "record_batch.attributes.compression")
    assert "4 zstd (since kafka 2.1.0, kip 110): " in text
    assert "zstd" not in explain(OURS, "message.attributes.compression")


def test_an_array_and_what_lenient_readers_take() -> None:
    found = rows("record_batch.records")
    assert found["type"] == "array of record, counted by record_count"
    assert found["compressed"].startswith("by the codec that attributes.compression names")
    assert found["lenient"] == "bytes where the count says that there are no elements"
    assert "lz4 is written as" in rows("message.messages")["variant"]


def test_a_layout_has_a_table() -> None:
    text = explain(OURS, "record_batch")
    assert re.search(r"^  17  4 +crc +uint32$", text, re.MULTILINE)
    assert re.search(r"^  next_offset = base_offset \+ last_offset_delta \+ 1$", text, re.MULTILINE)
    assert rows("record_batch")["held by"] == "log_entry"
    assert explain(OURS, "message@1").count("fields of version") == 1


def test_other_things() -> None:
    assert "by           the field magic, at byte 16 of all of them" in explain(OURS, "log_entry")
    assert "a value of control_record_type" in explain(OURS, "control_record_value")
    assert rows("compression.lz4")["number"] == "3"
    assert "record_batch.attributes.compression" in rows("compression")["used by"]
    assert rows("record_batch.last_offset")["is"] == "base_offset + last_offset_delta"
    assert "of each element" not in explain(OURS, "record_batch.records.timestamp_delta")
    assert "derived value of each element" in explain(OURS, "record_batch.records.timestamp")


UNKNOWN = (
    "",
    ".",
    "record_batch.",
    "record_batch.crc.x",
    "record_batch.attributes.x",
    "message@",
    "message@9",
    "message@x.key",
    "message@\u0660",
    "compression.x",
    "compression.gzip.x",
    "log_entry.x",
    "@0",
)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownName):
        explain(OURS, name)


def test_texts() -> None:
    found = rows("offset_checkpoint")
    assert found["empty"] == "it may be, and every value is null then"
    text = explain(OURS, "offset_checkpoint")
    assert "entries: lines of <topic> <partition> <offset>, as many as entry_count says" in text
    assert rows("offset_checkpoint.entries.topic")["form"] == "word"
    assert rows("offset_checkpoint.entries")["accepts"].startswith(
        "any_final_newline, extra_blanks"
    )
    assert rows("partition_metadata.version")["valid"] == "version == 0"
    assert rows("partition_metadata")["last line"] == "has no line feed after it"
    assert rows("meta_properties.node_id")["key"] == "node.id"
    assert rows("meta_properties")["other keys"] == "are kept"
    for name in ("meta_properties.nodeid", "offset_checkpoint.entries.topics", "offset_checkpont"):
        with pytest.raises(UnknownName, match="did you mean"):
            explain(OURS, name)


def test_texts_between_releases() -> None:
    def changes(name: str, before: str, after: str) -> list[str]:
        sides = [Side(r, as_of(OURS, r), None) for r in (before, after)]
        return [line.strip() for line in diff(name, *sides).split("\n")[1:]]

    assert changes("meta_properties", "2.8.0", "4.0.0") == ["+ directory_id is added"]
    assert changes("meta_properties", "4.0.0", "2.8.0") == ["- directory_id is removed"]
    assert changes("partition_metadata", "2.7.0", "2.8.0") == ["partition_metadata is added"]
    assert changes("partition_metadata", "2.8.0", "4.0.0") == ["nothing changed"]


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_everything_in_our_schemas_can_be_explained(every: int) -> None:
    names = [*OURS.layouts, *OURS.enums, *OURS.choices]
    for layout in OURS.layouts.values():
        names += [f"{layout.name}.{f.name}" for f in layout.fields]
        names += [
            f"{layout.name}.{'.'.join(filter(None, (d.array, d.name)))}" for d in layout.derived
        ]
    for name in names[::every]:
        text = explain(OURS, name)
        assert text.startswith(f"{name}: ")


def test_docs_do_not_play_tricks_on_a_terminal() -> None:
    model = model_of('layout: a\ndoc: "\\u202ered"\nfields: {b: {type: u8, doc: "\\u2066x"}}\n')
    for name in ("a", "a.b"):
        assert explain(model, name).replace("\n", "").isprintable()


@pytest.mark.parametrize("code", CATALOG)
def test_every_diagnostic_has_an_explanation(code: str) -> None:
    assert (explain_diagnostic(code.lower()) or "").startswith(
        f"{code}: {CATALOG[code].title}\nseverity: error"
    )


def test_a_name_is_not_taken_for_a_diagnostic() -> None:
    assert explain_diagnostic("record_batch") is None
    assert explain_diagnostic("C999") is None


# ---------------------------------------------------------------- diff


def between(layout: str, before: str | int, after: str | int) -> list[str]:
    sides = []
    for wanted in (before, after):
        if isinstance(wanted, int):
            sides.append(Side(f"version {wanted}", OURS, wanted))
        else:
            sides.append(Side(wanted, as_of(OURS, wanted), None))
    head, *lines = diff(layout, *sides).split("\n")
    assert head == f"{layout}: {sides[0].title} -> {sides[1].title}"
    return [line.strip() for line in lines]


def test_versions_of_messages() -> None:
    assert between("message", 0, 1) == [
        "+ attributes.timestamp_type: bit 3 is added",
        "~ attributes.unused: bits 3-7 becomes bits 4-7",
        "+ timestamp: int64, at byte 18 is added",
        "~ key: moved from byte 18 to byte 26",
    ]


def test_releases_of_record_batches() -> None:
    assert between("record_batch", "0.11.0", "3.1.0") == [
        "+ attributes.has_delete_horizon: bit 6 is added",
        "~ attributes.unused: bits 6-15 becomes bits 7-15",
        "~ base_timestamp: firstTimestamp is renamed to baseTimestamp",
        "enum compression: + zstd (4) is added",
    ]


def test_backwards_is_the_other_way_round() -> None:
    assert "enum compression: - zstd (4) is removed" in between("record_batch", "3.1.0", "0.11.0")
    assert "- timestamp: int64, at byte 18 is removed" in between("message", 1, 0)


def test_what_a_layout_holds_is_compared_too() -> None:
    assert "in voter: + voter_directory_id: uuid, at byte 4 is added" in between(
        "leader_change_message", 0, 1
    )


def test_layouts_and_versions_come_and_go() -> None:
    assert between("record_batch", "0.10.0", "0.11.0") == ["record_batch is added"]
    assert between("record_batch", "0.11.0", "0.10.0") == ["record_batch is removed"]
    assert "version 1 is added" in between("message", "0.9.0", "0.10.0")
    assert between("message", "0.8.0", "0.8.0") == ["nothing changed"]
    assert between("record_batch", "0.8.0", "0.9.0") == ["nothing changed"]


CHANGES = """
layout: packet
versions: 0-1
fields:
  a: {type: u8, versions: 0}
  b: {layout: part}
  c: {type: u8, when: d.low == 1, versions: 1}
  d:
    bits: u8
    members:
      low: {at: 0-3, versions: 0}
      lower: {at: 0-3, versions: 1}
      rest: {at: 4-7}
---
layout: part
versions: 0-1
fields:
  x: u8
  y: {type: u16, versions: 1}
"""


def test_sizes_and_bits() -> None:
    text = CHANGES.replace("when: d.low == 1, ", "")
    model = model_of(text)
    lines = diff("packet", Side("0", model, 0), Side("1", model, 1)).split("\n")[1:]
    assert [line.strip() for line in lines] == [
        "- a: uint8, at byte 0 is removed",
        "~ b: moved from byte 1 to byte 0",
        "+ c: uint8, at byte 3 is added",
        "~ d: moved from byte 2 to byte 4",
        "- d.low: bits 0-3 is removed",
        "+ d.lower: bits 0-3 is added",
        "in part: + y: uint16, at byte 1 is added",
    ]


OLD = """
layout: packet
fields:
  a: {type: u8, enum: kind, when: 1 == 1}
  b: {bytes: 4}
  c: {type: u8, const: 1}
  d: {bits: u8, members: {low: {at: 0-1, enum: kind}, high: {at: 2-7}}}
  e: {layout: part}
---
layout: part
fields: {x: u8}
---
enums: {kind: {values: {old: 0, same: 1, moved: 2}}}
"""
NEW = """
layout: packet
fields:
  a: {type: u8, enum: other}
  b: {bytes: 8}
  c: {type: u8, const: 2, valid: c == 2}
  d: {bits: u8, members: {low: {at: 0, enum: kind, only: [same]}, high: {at: 1-7}}}
  e: {layout: part}
  f: {type: u8, enum: kind}
---
layout: part
fields: {x: u16}
---
enums: {kind: {values: {new: 0, same: 1, moved: 3}}, other: {values: {some: 0}}}
"""


def test_every_kind_of_change() -> None:
    lines = diff("packet", Side("a", model_of(OLD), None), Side("b", model_of(NEW), None))
    assert [line.strip() for line in lines.split("\n")[1:]] == [
        "~ a: uint8, a value of kind becomes uint8, a value of other",
        "~ a: `when` 1 == 1 becomes nothing",
        "~ b: 4 bytes becomes 8 bytes",
        "~ b: moved from no fixed byte to byte 1",
        "~ c: moved from no fixed byte to byte 9",
        "~ c: `valid` nothing becomes c == 2",
        "~ c: `const` 1 becomes 2",
        "~ d: moved from no fixed byte to byte 10",
        "~ d.low: bits 0-1 becomes bit 0",
        "~ d.low: only all becomes same",
        "~ d.high: bits 2-7 becomes bits 1-7",
        "~ e: moved from no fixed byte to byte 11",
        "+ f: uint8, a value of kind, at byte 13 is added",
        "enum kind: - old (0) is removed",
        "enum kind: ~ moved is 2, becomes 3",
        "enum kind: + new (0) is added",
        "enum other: + some (0) is added",
        "in part: ~ x: uint8 becomes uint16",
    ]
