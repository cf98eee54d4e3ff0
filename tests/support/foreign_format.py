"""A format that is not from Kafka, with enums, arrays and derived values."""

from __future__ import annotations

FORMAT = """\
enums:
  squeeze: {values: {none: 0, zstd: 3, lz4: 5}}
  colour: {values: {red: 1, green: 2, blue: 7}}
---
layout: single
endian: little
fields:
  kind: {type: u8, const: 7}
  size: {type: u16, measures: rest}
  sum: {type: u32, checksum: crc32, covers: {from: number}}
  spare: {type: u16, default: 9}
  number: {type: i64, refuse: number < 0}
  colour: {type: u8, enum: colour}
  label: {string: compact, none: 0}
  mark: {bytes: 4}
  rest: {bytes: rest}
---
layout: many
endian: little
fields:
  kind: {type: u8, const: 9}
  size: {type: u32, measures: rest}
  sum: {type: u32, checksum: crc32c, covers: rest}
  flags: {bits: u8, members: {squeeze: {at: 1-3, enum: squeeze}, is_test: {at: 0}, unused: {reserved: keep}}}
  base: {type: varlong}
  least: {type: i32}
  total: {type: u8, counts: samples}
  samples: {array: sample, compressed: {by: flags.squeeze, limit: 100000}}
derived:
  samples:
    number: {type: i64, is: base + item.delta}
---
layout: sample
endian: little
fields:
  length: {type: u16, measures: rest}
  sum: {type: u32, checksum: crc32, covers: {from: delta, to: note}}
  delta: u16
  level: i8
  tag_count: {type: uvarint, counts: tags}
  note: {string: i16, none: -1, valid: level < 100 or note == null}
  history: {array: u16, count: u8}
  tags: {array: tag}
---
layout: tag
endian: little
fields:
  name: {string: u8}
  weight: {type: i16, default: -2}
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
  colour: {type: int16, nullable: true, default: 2}
  mark: {type: binary, nullable: true, on_request: true}
  more: {type: binary, nullable: true, on_request: true}
  is_test: {type: bool, on_request: true, default: 0}
  squeeze: {type: int8, on_request: true, default: 0}
  smallest: {type: int32, nullable: true, on_request: true, default: 0}
rows:
  - of: single
    columns: {number: number, note: label, colour: colour, mark: mark, more: rest, is_test: 0, squeeze: 0}
    write:
      entry: {number: number, colour: if colour == null then 2 else colour, label: note, mark: mark, rest: more}
  - of: many
    each: samples
    columns:
      number: samples.number
      level: item.level
      note: item.note
      tags: item.tags
      is_test: flags.is_test
      squeeze: flags.squeeze
      smallest: least
    write:
      entry:
        base: first(number)
        flags: {squeeze: first(squeeze), is_test: first(is_test)}
        least: min(squeeze)
      item:
        delta: number - entry.base
        level: if level == null then 0 else level
        note: note
        tags: tags
"""


FORMAT = FORMAT.replace("min(squeeze)", "if first(smallest) == null then 0 else first(smallest)")
