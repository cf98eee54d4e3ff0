"""The functions that make rows of what the codecs parse give what the kernels and the NumPy readers give."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, load_numpy_reader
from codecgen.runtime.arrow.view import View
from codecgen.runtime.errors import CodecError, TruncatedError
from codecgen.runtime.layout import Choice
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place, RowView
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.batches import BATCHES as BATCHES_OF_ARROW
from kafka_codecs.arrow.records import RECORDS as RECORDS_OF_ARROW
from kafka_codecs.rows.batches import BATCHES
from kafka_codecs.rows.records import RECORDS
from tests.paths import ROOT
from tests.support.other_layouts import MANIFEST, emitted
from tests.support.scanned_rows import unpacked
from tests.support.vector_files import FILES, name

FORMAT = """\
enums:
  colour: {values: {red: 1, green: 2}, unknown: keep}
---
layout: single
endian: little
fields:
  length: {type: u16, measures: rest}
  kind: {type: u8, const: 7}
  flags: {bits: i16, members: {late: {at: 0}, colour: {at: 1-3, enum: colour}, unused: {reserved: keep}}}
  number: i64
  note: {type: i32, when: flags.late}
---
layout: many
endian: little
versions: 8-9
fields:
  length: {type: u16, measures: rest}
  kind: {type: u8, is: version}
  entry: {type: u8, versions: 9+}
  flags: {bits: u8, members: {late: {at: 7}, unused: {reserved: keep}}}
  total: {type: u16, counts: parts}
  parts: {array: item_of}
derived:
  doubled: {type: i32, is: total + total}
  parts:
    place: {type: i64, is: total + item.delta}
---
layout: item_of
fields:
  delta: varint
  bits: {bits: u8, members: {x: {at: 0}, unused: {reserved: keep}}}
  tags: {array: tag, count: u8}
---
layout: tag
fields: {name: {string: u8}, size: {bytes: compact, none: 0}}
---
choice: packet
by: kind
cases: {7: single, 8: many@8, 9: many@9}
---
view: all
of: packet
columns:
  number: {type: int64}
  size: {type: int64}
  position: {type: int64}
  flags: {type: int16}
  late: {type: bool}
  as_number: {type: int8}
  colour: {type: int8, nullable: true}
  note: {type: int32, nullable: true}
  bits: {type: int16, nullable: true}
  tags: {list: {name: {type: string}, size: {type: binary, nullable: true}}}
  ends: {type: int64, nullable: true}
  entry: {type: int64}
  mixed: {type: int64, nullable: true}
rows:
  - of: single
    columns:
      {number: number, size: size, position: position, flags: flags, late: flags.late, as_number: flags.late,
       colour: flags.colour, note: note, entry: -1}
  - of: many
    each: parts
    columns:
      number: parts.place
      size: size
      position: position
      flags: flags
      late: "if doubled > 5 then 1 else 0"
      as_number: 0
      bits: item.bits
      tags: item.tags
      ends: last(parts).delta - first(parts).delta
      entry: "if kind == 8 then 0 else entry"
      mixed: position + size - item.delta
---
view: heads
of: packet
columns:
  size: {type: int64}
  flags: {type: int16}
  total: {type: int32, nullable: true}
rows:
  - {of: single, header_only: true, columns: {size: size, flags: flags}}
  - {of: many, header_only: true, columns: {size: size, flags: flags, total: total}}
"""


def entries(data: bytes, of: Choice) -> Iterator[tuple[int, bytes]]:
    """Where the entries of a file are, and their bytes."""
    position = 0
    while position < len(data):
        source = Source(data, Session(), pos=position)
        size = of.case(source).frame(source)
        assert size is not None
        yield position, data[position : position + size]
        position += size


def opened_rows(data: bytes, view: RowView) -> list[dict[str, Any]]:
    """The rows of a file by the row functions. Raises CodecError for what is no whole file of entries."""
    out = []
    for position, entry in entries(data, view.of):
        source = Source(entry, Session(), origin=position)
        layout = view.of.case(source)
        place = Place(position, len(entry))
        opened = layout.open(source)
        if opened.error is not None:
            raise opened.error
        rows = view.rows(layout, opened, place)
        out += [dict(zip(view.columns, row, strict=True)) for row in rows]
    return out


def header_rows(data: bytes, view: RowView) -> list[dict[str, Any]]:
    """The rows of a view of heads, from no more of each entry than its head."""
    out = []
    header = view.header(view.columns)
    for position, entry in entries(data, view.of):
        source = Source(entry, Session(), origin=position)
        layout = view.of.case(source)
        source.end = layout.leading_size
        row = header.row(layout, source, Place(position, len(entry)))
        assert row is not None
        out.append(dict(zip(view.columns, row, strict=True)))
    return out


def arrow_rows(data: bytes, view: View, kernels: ModuleType | None) -> list[dict[str, Any]]:
    """The rows by the kernels (None), or by the NumPy readers, with lists as tuples."""
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    out = []
    for found in Decoder(view, view.columns, kernels=kernels).decode(chunk, 0):
        assert isinstance(found, Rows)
        out += unpacked(found.batch)
    for row in out:
        for column, value in row.items():
            if isinstance(value, list):
                row[column] = tuple(tuple(member.values()) for member in value)
    return out


@pytest.mark.share(6, ci=9)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_rows_of_our_files(path: Path) -> None:
    data = path.read_bytes()
    try:
        rows = opened_rows(data, RECORDS)
    except CodecError:
        return  # nothing that a strict reader takes
    assert rows == arrow_rows(data, RECORDS_OF_ARROW, None)
    assert rows == arrow_rows(data, RECORDS_OF_ARROW, load_numpy_reader(RECORDS_OF_ARROW))
    headers = header_rows(data, BATCHES)
    assert headers == arrow_rows(data, BATCHES_OF_ARROW, None)
    assert headers == arrow_rows(data, BATCHES_OF_ARROW, load_numpy_reader(BATCHES_OF_ARROW))
    assert [row["position"] for row in headers] == [at for at, _ in entries(data, LOG_ENTRY)]


def test_most_of_our_files_are_compared() -> None:
    taken = 0
    for path in FILES:
        if path.parent.name == "large":  # not in the quick run
            continue
        try:
            taken += bool(opened_rows(path.read_bytes(), RECORDS))
        except CodecError:
            continue
    assert taken > 150


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("rows")
    manifest = MANIFEST.replace("made_up_codecs", "rows_made_up")
    for path, text in emitted({"codecgen.yaml": manifest, "entry.yaml": FORMAT}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        yield "rows_made_up"
        for module in [m for m in sys.modules if m.startswith("rows_made_up")]:
            del sys.modules[module]


def packets(package: str) -> bytes:
    packet = importlib.import_module(package).PACKET
    values: list[dict[str, Any]] = [
        {"kind": 7, "flags": {"late": True, "colour": "green"}, "number": -5, "note": 9},
        {"kind": 7, "flags": {"colour": 6}, "number": 2},
        {"kind": 8, "flags": {"late": True}, "parts": [{"delta": i, "tags": []} for i in range(4)]},
        {"kind": 9, "entry": 200, "flags": {}, "parts": [{"delta": 7, "bits": {"x": True}}]},
    ]
    values[3]["parts"][0]["tags"] = [{"name": "a", "size": None}, {"name": "", "size": b"z"}]
    return b"".join(packet.build(value) for value in values)


@pytest.mark.slow
def test_rows_of_layouts_that_were_made_up(made_up: str) -> None:
    data = packets(made_up)
    view = importlib.import_module(f"{made_up}.rows.all").ALL
    rows = opened_rows(data, view)
    of_arrow = importlib.import_module(f"{made_up}.arrow.all").ALL
    assert rows == arrow_rows(data, of_arrow, None)
    assert rows == arrow_rows(data, of_arrow, load_numpy_reader(of_arrow))
    assert [row["flags"] for row in rows] == [5, 12, 128, 128, 128, 128, 0]
    assert [row["as_number"] for row in rows] == [1, 0, 0, 0, 0, 0, 0]
    assert [type(row["late"]) for row in rows] == [bool] * 7
    assert [row["size"] for row in rows[:3]] == [17, 13, 18]
    assert [row["ends"] for row in rows] == [None, None, 3, 3, 3, 3, 0]
    assert [row["entry"] for row in rows] == [-1, -1, 0, 0, 0, 0, 200]
    assert rows[-1]["tags"] == (("a", None), ("", b"z"))
    assert all(type(value) in (int, bool, tuple, type(None)) for r in rows for value in r.values())


@pytest.mark.slow
def test_heads_of_layouts_that_were_made_up(made_up: str) -> None:
    data = packets(made_up)
    view = importlib.import_module(f"{made_up}.rows.heads").HEADS
    rows = header_rows(data, view)
    of_arrow = importlib.import_module(f"{made_up}.arrow.heads").HEADS
    assert rows == arrow_rows(data, of_arrow, None)
    assert rows == arrow_rows(data, of_arrow, load_numpy_reader(of_arrow))
    assert [row["total"] for row in rows] == [None, None, 4, 1]


def test_a_head_that_is_cut_off_says_where() -> None:
    layout = LOG_ENTRY.cases[2]
    data = FILES[0].read_bytes()[:30]
    source = Source(data, Session(file="x.log"), origin=100)
    place = Place(100, 80)
    assert BATCHES.header(("position", "base_offset")).row(layout, source, place) is not None
    with pytest.raises(TruncatedError) as raised:
        BATCHES.header(("producer_id",)).row(layout, source, place)
    where = raised.value.where
    assert (where.path, where.position, where.file) == ("producer_id", 100, "x.log")
    assert (where.schema or "").startswith("records/record_batch.yaml:")


def test_they_need_neither_numpy_nor_pyarrow() -> None:
    code = (
        "import sys; from kafka_codecs.rows import batches, records; "
        "assert not {'numpy', 'pyarrow', 'numba'} & sys.modules.keys()"
    )
    roots = [str(ROOT / part) for part in ("generator", "generated")]
    path = f"import sys; sys.path[:0] = {roots!r}; "
    subprocess.run([sys.executable, "-c", path + code], check=True)
