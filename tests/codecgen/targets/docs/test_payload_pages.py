"""Pages of views into payloads: columns, what they are made of, and links to what payloads are."""

from __future__ import annotations

from codecgen.plan import make_plan
from codecgen.targets.docs import emit, emit_html
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import checked

FORMAT = """
choice: reading
by: kind
cases: {1: reading_key}

---
layout: reading_key
fields: {kind: {type: u8, const: 1}, station: {string: u8}}

---
layout: reading_value
fields: {numbers: {array: number, count: u8}}

---
layout: number
fields: {value: {type: i16}}
"""
VIEW = """
view: reading
doc: One row for each number.
of: {key: reading, value: reading_value}
columns:
  station: {type: string, doc: Its name.}
  value: {type: int16, unit: mm, nullable: true}
  row: {type: int64, on_request: true}
rows:
  - of: {key: reading_key, value: reading_value}
    when: value != null
    each: value.numbers
    columns: {station: key.station, value: if item.value == 0 then null else item.value, row: row}
"""


def test_a_file_of_a_view_has_a_page() -> None:
    """The view has the name of a choice, and a file of its own."""
    files = {"codecgen.yaml": MANIFEST, "format.yaml": FORMAT, "tables/reading.yaml": VIEW}
    plan = make_plan(checked(files))
    pages = emit(plan).files
    page = pages["docs/tables/reading.md"]
    assert page.split("\n")[2:] == [
        '<a id="reading--view"></a>',
        "",
        "# Reading",
        "",
        "[Example](../README.md)",
        "",
        "One row for each number.",
        "",
        "- Name: `reading`.",
        "- A view into payloads of `key`, which is [reading](../format.md#reading) and `value`, which is [reading_value](../format.md#reading_value).",
        "- Decided by: `key.kind`.",
        "",
        "## Columns",
        "",
        "| Name | Type | Null | What it is |",
        "| --- | --- | --- | --- |",
        "| `station` | `string` |  | Its name. |",
        "| `value` | `int16` | yes | In mm. |",
        "| `row` | `int64` |  | Left out unless it is asked for. |",
        "",
        "## Rows",
        "",
        "Where `key` is [reading_key](../format.md#reading_key) and `value` is [reading_value](../format.md#reading_value): a row for each of `value.numbers`, if `value` is not null.",
        "",
        "| Column | Value |",
        "| --- | --- |",
        "| `station` | `key.station` |",
        "| `value` | `if item.value == 0 then null else item.value` |",
        "| `row` | `row` |",
        "",
    ]
    index = pages["docs/README.md"]
    assert (
        "| [Reading](tables/reading.md#reading--view) | view | One row for each number. |" in index
    )
    assert "| [Reading](format.md#reading) | choice |" in index
    site = emit_html(plan).files
    assert 'id="reading--view"' in site["html/tables/reading.html"]
    assert "reading--view" in site["html/search.js"]
