"""What kernels and NumPy readers refuse: each with the field, and almost the same that they take."""

from __future__ import annotations

import pytest

from codecgen.plan import make_plan
from codecgen.targets import arrow
from tests.codecgen.schemas import model_of, unread_by_kernels

HEAD = """
enums: {codecs: {values: {none: 0, gzip: 1}}}
---
layout: pair
fields: {a: u8, b: u8}
---
layout: holder
fields: {p: {layout: pair}}
---
layout: of_versions
versions: 0-1
fields: {v: {type: u8, is: version}, a: u8}
---
choice: log
by: kind
cases: {1: entry}
---
layout: entry
fields: {kind: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: u8, FIELDS}
---
view: rows
of: log
columns: {COLUMNS}
rows: [{of: entry, ROWS}]
"""
TAIL = "columns: {c: n}"
ARRAY = "each: x, columns: {c: n}"
NUMBER = "c: {type: int16}"


def text_of(fields: str, columns: str = NUMBER, rows: str = TAIL) -> str:
    return HEAD.replace("FIELDS", fields).replace("COLUMNS", columns).replace("ROWS", rows)


KERNELS = [
    ("x: {array: u8, length: u8}", "x: {array: u8, count: u8}", NUMBER, TAIL, '"x" is an array with a length inside rows'),
    ("x: {array: of_versions, count: u8}", "x: {array: pair, count: u8}", NUMBER, TAIL, '"x" is an array of layouts whose bytes say which version they are'),
    ("x: {layout: of_versions}", "x: {layout: pair}", NUMBER, TAIL, '"x" is a layout whose bytes say which version it is'),
    ("k: {type: u8, enum: codecs}, x: {array: pair, count: u8, compressed: {by: k, limit: 99}}", "k: {type: u8, enum: codecs}, x: {array: pair, count: u8}", NUMBER, TAIL, '"x" is a compressed array inside rows'),
    ("m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {array: pair, until: end}", "m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {bytes: rest}", NUMBER, TAIL, '"m" is a length that may be left out'),
    ("s: {type: u32, checksum: crc32c, covers: {from: x}, when: n == 1}, x: u8", "s: {type: u32, checksum: crc32c, covers: {from: x}}, x: u8", NUMBER, TAIL, '"s" is a checksum that may be left out'),
    ("x: {string: u8}, y: {string: u8}", "x: {string: u8}, y: {string: u8}", "c: {type: string}, d: {type: string}", "columns: {c: x, d: x}", '"x" is the source of two columns'),
    ("x: {bytes: u8}, y: {bytes: u8}", "x: {bytes: u8}, y: {bytes: u8}", "c: {type: binary}", "columns: {c: if n == 1 then x else y}", '"x" is one of several fields that a column may show, by a condition'),
    ("y: {bytes: u8}, x: {array: pair, count: u8}", "y: {bytes: u8}, x: {array: pair, count: u8}", "c: {type: binary}", "each: x, columns: {c: y}", '"y" is shown in a column of bytes, structs or lists, but not a field of the row itself'),
    ("x: {array: holder, count: u8}", "x: {array: pair, count: u8}", NUMBER, "each: x, columns: {c: last(x).p.a}", '"x" is used with last(x) of a value that is not an integer directly in the elements'),
    ("x: {array: {bytes: 4}, count: u8}", "x: {array: pair, count: u8}", NUMBER, "columns: {c: n}, when: last(x) != null", '"kind" is used with last(x) of an array that does not give the rows'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "other", "columns", "rows", "message"), KERNELS)
def test_kernels_refuse(fields: str, other: str, columns: str, rows: str, message: str) -> None:
    (refused,) = unread_by_kernels(model_of(text_of(fields, columns, rows)))
    assert refused.message == f"{message}, which kernels cannot express"
    assert unread_by_kernels(model_of(text_of(other))) == []


NUMPY = [
    ("m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {bytes: rest}", "m: {type: u8, measures: {from: x, to: x}}, x: {bytes: rest}", '"m" is a length that may be left out'),
    ("x: {array: {string: u8}, count: u8}", "x: {array: u8, count: u8}", '"x" is an array of bytes or text'),
    ("x: {array: varint, count: u8}", "x: {array: u8, count: u8}", '"x" is an array of numbers that vary in length'),
    ("x: {layout: pair}", "x: u16", '"x" is a layout in the place of a field'),
    ("k: {type: u8, counts: x}, x: {array: u8, when: n == 1}", "k: {type: u8, counts: x}, x: {array: u8}", '"x" is an array that may be left out with its count elsewhere'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "other", "message"), NUMPY)
def test_numpy_readers_refuse(fields: str, other: str, message: str) -> None:
    emitted = arrow.emit(make_plan(model_of(text_of(fields))))
    (refused,) = emitted.notes
    assert refused.code == "C023"
    assert refused.message == f"{message}, which the reader by NumPy cannot express"
    names = {path.rpartition("/")[2] for path in emitted.files}
    assert names == {"__init__.py", "rows.py", "rows_kernels.py"}
    assert arrow.emit(make_plan(model_of(text_of(other)))).notes == ()
