"""A third format of batches in a copy of the schemas, by YAML alone: as a layout of its own, or as a second version.

Its header has a field more in the middle, keys have another length in front, and each record has a checksum.
"""

from __future__ import annotations

import re
from pathlib import Path

MAGIC = 3
HEADER_FIELD = "  topic_epoch: {type: i32, VERSIONSabsent: -1, doc: Epoch of the topic.}\n"
RECORD_SUM = (
    "  sum: {type: u32, VERSIONSchecksum: crc32c, covers: {from: attributes}, doc: Of the rest.}\n"
)
_BEFORE_HEADER_FIELD = "  last_offset_delta:\n"
_BEFORE_SUM = "  attributes:\n    bits: i8\n"
_KEY = "  key: {bytes: varint, null: -1, doc: The key.}\n"
_OTHER_KEY = "{bytes: compact, null: 0, doc: The key.}\n"


def add_layout(schemas: Path) -> None:
    """Add it as layouts of their own."""
    records = schemas / "records"
    batch = _without_examples(records / "record_batch.yaml")
    batch = _replaced(batch, "layout: record_batch", "layout: wide_batch")
    batch = _replaced(batch, "const: 2", f"const: {MAGIC}")
    batch = _replaced(batch, "array: record\n", "array: wide_record\n")
    batch = _replaced(batch, _BEFORE_HEADER_FIELD, _plain(HEADER_FIELD) + _BEFORE_HEADER_FIELD)
    (records / "wide_batch.yaml").write_text(batch, "utf-8")
    record = (records / "record.yaml").read_text("utf-8")
    record = _replaced(record, "layout: record\n", "layout: wide_record\n")
    record = _replaced(record, _BEFORE_SUM, _plain(RECORD_SUM) + _BEFORE_SUM)
    record = _replaced(record, _KEY, f"  key: {_OTHER_KEY}")
    (records / "wide_record.yaml").write_text(record, "utf-8")
    _edit(
        records / "log_entry.yaml", "  2: record_batch", f"  2: record_batch\n  {MAGIC}: wide_batch"
    )
    for view in ("batches", "records"):
        path = schemas / "views" / f"{view}.yaml"
        text = path.read_text("utf-8")
        rows = re.search(r"  - of: record_batch\n.*?(?=\n  - of: )", text, re.DOTALL)
        assert rows is not None
        copy = rows[0].replace("of: record_batch", "of: wide_batch")
        path.write_text(text.replace(rows[0], rows[0] + "\n" + copy), "utf-8")


def add_columns(schemas: Path) -> None:
    """Give the views columns that only its layouts have values for."""
    views = schemas / "views"
    for view, name, value in (
        ("batches", "topic_epoch", "topic_epoch"),
        ("records", "timestamp_delta", "item.timestamp_delta"),
    ):
        path = views / f"{view}.yaml"
        column = f"  {name}: {{type: int64, nullable: true, on_request: true, doc: New.}}\n"
        _edit(path, "\nrows:\n", f"{column}\nrows:\n")
        text = path.read_text("utf-8")
        head, of, rows = text.partition("  - of: wide_batch\n")
        rows = rows.replace(
            "      position: position\n", f"      position: position\n      {name}: {value}\n", 1
        )
        path.write_text(head + of + rows, "utf-8")


def add_version(schemas: Path) -> None:
    """Add it as a second version of the layouts that there are."""
    records = schemas / "records"
    batch = _without_examples(records / "record_batch.yaml")
    batch = _replaced(batch, "fields:\n", f"versions: 2-{MAGIC}\n\nfields:\n")
    batch = _replaced(batch, "const: 2", "is: version")
    extra = HEADER_FIELD.replace("VERSIONS", f"versions: {MAGIC}+, ")
    batch = _replaced(batch, _BEFORE_HEADER_FIELD, extra + _BEFORE_HEADER_FIELD)
    (records / "record_batch.yaml").write_text(batch, "utf-8")
    record = (records / "record.yaml").read_text("utf-8")
    record = _replaced(record, "fields:\n", f"versions: 2-{MAGIC}\n\nfields:\n")
    extra = RECORD_SUM.replace("VERSIONS", f"versions: {MAGIC}+, ")
    record = _replaced(record, _BEFORE_SUM, extra + _BEFORE_SUM)
    (records / "record.yaml").write_text(record, "utf-8")
    _edit(
        records / "log_entry.yaml",
        "  2: record_batch",
        f"  2: record_batch@2\n  {MAGIC}: record_batch@{MAGIC}",
    )


def _plain(field: str) -> str:
    return field.replace("VERSIONS", "")


def _without_examples(path: Path) -> str:
    return path.read_text("utf-8").partition("\nexamples:")[0] + "\n"


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _edit(path: Path, old: str, new: str) -> None:
    path.write_text(_replaced(path.read_text("utf-8"), old, new), "utf-8")
