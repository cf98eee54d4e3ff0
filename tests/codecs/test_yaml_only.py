"""A field, a version, a whole new layout: YAML alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codecs.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.slow
def test_a_field_a_version_and_a_layout(tree: Tree) -> None:
    records = tree.root / "schemas" / "records"
    edit(
        records / "record.yaml",
        "  headers: {array",
        "  priority: {type: uvarint, default: 3, doc: How urgent the record is.}\n  headers: {array",
    )
    edit(records / "message.yaml", "versions: 0-1\n", "versions: 0-2\n")
    edit(
        records / "message.yaml",
        "  key:\n    bytes: i32",
        "  expires: {type: i64, versions: 2+, none: -1, doc: When the message may go.}\n  key:\n    bytes: i32",
    )
    edit(records / "log_entry.yaml", "  2: record_batch", "  2: record_batch\n  7: beacon")
    (records / "beacon.yaml").write_text(
        "layout: beacon\n"
        "doc: A sign of life between batches.\n"
        "fields:\n"
        "  number: {type: i64, doc: How many there were before.}\n"
        "  length: {type: i32, measures: rest, doc: Bytes after this field.}\n"
        "  crc: {type: u32, checksum: crc32c, covers: {from: magic}, doc: CRC-32C of the rest.}\n"
        "  magic: {type: i8, const: 7, doc: The version.}\n"
        "  host: {string: varint, doc: Who sends it.}\n"
        "  loads: {array: f64, count: uvarint, doc: One for each core.}\n",
        "utf-8",
    )
    with pytest.raises(
        AssertionError, match="C024"
    ):  # the examples hold bytes without the new field
        tree.run("codecgen", "check", "schemas")
    batch = records / "record_batch.yaml"
    batch.write_text(batch.read_text("utf-8").partition("\nexamples:")[0], "utf-8")
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    tree.run("python", "-c", USE)
    assert "priority" in (tree.generated / "docs" / "records" / "record.md").read_text("utf-8")
    assert (tree.generated / "docs" / "records" / "beacon.md").is_file()


USE = """
from kafka_codecs import BEACON, LOG_ENTRY, MESSAGE, MESSAGE_V2, RECORD_BATCH

record = {"offset_delta": 0, "key": b"k", "value": b"v"}
data = RECORD_BATCH.build({"records": [record, record | {"offset_delta": 1, "priority": 200}]})
assert [r.priority for r in RECORD_BATCH.parse(data).records] == [3, 200]

message = {"magic": 2, "offset": 9, "timestamp": 5, "expires": 77, "key": None, "value": b"x"}
data = MESSAGE.build(message)
assert MESSAGE.parse(data).expires == 77
assert MESSAGE_V2.offset_of("expires") == 26
wrapper = {"magic": 2, "attributes": {"compression": "lz4"}, "key": None, "messages": [message]}
assert MESSAGE.parse(MESSAGE.build(wrapper)).messages[0].expires == 77

beacon = BEACON.build({"number": 1, "host": "b1", "loads": [0.5, 2.0]})
assert LOG_ENTRY.parse(beacon).loads == [0.5, 2.0]
damaged = beacon[:-1] + bytes([beacon[-1] ^ 1])
try:
    LOG_ENTRY.parse(damaged)
except Exception as error:
    assert type(error).__name__ == "ChecksumError", error
else:
    raise AssertionError("damage passed")
"""
