"""A format of many kinds of fields, its emitted modules, and its rows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rejected, Rows, choose
from codecgen.runtime.arrow.view import View
from codecgen.schema import loader
from codecgen.targets import arrow, construct
from tests.support.scanned_rows import unpacked

MANIFEST = "language: 1\npackage: made_up_codecs\ntitle: Made up\n"


FORMAT = """\
enums:
  squeeze: {values: {none: 0, zstd: 3}}
---
layout: single
endian: little
fields:
  kind: {type: u8, const: 7}
  size: {type: u16, measures: rest}
  sum: {type: u32, checksum: crc32, covers: rest}
  number: i64
  ratio: f64
  id: uuid
  label: {string: compact, none: 0}
---
layout: many
endian: little
fields:
  kind: {type: u8, const: 9}
  size: {type: u16, measures: rest}
  sum: {type: u32, checksum: crc32c, covers: rest}
  flags: {bits: u8, members: {squeeze: {at: 1-2, enum: squeeze}, is_test: {at: 0}, unused: {reserved: keep}}}
  base: {type: i32, refuse: base < 0}
  total: {type: u16, counts: samples}
  samples: {array: sample, compressed: {by: flags.squeeze, limit: 100000}}
derived:
  last_number: {type: i32, is: base + total}
  samples:
    number: {type: i32, is: "if item.delta < 0 then base else base + item.delta"}
---
layout: sample
endian: little
fields:
  delta: varlong
  level: u8
  history: {array: u16, count: u8}
  tags: {array: tag, count: uvarint}
  note: {string: i16, none: -1, valid: level < 200 or note == null}
---
layout: tag
endian: little
fields:
  name: {string: u8}
  blob: {bytes: compact, none: 0}
---
choice: packet
by: kind
cases: {7: single, 9: many}
---
view: samples
of: packet
columns:
  number: {type: int64}
  level: {type: int16, nullable: true}
  note: {type: string, nullable: true}
  tags: {list: {name: {type: string}, blob: {type: binary, nullable: true}}}
  position: {type: int64, on_request: true}
  is_test: {type: bool, on_request: true}
  last: {type: int32, nullable: true, on_request: true}
rows:
  - of: single
    columns: {number: number, note: label, position: position, is_test: 0}
  - of: many
    each: samples
    columns:
      number: samples.number
      level: item.level
      note: item.note
      tags: item.tags
      position: position
      is_test: flags.is_test
      last: "if flags.is_test then last_number else null"
"""


def emitted(files: dict[str, str]) -> dict[str, str]:
    model, found = loader.load(files)
    assert model is not None
    found += run(model)
    plan = make_plan(model)
    out: dict[str, str] = {}
    for emit in (construct.emit, arrow.emit):
        result = emit(plan)
        found += result.diagnostics
        out |= result.files
    assert render(found, files) == ""
    return out


def decoded(
    view: View, module: ModuleType, data: bytes, columns: list[str] | None
) -> tuple[list[dict[str, Any]], list[Rejected]]:
    decoder = Decoder(view, choose(view, columns), kernels=module)
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    rows: list[dict[str, Any]] = []
    rejected = []
    for item in decoder.decode(chunk, 0):
        if isinstance(item, Rows):
            rows += unpacked(item.batch)
        else:
            rejected.append(item)
    return rows, rejected
