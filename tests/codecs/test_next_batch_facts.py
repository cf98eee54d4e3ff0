"""Next batches are Kafka's record batch but for what their proposals change: each other fact is the one of its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import NEXT_BATCHES, ROOT

LARGEST = "attributes.timestamp_type == log_append_time or max_timestamp == -1 or max_timestamp == base_timestamp + max(record_times).delta"
NO_TIME = "attributes.timestamp_type == log_append_time or max_timestamp != -1 or base_timestamp + max(record_times).delta < 0"
TIME = "if attributes.timestamp_type == log_append_time then max_timestamp else base_timestamp + item.delta"
CHANGED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "flagged": {
        "batch": {
            "fields.magic.const": 3,
            "fields.attributes.members.has_schema.at": 7,
            "fields.records.array": "flagged_record",
            "fields.records.given.has_schema": "attributes.has_schema",
        },
        "record": {
            "given.has_schema": "bool",
            "fields.schema_id.type": "i32",
            "fields.schema_id.when": "has_schema",
        },
    },
    "columnar": {
        "batch": {
            "fields.magic.const": 3,
            "fields.max_timestamp.default": "base_timestamp + max(record_times).delta",
            "fields.record_count.counts": ["record_times", "records"],
            "fields.record_times.array.fields.delta.type": "varlong",
            "fields.record_times.array.fields.delta.unit": "ms",
            "fields.record_times.accepts": ["overlong_varints"],
            "fields.records.array": "columnar_record",
            "fields.records.accepts": None,
            "rules.largest_timestamp.is": LARGEST,
            "rules.no_timestamp.is": NO_TIME,
            **{
                f"build.records.timestamp_delta.{key}": None
                for key in ("from", "less", "otherwise")
            },
            "build.record_times.delta.from": "timestamp",
            "build.record_times.delta.less": "base_timestamp",
            "build.record_times.delta.otherwise": 0,
            **{f"derived.records.timestamp.{key}": None for key in ("type", "unit", "is")},
            "derived.record_times.timestamp.type": "i64",
            "derived.record_times.timestamp.unit": "ms",
            "derived.record_times.timestamp.is": TIME,
        },
        "record": {f"fields.timestamp_delta.{key}": None for key in ("type", "unit", "default")},
    },
    "dictionary": {
        "batch": {
            "fields.magic.const": 3,
            "fields.header_names.array.string": "uvarint",
            "fields.header_names.count": "uvarint",
            "fields.header_names.accepts": ["overlong_varints", "invalid_utf8"],
            "fields.records.array": "dictionary_record",
            "fields.records.given.names": "header_names",
        },
        "record": {
            "given.names.array": "string",
            "fields.headers.array": "dictionary_header",
            "fields.headers.given.names": "names",
        },
        "header": {
            "accepts": ["overlong_varints", "negative_null"],
            "given.names.array": "string",
            "fields.key.string": None,
            "fields.key.spelled": None,
            "fields.name_index.type": "uvarint",
            "derived.key.type": "string",
            "derived.key.is": "names[name_index]",
        },
    },
}
"""What a proposal changes: batch -> layout -> path -> the new fact, None for one that is gone."""
BEFORE = {"schema_id": "value", "record_times": "records", "header_names": "record_count", "name_index": "value"}  # fmt: skip
"""New fields, and those before which they stand."""
REMARKS = ("doc", "title", "examples", "documentation", "since", "draft", "version_notes")
LAYOUTS = [(batch, layout) for batch, layouts in CHANGED.items() for layout in layouts]


def facts_of(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the facts of a layout by their paths, with expressions in one line and without remarks."""
    if not isinstance(tree, dict):
        yield path, " ".join(tree.split()) if isinstance(tree, str) else tree
        return
    for key, value in tree.items():
        if key not in REMARKS and path + key != "layout":
            yield from facts_of(value, f"{path}.{key}" if path else key)


@cache
def layouts_in(folder: Path) -> dict[str, Any]:
    """Return the layouts of the schema files of a folder, by name."""
    found = [
        d for file in folder.glob("*.yaml") for d in yaml.safe_load_all(file.read_text("utf-8"))
    ]
    return {document["layout"]: document for document in found if "layout" in document}


@pytest.mark.parametrize(("batch", "layout"), LAYOUTS)
def test_facts_are_those_of_kafka(batch: str, layout: str) -> None:
    kafka = layouts_in(ROOT / "schemas" / "records")[
        "record_batch" if layout == "batch" else layout
    ]
    ours = layouts_in(NEXT_BATCHES / batch / "records")[f"{batch}_{layout}"]
    changed = CHANGED[batch][layout]
    wanted = {**dict(facts_of(kafka)), **changed}
    assert dict(facts_of(ours)) == {path: fact for path, fact in wanted.items() if fact is not None}
    new = [name for name in ours["fields"] if name not in kafka["fields"]]
    order = [name for name in kafka["fields"] if name in ours["fields"]]
    for name in new:
        order.insert(order.index(BEFORE[name]), name)
    assert list(ours["fields"]) == order


def test_each_layout_has_its_changes() -> None:
    for batch, layouts in CHANGED.items():
        assert set(layouts_in(NEXT_BATCHES / batch / "records")) == {
            f"{batch}_{n}" for n in layouts
        }
