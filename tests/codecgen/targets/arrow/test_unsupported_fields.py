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


@pytest.mark.slow
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


READ_ALONE = ["uint8", "uint16", "uint32", "uint64", "float", "double", "uuid"]
WRITTEN = ["type: int8", "type: int16", "type: int32", "type: int64", "type: timestamp_ms"]
WRITTEN += [
    "type: bool",
    "type: binary",
    "type: string",
    "list: int32",
    "list: {a: {type: string}}",
]


@pytest.mark.share(10)
@pytest.mark.parametrize("rows", ["columns: {c: n}", "columns: {c: n, d: null}"])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        *((f"type: {name}", name) for name in READ_ALONE),
        *((f"list: {{a: {{type: {name}}}}}", name) for name in READ_ALONE),
        ("struct: {a: {type: int32}}", "struct"),
        *((column, None) for column in WRITTEN),
    ],
)
@pytest.mark.parametrize("more", ["", ", on_request: true"])
def test_columns_without_a_value_in_views_that_are_written(
    rows: str, column: str, values: str | None, more: str
) -> None:
    """Whoever writes rows may give such a column, of which kernels have to see that it is null."""
    columns = f"{NUMBER}, d: {{{column}, nullable: true{more}}}"
    text = text_of("x: u8", columns, f"{rows}, write: {{entry: {{n: c, x: 0}}}}")
    emitted = arrow.emit(make_plan(model_of(text)))
    if values is None:
        assert not emitted.diagnostics
        return
    (refused,) = emitted.diagnostics
    assert refused.code == "C023" and not emitted.files
    assert refused.message == (
        f'"d" is a column with {values} values, which target arrow cannot express'
    )
    line = text.splitlines().index(f"columns: {{{columns}}}") + 1
    assert (refused.span.file, refused.span.line) == ("case.yaml", line)
    assert f'the view "rows" at case.yaml:{line - 2} cannot be written' in refused.help
