"""Layouts that were made up are written too; what the target cannot write it refuses by the name of the field."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.schema import loader
from codecgen.targets import arrow
from tests.paths import SCHEMAS
from tests.support.foreign_format import FORMAT
from tests.support.other_layouts import MANIFEST, emitted
from tests.support.scanned_rows import unpacked

pytestmark = pytest.mark.slow  # encoders of layouts that are made up are compiled


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("written")
    manifest = MANIFEST.replace("made_up_codecs", "written_codecs")
    for path, text in emitted({"codecgen.yaml": manifest, "format.yaml": FORMAT}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module("written_codecs")
    finally:
        sys.path.remove(str(root))


def encoder(kind: int, **options: Any) -> Encoder:
    return Encoder(
        importlib.import_module("written_codecs.arrow.samples_writer").SAMPLES_WRITER,
        kind,
        **options,
    )


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    view = importlib.import_module("written_codecs.arrow.samples").SAMPLES
    names = list(rows[0])
    arrays = [pa.array([row[n] for row in rows], arrow_type(view.column(n))) for n in names]
    return pa.RecordBatch.from_arrays(arrays, names)


def read(data: bytes, names: list[str]) -> list[dict[str, Any]]:
    view = importlib.import_module("written_codecs.arrow.samples").SAMPLES
    decoder = Decoder(view, choose(view, names))
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    rows: list[dict[str, Any]] = []
    for item in decoder.decode(chunk, 0):
        assert isinstance(item, Rows), item
        rows += unpacked(item.batch)
    return rows


SAMPLES: list[dict[str, Any]] = [
    {
        "number": 1000 + 5 * i,
        "level": (-5, 0, 99, 120)[i % 4],
        "note": (None, "", "\u00e4" * 30, None)[i % 4],
        "tags": [{"name": "t" * j, "blob": (None, b"x" * j)[j % 2]} for j in range(i % 4)],
        "is_test": i >= 40,
        "squeeze": (0, 3, 5)[i // 20 % 3],
    }
    for i in range(600)
]


def built(codecs: ModuleType, rows: list[dict[str, Any]]) -> bytes:
    flags = {"squeeze": rows[0]["squeeze"], "is_test": rows[0]["is_test"]}
    samples = [
        {
            "delta": row["number"] - rows[0]["number"],
            "level": row["level"],
            "note": row["note"],
            "tags": row["tags"],
        }
        for row in rows
    ]
    value = {"flags": flags, "base": rows[0]["number"], "least": 0, "samples": samples}
    return bytes(codecs.MANY.build(value))


@pytest.mark.soak
def test_entries_of_many_rows(made_up: ModuleType) -> None:
    names = list(SAMPLES[0])
    data = b"".join(encoder(9, batch_bytes=1 << 20).encode([batch(SAMPLES)]))
    assert read(data, names) == SAMPLES
    expected = b"".join(
        built(made_up, SAMPLES[a:b]) for a, b in ((0, 20), (20, 40), (40, 60), (60, 80))
    )
    assert data.startswith(expected)
    # Where nothing else changes, it is the field that counts which has room for 255.
    plain = [row | {"squeeze": 0, "is_test": False} for row in SAMPLES]
    data = b"".join(encoder(9, batch_bytes=1 << 20).encode([batch(plain)]))
    parts = (plain[:255], plain[255:510], plain[510:])
    assert data == b"".join(built(made_up, part) for part in parts)


@pytest.mark.parametrize("batch_bytes", [1, 50, 400])
def test_entries_of_a_size(made_up: ModuleType, batch_bytes: int) -> None:
    data = b"".join(encoder(9, batch_bytes=batch_bytes).encode([batch(SAMPLES)]))
    assert read(data, list(SAMPLES[0])) == SAMPLES


def test_an_entry_for_each_row(made_up: ModuleType) -> None:
    rows: list[dict[str, Any]] = [
        {
            "number": i,
            "note": (None, "", "note")[i % 3],
            "colour": (1, 2, 7)[i % 3],
            "mark": b"mark",
            "more": b"m" * i,
        }
        for i in range(30)
    ]
    data = b"".join(encoder(7).encode([batch(rows)]))
    expected = b"".join(
        made_up.SINGLE.build(
            {
                "number": r["number"],
                "colour": r["colour"],
                "label": r["note"],
                "mark": r["mark"],
                "rest": r["more"],
            }
        )
        for r in rows
    )
    assert data == expected
    assert read(data, list(rows[0])) == rows


ONE = {"number": 1, "note": None, "colour": 1, "mark": b"mark", "more": b""}


@pytest.mark.parametrize(
    ("kind", "row", "column"),
    [
        (7, ONE | {"number": -1}, "number"),
        (7, ONE | {"colour": 3}, "colour"),
        (7, ONE | {"colour": None}, "colour"),
        (7, ONE | {"mark": b"five!"}, "mark"),
        (7, ONE | {"mark": None}, "mark"),
        (7, ONE | {"more": None}, "more"),
        (7, ONE | {"more": b"x" * 66_000}, None),
        (7, ONE | {"level": 3}, "level"),
        (7, ONE | {"is_test": True}, "is_test"),
        (7, ONE | {"tags": [{"name": "a", "blob": None}]}, "tags"),
        (9, SAMPLES[0] | {"note": "n" * 40_000}, "note"),
        (9, SAMPLES[0] | {"level": 128}, "level"),
        (9, SAMPLES[0] | {"level": None}, "level"),
        (9, SAMPLES[0] | {"level": 100, "note": ""}, "note"),
        (9, SAMPLES[0] | {"squeeze": 1}, "squeeze"),
        (9, SAMPLES[0] | {"colour": 2}, "colour"),
        (9, SAMPLES[0] | {"tags": [{"name": "n" * 256, "blob": None}]}, "tags.name"),
        (9, SAMPLES[0] | {"tags": [{"name": "n", "blob": b"b" * 70_000}]}, None),
    ],
)
def test_rows_that_have_no_place(
    made_up: ModuleType, kind: int, row: dict[str, Any], column: str | None
) -> None:
    good = {7: ONE, 9: SAMPLES[0]}[kind]
    filler = {"level": None, "is_test": False, "tags": [], "colour": None}
    rows = [{name: good.get(name, filler.get(name)) for name in row}, row]
    with pytest.raises(RowRefused) as found:
        list(encoder(kind).encode([batch(rows)]))
    assert (found.value.row, found.value.column) == (1, column)


DRAFT = """\
choice: kip_98
by: magic
cases: {2: kip_98_message_set}
---
view: kip_98_messages
of: kip_98
columns:
  offset: {type: int64}
  timestamp: {type: timestamp_ms}
  key: {type: binary, nullable: true}
  value: {type: binary, nullable: true}
rows:
  - of: kip_98_message_set
    each: messages
    columns: {offset: messages.offset, timestamp: item.timestamp, key: item.key, value: item.value}
    write:
      entry: {offset: first(offset), offset_delta: last(offset) - first(offset), max_timestamp: max(timestamp)}
      item:
        offset_delta: offset - entry.offset
        timestamp: timestamp
        key: key
        value: value
"""


def test_the_draft_is_read_but_not_written_and_the_field_is_named() -> None:
    files = loader.read_files(SCHEMAS) | {"views/draft.yaml": DRAFT}
    model, found = loader.load(files)
    assert model is not None and not found
    assert render(run(model), files) == ""
    text = render(list(arrow.emit(make_plan(model)).diagnostics), files)
    assert text.startswith(
        'error[C023]: "key_length" is the length of a part of a row instead of the whole row'
    )


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("  history: {array", "  odd: {type: f64, default: 0}\n  history: {array", '"odd" is not written'),
        ("  tags: {array: tag}", "  tags: {array: tag}\n  lost: {type: u8, when: level == 3, default: 0}", '"lost" is present or absent'),
        ("weight: {type: i16, default: -2}", "weight: i16", '"weight" is a field without a value'),
        ("note: {string: i16, none: -1, valid", "width: {type: varint, measures: {from: history, to: history}}\n  note: {string: i16, none: -1, valid", '"width" is'),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(before: str, after: str, message: str) -> None:
    text = FORMAT.replace(before, after)
    assert text != FORMAT
    files = {"codecgen.yaml": MANIFEST, "format.yaml": text}
    model, _ = loader.load(files)
    assert model is not None
    result = arrow.emit(make_plan(model))
    assert not result.files
    assert message in render(list(result.diagnostics), files)
