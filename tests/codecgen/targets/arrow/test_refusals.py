"""Every refusal of target arrow: a schema that provokes it, what it says, and of which field.

A refusal that no case here provokes fails a test: it needs a case, or is dead because a check or another refusal comes first.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from types import FrameType
from typing import Any

import pytest

from codecgen.diagnostics import Diagnostic
from codecgen.plan import make_plan
from codecgen.plan.column_sources import UnsupportedSource
from codecgen.plan.writable import WriteError
from codecgen.targets import arrow
from codecgen.targets.arrow.arithmetic import Refused
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.numba_decode import value_reader
from codecgen.targets.arrow.primitive_imports import NAMES
from tests.codecgen.schemas import model_of
from tests.paths import ROOT

REFUSALS = (Unsupported, Refused, WriteError, UnsupportedSource)
GENERATOR = ROOT / "generator" / "codecgen"
START = "kind: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: u8, "
SHARED = """
enums:
  codecs: {values: {none: 0, gzip: 1}}
  odd_codecs: {values: {gzip: 0, none: 1}}
  big: {values: {none: 0, gzip: 1}, unknown: keep}
  kinds: {values: {one: 1, two: 2}}
---
layout: pair
fields: {a: u8, b: u8}
---
layout: item
fields: {a: u8, s: {string: u8}}
---
layout: holder
fields: {p: {layout: pair}}
---
layout: of_versions
versions: 0-1
fields: {v: {type: u8, is: version}, q: u8}
---
layout: of_outer_versions
versions: 0-1
fields: {q: u8, r: {type: u8, versions: 1+}}
---
layout: texts
fields: {s: {string: u8}, p: {layout: pair}, u: u64, w: {array: u8, count: u8}}
---
layout: given_number
given: {z: u8}
fields: {a: u8, q: {type: u8, when: z == 1}}
---
choice: kinded
given: {k: kinds}
by: k
cases: {one: pair, two: item}
---
choice: numbered
given: {k: u8}
by: k
cases: {1: pair, 2: texts, 3: of_versions}
---
choice: by_itself
by: kk
cases: {1: first_kind, 2: second_kind}
---
layout: first_kind
fields: {kk: {type: u8, const: 1}, z: u8}
---
layout: second_kind
fields: {kk: {type: u8, const: 2}, z: u16}"""


def entries(
    fields: str,
    *,
    c: str = "{type: int16}",
    d: str = "",
    rows: str = "columns: {c: n}",
    write: str = "",
    layout: str = "",
    start: str = START,
    of: str = "log",
    more: str = "",
) -> str:
    """Return a schema with a view over entries: of the choice `log`, or of the layout `entry` alone."""
    columns = f"{{c: {c}, d: {d}}}" if d else f"{{c: {c}}}"
    rows += f", write: {{{write}}}" if write else ""
    return "\n---\n".join(
        [
            SHARED,
            f"layout: entry\nfields: {{{start}{fields}}}\n{layout}",
            *(["choice: log\nby: kind\ncases: {1: entry}"] if of == "log" else []),
            f"view: rows\nof: {of}\ncolumns: {columns}\nrows: [{{of: entry, {rows}}}]",
            *([more] if more else []),
        ]
    )


def payloads(
    fields: str,
    *,
    c: str = "{type: int64, nullable: true}",
    rows: str = "columns: {c: value.a}",
    layout: str = "",
    key: str = "m: u8",
    of: str = "v",
    parts: str = "v",
    more: str = "",
) -> str:
    """Return a schema with a view of payloads that have a key and a value."""
    whole = f"of: {{key: k, value: {of}}}\nkernels: true\ncolumns: {{c: {c}}}"
    return "\n---\n".join(
        [
            SHARED,
            f"layout: k\nfields: {{{key}}}",
            f"layout: v\nfields: {{{fields}}}\n{layout}",
            f"view: rows\n{whole}\nrows: [{{of: {{key: k, value: {parts}}}, {rows}}}]",
            *([more] if more else []),
        ]
    )


KERNELS = [
    (entries("x: {bytes: u8}", rows="columns: {c: if n == 1 then x else null}", c="{type: binary, nullable: true}"), '"x" is one of several fields that a column may show, by a condition'),
    (entries("x: {layout: texts}", rows="columns: {c: x.s}", c="{type: string}"), '"x" is shown in a column of bytes, structs or lists, but not a field of the row itself'),
    (entries("b: uuid", rows="columns: {c: b}, header_only: true", c="{type: uuid}"), '"b" is shown in `header_only` rows, but not a number'),
    (entries("x: {string: u8}, y: {string: u8}", rows="columns: {c: x, d: x}", c="{type: string}, d: {type: string}"), '"x" is the source of two columns'),
    (entries("x: u64, y: {type: u8, when: x == 1}"), '"y" is checked by a sum that 64 bits may not hold'),
    (entries("b: bool", rows="columns: {c: n}, when: b"), '"b" is not an integer of fixed size'),
    (entries("x: u24", rows="columns: {c: x}", c="{type: int32}"), '"x" is a number of the type u24'),
    (entries("x: {array: pair, count: u8}, z: u8", rows="each: x, columns: {c: n}"), '"x" is the source of rows, but not an array at the end of its layout'),
    (entries("x: {array: u8, count: u8}", rows="each: x, columns: {c: n}"), '"x" is rows from an array of numbers'),
    (entries("x: {array: pair, count: i8, none: -1, at_least: 1}", rows="each: x, columns: {c: n}"), '"x" is an array of rows that may be null, with a length or `at_least`'),
    (entries("x: {array: {bytes: u8}, count: u8}", rows="each: x, columns: {c: n}"), '"x" is rows from an array of bytes or text'),
    (entries("x: {array: of_versions, count: u8}", rows="each: x, columns: {c: n}"), '"x" is an array of layouts whose bytes say which version they are'),
    (entries("k: {type: u8, enum: odd_codecs}, x: {array: pair, count: u8, compressed: {by: k, limit: 99}}", rows="each: x, columns: {c: n}"), '"x" is compressed by an enum whose 0 names a codec'),
    (entries("s: {type: u32, checksum: crc32c, covers: {from: m}}, m: {type: u8, measures: {from: x, to: x}}, x: {array: pair, count: u8}", rows="each: x, columns: {c: n}"), '"s" is a checksum whose range ends where the rows do not'),
    (entries("x: {array: {fields: {a: u8, b: {type: u8, when: a == 1}}}, count: u8}", rows="each: x, columns: {c: last(x).b}", c="{type: int16, nullable: true}"), '"x" is used with last(x) of a field of its elements that may be null'),
    (entries("x: {layout: pair}", rows="columns: {c: x.a}"), '"x" is a layout with a field that a column or condition uses'),
    (entries("k: {type: u64, enum: big}, x: {array: pair, count: u8, compressed: {by: k, limit: 99}}", rows="each: x, columns: {c: n}"), '"x" is a value of type u64'),
    (entries("x: {array: i16, count: u8}", c="{type: int64}", rows="each: x, columns: {c: item}"), '"x" is rows from an array of numbers'),
    (entries("x: {array: u8, count: i8, none: -1}, y: {layout: given_number, given: {z: if x == null then 1 else 2}}"), '"y" is an array in the place of a number'),
    (entries("m: {type: u64, counts: x}, x: {array: pair}", rows="each: x, columns: {c: n}"), '"m" is a number of the type u64'),
    (entries("x: u8", rows="columns: {c: n}, when: position == 0"), '"kind" is a field of rows with a condition on `position`'),
    (entries("b: varint", rows="columns: {c: n}, when: b == 1"), '"b" is a condition on what lies at no fixed place'),
    (entries("k: {type: u8, enum: kinds}, x: {choice: kinded, given: {k: k}}"), '"x" is one of several layouts'),
    (entries("y: u8, m: {type: u8, measures: {from: m, to: z}}, z: u8"), '"m" is a length that counts itself'),
    (entries("m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {array: pair, until: end}"), '"m" is a length that may be left out'),
    (entries("m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {bytes: rest}, z: {type: u8, when: n == 2}"), '"x" is bytes to the end with fields after them that vary'),
    (entries("s: {type: u32, checksum: crc32c, covers: {from: x, to: x}, when: n == 1}, x: u8, y: {string: u8}"), '"s" is a checksum that may be left out'),
    (entries("s: {type: u32, checksum: crc32c, covers: {from: x}, when: n == 1}, x: u8"), '"s" is a checksum that may be left out'),
    (entries("x: {array: of_versions, count: u8}"), '"x" is an array of layouts whose bytes say which version they are'),
    (entries("k: {type: u8, enum: kinds}, x: {array: {choice: kinded, given: {k: k}}, count: u8}"), '"x" is an array of a choice'),
    (entries("x: {array: entry, count: u8, nesting: 1}"), '"x" is a layout that holds itself'),
    (entries("x: {layout: of_versions}"), '"x" is a layout whose bytes say which version it is'),
    (entries("x: u8", more='layout: flexed\nflexible: 0+\nfields: {a: u8}\n', layout='flexible: 0+\ntagged: {p: {tag: 0, layout: flexed, none: true}}'), '"p" is a tagged layout'),
    (entries("x: u8", rows="columns: {c: n, d: p}", d="{type: string}", layout='flexible: 0+\ntagged: {p: {tag: 0, type: string, default: \'"x"\'}}'), '"p" is a column of a tagged field with a default that is not empty'),
    (entries("x: {array: {fields: {a: u8, b: {type: u8, when: a == 1}}}, count: u8}", rows="each: x, columns: {c: n}", layout="rules: {a: {about: x, is: last(x).b != 1}}"), '"x" is used with last(x) of a field of its elements that may be null'),
    (entries("x: {array: {fields: {a: u64}}, count: u8}", rows="each: x, columns: {c: n}", layout="rules: {a: {about: x, ascending: x.a}}"), '"a" is a rule about numbers that kernels do not compare'),
    (entries("x: {array: pair, count: u8}", layout="rules: {a: {about: x, is: max(x).a > 1}}"), '"x" is a rule about another array than that of the rows'),
    (entries("x: {layout: ruled}", more='layout: ruled\nfields: {a: u8, b: u8}\nrules: {order: {about: a, is: a <= b}}\n'), '"a" is a rule of a layout that lies in another'),
    (entries("x: vlq32"), '"x" is a number of the type vlq32'),
    (entries("x: {bytes: rest}, y: u8, z: {type: u8, when: n == 1}"), '"x" is bytes to the end with fields after them that vary'),
    (entries("y: {array: pair, count: u8}, x: {array: pair, count: u8}", rows="each: [y, x], columns: {c: n}"), '"y" is rows made of several arrays'),
    (entries("x: {array: {string: u8}, count: u8}, y: {layout: g, given: {z: x}}", more="layout: g\ngiven: {z: {array: string}}\nfields: {q: u8}\nderived: {d: {type: string, is: 'z[q]'}}\n"), '"z" is an array that the layout gets from outside (`given`)'),
    (entries("kind: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: u64, x: {array: pair, count: u8, refuse: n == 1}", rows="each: x, columns: {c: item.a}", start=""), '"x" is checked by a sum that 64 bits may not hold'),
    (entries("kind: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: {type: u8, enum: kinds}, x: {array: {choice: kinded, given: {k: n}}, count: u8}", rows="each: x, columns: {c: n}", start=""), '"x" is rows from an array of a choice'),
    (entries("kind: {type: u8, const: 1}, f: u8, size: {type: u32, measures: rest, when: f == 1}, n: u8", start=""), '"size" is an entry whose length may be left out'),
    (entries("kind: {type: u8, const: 1}, size: {type: u32, measures: {from: t}}, s: {string: u8}, t: u8, n: u8", start=""), '"size" is a length that begins at no fixed place'),
    (entries("kind: {type: u8, const: 1}, v: u8, size: {type: u32, measures: rest, refuse: size > v}, n: u8", start=""), '"size" is a length that is refused for the sake of another field'),
    (entries("kind: {type: u8, const: 1}, size: {type: uvarint, measures: rest}, n: u8", start=""), '"kind" is an entry whose length is not at a fixed place'),
    (entries("x: {array: pair, count: u8}", rows="each: x, columns: {c: item.a}", start="", of="entry"), '"x" is rows from an array in an entry without a length'),
    (entries("n: u8, x: {string: u8}", rows="columns: {c: n}, when: n == 1", start="", of="entry"), '"n" is a field of an entry without a length, in rows with a condition'),
    (entries("s: {type: u32, checksum: crc32c, covers: {from: n}}, n: u8, x: {string: u8}", start="", of="entry"), '"s" is a checksum of a range whose end no length measures'),
    (entries("n: u8, x: {string: u8}", rows="columns: {c: n}, header_only: true", start="", of="entry"), '"n" is a field of an entry without a length, in a view with `header_only` rows'),
    (entries("y: {array: pair, count: u8, when: n == 1}, x: {array: pair, count: u8, when: n == 2}", rows="each: y, when: n == 1, columns: {c: n}}, {of: entry, each: x, when: n == 2, columns: {c: n}"), '"y" is the source of rows, but not an array at the end of its layout'),
    (entries("k: u8, x: {array: pair, count: u8}", rows="columns: {c: n}, when: d == 1", layout="derived: {d: {type: i32, is: 'x[k].a'}}"), '"x" is an array in which elements are looked up'),
    (entries("k: u8, x: {array: pair, count: u8}", rows="columns: {c: 'x[k].a'}"), '"x" is an array in which elements are looked up'),
    (payloads("u: u64, a: {choice: numbered, given: {k: if u == 1 then 1 else 2}}", rows="columns: {c: 1}"), '"a" is checked by a sum that 64 bits may not hold'),
    (payloads("w: {array: u8, count: i8, none: -1}, a: {choice: numbered, given: {k: if w == null then 1 else 2}}", rows="columns: {c: 1}"), '"a" is an array in the place of a number'),
    (payloads("a: u8, b: {choice: numbered, given: {k: a}}", c="{type: bool, nullable: true}", rows="columns: {c: value.b.texts.u}"), '"b" is a value of type u64'),
    (payloads("a: u8, b: {choice: numbered, given: {k: a}}", rows="columns: {c: value.a}, when: value.b.texts.w != null"), '"b" is an array in the place of a number'),
    (payloads("a: u8, b: {choice: numbered, given: {k: a}}", rows="columns: {c: value.b.texts.p.a}"), '"p" is a layout inside a case with a field that a column or condition uses'),
    (payloads("a: u8, b: {choice: numbered, given: {k: a}}", rows="columns: {c: value.b.of_versions.q}"), '"b" is one of several versions that are told apart by a field of their own'),
    (payloads("a: u8, b: {choice: one_case, given: {z: a}}", rows="columns: {c: value.b.given_number.a}", more="choice: one_case\ngiven: {z: u8}\nby: z\ncases: {1: pair, 2: given_number}"), '"z" is a value that the layout of a case gets from outside (`given`)'),
    (payloads("a: u8", of="deciding", parts="one", more="choice: deciding\nby: kk\ncases: {1: one, 2: two}\n---\nlayout: one\nfields: {kk: {type: uvarint, const: 1}, z: u8}\n---\nlayout: two\nfields: {kk: {type: uvarint, const: 2}}", rows="columns: {c: value.z}"), '"kk" is the discriminator of the bytes after it, but at no fixed place'),
    (payloads("a: u8, b: {layout: of_outer_versions, version: a}"), '"b" is a layout whose version another field says'),
    (payloads("a: u8, b: {choice: by_itself}"), '"b" is one of several layouts that are told apart by a field of their own'),
    (payloads("a: u8, b: {choice: two_steps, given: {k: a}}", rows="columns: {c: value.b.second_kind.z}", more="choice: two_steps\ngiven: {k: u8}\nby: k\ncases: {1: pair, 2: by_itself}"), '"b" is a choice whose cases are choices'),
    (payloads("a: u8, b: {choice: looped, given: {k: a}, length: u8}", rows="columns: {c: value.b.v.a}", more="choice: looped\ngiven: {k: u8}\nby: k\ncases: {1: pair, 2: v}"), '"a" is a layout that holds itself'),
    (payloads("a: {array: u8, count: u8}", rows="each: value.a, columns: {c: 1}"), '"a" is an array of rows whose elements are numbers, bytes or choices, not layouts'),
    (payloads("a: u8, s: {bytes: u8}, t: {bytes: u8}", c="{type: binary, nullable: true}", rows="columns: {c: if value.a == 1 then value.s else value.t}"), '"a" is one of several fields that a column may show, by a condition'),
    (payloads("a: {layout: texts}", c="{type: string, nullable: true}", rows="columns: {c: value.a.s}"), '"a" is shown in a column of bytes, lists or structs, but lies deeper in a part of the payload, or is computed'),
    (payloads("a: u8", layout="flexible: 0+\ntagged: {s: {tag: 0, type: string, default: '\"x\"'}}", c="{type: string, nullable: true}", rows="columns: {c: value.s}"), '"s" is a column of a tagged field with a default that is not empty'),
    (payloads("a: u8, b: {layout: given_number, given: {z: a}}", c="{struct: {a: {type: int16}}, nullable: true}", rows="columns: {c: value.b}"), '"b" is a column of a layout that is given values'),
    (payloads("a: u8", key=""), '"k" is a layout without fields'),
]  # fmt: skip

NUMPY = [
    (entries("m: {type: u8, measures: {from: x, to: x}, when: n == 1}, x: {bytes: rest}"), '"m" is a length that may be left out'),
    (entries("x: {array: item, count: u8, when: n == 1}", rows="columns: {c: x}", c="{list: {s: {type: string}}, nullable: true}"), '"x" is a column of an array that may be left out'),
    (entries("x: {array: holder, count: u8}", rows="each: x, columns: {c: n}"), '"p" is a layout in the place of a field'),
    (entries("x: {array: {bytes: u8}, count: u8}"), '"x" is an array of bytes or text'),
    (entries("x: {array: f32, count: u8}"), '"x" is an array of numbers that vary in length'),
    (entries("x: {array: given_number, count: u8, given: {z: n}}"), '"z" is a value that the layout gets from outside (`given`)'),
    (entries("y: {type: u8, when: n == 1}", rows="columns: {c: n}, when: y == 2"), '"y" is a condition on what lies at no fixed place'),
    (entries("x: {array: {fields: {a: u8, b: {array: pair, count: u8}}}, count: u8}"), '"b" is an array in an array of a row'),
    (entries("x: {array: given_number, count: u8, given: {z: n}}", rows="each: x, columns: {c: item.q}", c="{type: int16, nullable: true}"), '"z" is a value that the layout gets from outside (`given`)'),
    (entries("n: u8, x: {string: u8}", start="", of="entry"), '"n" is of entries without a length'),
    (entries("x: {array: pair, count: u8}", rows="each: x, when: n == 1, columns: {c: n}}, {of: entry, each: x, when: n == 2, columns: {c: item.a}"), '"x" is one of two arrays of rows in a layout'),
]  # fmt: skip

WRITTEN = [
    (entries("x: {array: u8, count: u8}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{list: int16}"), '"x" is shown in a column of lists'),
    (entries("s: {type: u32, checksum: crc32c, covers: [{from: y, to: y}, {from: z, to: z}]}, y: u8, w: u8, z: u8", write="entry: {n: c, y: 1, w: 1, z: 1}"), '"s" is a checksum of several ranges'),
    (entries("s: {type: u32, checksum: crc32c, covers: {from: kind, zero: [s]}}, y: u8", write="entry: {n: c, y: 1}"), '"s" is a checksum for which fields count as zero bytes'),
    (entries("x: {bytes: u8, when: n == 1}", write="entry: {n: c}", rows="when: n == 1, columns: {c: n}"), '"x" is a field without a value in `write` that cannot be null'),
    (entries('x: {string: i8, none: -1, default: "\'a\'"}', write="entry: {n: c}"), '"x" is a field without a value in `write`, with a default that is not null'),
    (entries("x: {bytes: u8, none: 255}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{type: binary, nullable: true}"), '"x" is nullable, with a length of null (255) that is not negative'),
    (entries("x: {bytes: 4, padded: true}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{type: binary}"), '"x" is filled up with zero bytes'),
    (entries("x: {array: pair, count: 2}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"x" is an array of rows that says how many rows there are'),
    (entries("x: {array: pair, until: item.a == 0}", write="entry: {n: c}"), '"x" is an array whose elements say which one is the last'),
    (entries("x: u8", write="entry: {n: c, x: 1, p: c}", layout='flexible: 0+\ntagged: {p: {tag: 0, type: u8}}'), '"p" is a tagged field of rows that are written'),
    (entries("k: u8, x: {array: pair, count: k - 1}", write="entry: {n: c}"), '"x" is a count that is a field plus or minus a number'),
    (entries("k: u8, x: {bytes: k - 1}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{type: binary}"), '"k" is a length that is a field plus or minus a number'),
    (entries("y: u8, x: {array: g, count: u8, given: {z: y}}", write="entry: {n: c, y: 1, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}", more='layout: g\ngiven: {z: u8}\nfields: {a: {type: u8, default: 1}, q: {bytes: z}, s: {string: u8}}\n'), '"q" is bytes with a length from outside'),
    (entries("z: u8, x: {array: pair, count: u8}", write="entry: {n: last(c), z: 1}, item: {a: d, b: d}", rows="each: x, when: n == 1, columns: {c: n, d: item.a}", d="{type: int16}"), '"n" is part of the condition of the rows (`when`), but differs between them'),
    (entries("k: {type: u8, counts: x}, z: {type: u8, default: k}, x: {array: pair, when: z == 1}", write="entry: {n: c}"), '"k" is computed from its own value'),
    (entries("z: u64", write="entry: {n: c, z: c}"), '"z" is not written by the kernels'),
    (entries("x: {array: {fields: {p: {layout: pair}, a: u8}}, count: u8, at_least: 1}", write="entry: {n: last(c)}, item: {a: d}", rows="each: x, columns: {c: last(x).p.a, d: item.a}", d="{type: int16}"), '"p" is not written by the kernels'),
    (entries("y: {bytes: 2, const: {hex: '0102'}}", write="entry: {n: c}"), '"y" is always the same bytes or text'),
    (entries("x: u8", write="entry: {n: c, x: 300}"), '"x" is written as the constant 300 against its type or enum'),
    (entries("x: {type: u8, when: n == 3, default: 0}", write="entry: {n: c}"), '"x" is present or absent by a condition that is not known before rows are written'),
    (entries("k: {type: u8, counts: [x, y]}, x: {array: pair}, y: {array: pair}", write="entry: {n: c}"), '"k" is the number of elements of several arrays'),
    (entries("x: {type: i16, when: n == 1}", write="entry: {n: c}", rows="when: n == 1, columns: {c: n}"), '"x" is a field without a value in `write` and without a default'),
    (entries("f: {bits: u8, members: {h: {at: 0-3}, r: {reserved: keep}}}, x: {array: pair, count: u8}", write="entry: {n: first(c), f: {h: last(c)}}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"f" is a field of bits that differ between the rows of an entry'),
    (entries("x: {bits: u8, members: {h: {at: 0-3}, rest: {reserved: keep}}}", write="entry: {n: c, x: {h: 300}}"), '"x" is made of bits h that 300 does not fit'),
    (entries("x: {type: i16, when: n == 1, default: if kind == 1 then null else 2}", write="entry: {n: c}", rows="when: n == 1, columns: {c: n}"), '"x" is written as null, but cannot be null'),
    (entries("x: {array: pair, count: u8}, z: {type: u8, default: if first(x).a == null then 0 else 1}", write="entry: {n: c}"), '"z" is a field without a value in `write`, with a default that is computed from elements'),
    (entries("x: {array: pair, length: u8}", write="entry: {n: c}"), '"x" is an array with a length inside rows'),
    (entries("x: {array: item, count: u8, at_least: 1}", write="entry: {n: c}"), '"x" is an array that is not written by the kernels'),
    (entries("y: u8, x: {array: g, count: u8, given: {z: y}}", write="entry: {n: last(c), y: 1}, item: {a: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", more='layout: g\ngiven: {z: u8}\nfields: {a: u8, q: {array: pair, count: z}}\n'), '"q" is an array with a count from outside'),
    (entries("k: {type: u8, enum: codecs}, x: {array: item, count: u8, compressed: {by: k, limit: 99}}", write="entry: {n: c, k: 0, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}"), '"x" is a compressed array inside rows'),
    (entries("x: {array: item, count: u8}, y: u8", write="entry: {n: c, x: d, y: if d == null then 1 else 2}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}, nullable: true}"), '"x" is an array that is not written by the kernels'),
    (entries("x: {array: {fields: {f: {array: u8, count: u8}, s: {string: u8}}}, count: u8}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}"), '"f" is of a kind that kernels do not write inside an array of a row'),
    (entries("x: {array: {fields: {f: u8, s: {string: u8}}}, count: u8}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}"), '"f" is a field without a value in `write` and without a default'),
    (entries("x: {array: {fields: {q: {type: u8, default: 1}, f: {bits: u8, members: {h: {at: 0-3, default: q}, r: {reserved: keep}}}, s: {string: u8}}}, count: u8}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}"), '"f" is a field without a value in `write` and without a default'),
    (entries("x: {array: {fields: {f: f32, s: {string: u8}}}, count: u8}", write="entry: {n: c, x: d}", rows="columns: {c: n, d: x}", d="{list: {s: {type: string}}}"), '"f" is of a kind that kernels do not write inside an array of a row'),
    (entries("k: u8, x: {array: pair, count: u8}", write="entry: {n: c, k: 1}", rows="columns: {c: n, d: 'x[k].a'}", d="{type: int16}"), '"x" is looked up in an array'),
    (entries("x: u8", write="entry: {n: c, x: 1}", rows="when: x == 2, columns: {c: n}"), '"kind" is written for rows whose condition never holds'),
    (entries("x: {array: {fields: {l: {type: varint, measures: rest}, m: {type: varint, measures: rest}, a: u8, b: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"m" is the length of a part of a row instead of the whole row'),
    (entries("x: {array: {fields: {l: {type: varint, measures: {from: a, to: a}}, a: u8, b: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"l" is a length that stops before the end of its row (entry or element)'),
    (entries("x: {array: {fields: {l: {type: varint, measures: {from: b}}, a: u8, b: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"l" is a length that does not directly precede what it measures'),
    (entries("x: {array: {fields: {l: {type: u8, measures: {from: a, to: a}}, a: u8, b: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"l" is the length of a part of a row instead of the whole row'),
    (entries("l: {type: varint, measures: rest}, x: {array: pair, count: u8}", write="entry: {n: last(c)}, item: {a: d, b: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}"), '"l" is a length of an entry that varies in size'),
    (entries("x: {array: {fields: {a: u8, q: {type: u8, const: 1}}}, count: u8}", write="entry: {n: last(c)}, item: {a: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", layout="rules: {a: {about: x, ascending: x.q}}"), '"x" is a rule about numbers that kernels do not compare'),
    (entries("x: {array: {fields: {a: u8, f: {bits: u8, members: {h: {at: 0-3}, rr: {reserved: keep}}}}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, f: {h: 1}}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", layout="rules: {a: {about: x, is: max(x).f.h > 1}}"), '"x" is used with max(x) of a value that is not an integer directly in the elements'),
    (entries("x: {array: {fields: {l: {type: varint, measures: rest}, a: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", layout="rules: {a: {about: x, is: max(x).l > 1}}"), '"x" is used with max(x) of a value that is not written as an integer'),
    (entries("q: {type: u8, valid: q == 2}", write="entry: {n: c, q: 1}"), '"q" is given a value that its checks reject for all rows'),
    (entries("f: u8", write="entry: {n: c, f: 1}", rows="when: size == 3, columns: {c: n}"), '"kind" is used while rows are written, but known only after the last row'),
    (entries("y: {array: {fields: {a: {type: u8, default: 1}, s: {string: u8}}}, count: u8}", write="entry: {n: c, y: d}", rows="columns: {c: n, d: y}, when: last(y).a == 1", d="{list: {s: {type: string}}}"), '"kind" is used with last(y) of an array that does not give the rows'),
    (entries("x: {array: {fields: {a: u8, f: {bits: u8, members: {h: {at: 0-3}, rr: {reserved: keep}}}}}, count: u8}", write="entry: {n: last(c)}, item: {a: d, f: {h: 1}}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", layout="rules: {a: {about: x, is: first(x).f.h > 1}}"), '"x" is used with first(x) of a value that is not an integer directly in the elements'),
    (entries("x: {array: {fields: {l: {type: varint, measures: rest}, a: u8}}, count: u8}", write="entry: {n: last(c)}, item: {a: d}", rows="each: x, columns: {c: n, d: item.a}", d="{type: int16}", layout="rules: {a: {about: x, is: first(x).l > 1}}"), '"x" is used with first(x) of a value that is not written as an integer'),
    (entries("x: u8", write="entry: {n: c, x: 1}", rows="columns: {c: p}", layout='flexible: 0+\ntagged: {p: {tag: 0, type: u8}}'), '"p" is a tagged field of rows that are written'),
    (entries("f: u8, z: i64", rows="when: f == 1, columns: {c: n, d: position}, write: {entry: {n: c, f: 1, z: d}}},{of: entry, when: f == 2, columns: {c: n, d: z}, write: {entry: {n: c, f: 2, z: d}}", d="{type: int64}"), '"kind" is in rows that use `position`, which is known only after they are written'),
    (entries("y: u8", write="entry: {n: c, y: if d == null then 1 else 2}", d="{list: {s: {type: string}}, nullable: true}"), '"y" is a list that is used as a number'),
    (entries("x: u8", write="entry: {n: c, x: 1}", d="{type: uint8, nullable: true}"), '"d" is a column with uint8 values'),
    (entries("kind: {type: u8, const: 1}, size: {type: u32, measures: {from: size}}, n: u8", write="entry: {n: c}", start=""), '"size" is a length that counts itself'),
]  # fmt: skip

CASES = {"kernels": KERNELS, "the reader by NumPy": NUMPY, "target arrow": WRITTEN}


def findings_of(text: str) -> tuple[Diagnostic, ...]:
    """Return what target arrow says of a schema, which is good."""
    emitted = arrow.emit(make_plan(model_of(text)))
    return (*emitted.diagnostics, *emitted.notes)


def check_refused(who: str, text: str, reason: str) -> None:
    """Check that there is one finding, what it says, and that it points to the field that it names."""
    (found,) = findings_of(text)
    assert (found.code, found.message) == ("C023", f"{reason}, which {who} cannot express")
    line = text.split("\n")[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == reason.split('"')[1]


@pytest.mark.share(10)
@pytest.mark.parametrize(
    ("who", "text", "reason"), [(who, *case) for who, cases in CASES.items() for case in cases]
)
def test_it_is_refused(who: str, text: str, reason: str) -> None:
    check_refused(who, text, reason)


@contextmanager
def more_primitives() -> Iterator[None]:
    """Let kernels load u24 and vlq32, as if they had primitives for them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("checks", "module"):
            patch.setattr(f"codecgen.targets.arrow.{module}.NAMES", NAMES | {"load_u24"})
        patch.setitem(value_reader._VARINTS, "vlq32", "uvarint")
        yield


NUMBERS = [
    (entries("x: u24", c="{type: int32}", rows="columns: {c: x}"), '"x" is a number of the type u24'),
    (entries("x: vlq32"), '"x" is a number of the type vlq32'),
]  # fmt: skip
"""Numbers that kernels refuse today. NumPy readers go on to refuse them when kernels do not."""


@pytest.mark.parametrize(("text", "reason"), NUMBERS)
def test_numpy_readers_refuse_numbers_by_themselves(text: str, reason: str) -> None:
    with more_primitives():
        check_refused("the reader by NumPy", text, reason)


def list_refusals() -> Iterator[tuple[str, range]]:
    """Yield the file and the lines of each place that makes a refusal."""
    names = {refusal.__name__ for refusal in REFUSALS} | {"refuse_end"}
    roots = ((GENERATOR / "targets" / "arrow").rglob("*.py"), (GENERATOR / "plan").glob("*.py"))
    for path in chain(*roots):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
                yield str(path), range(node.lineno, (node.end_lineno or node.lineno) + 1)


@pytest.mark.slow
def test_there_is_a_case_for_every_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    met: set[tuple[str, int]] = set()
    for refusal in REFUSALS:

        def note(self: Any, *arguments: Any, make: Any = refusal.__init__) -> None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                met.add((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back if frame.f_code.co_name == "refuse_end" else None
            make(self, *arguments)

        monkeypatch.setattr(refusal, "__init__", note)
    for cases in CASES.values():
        for text, _ in cases:
            findings_of(text)
    with more_primitives():
        for text, _ in NUMBERS:
            findings_of(text)
    places = list(list_refusals())
    unmet = [
        f"{path}:{lines[0]}" for path, lines in places if not {(path, line) for line in lines} & met
    ]
    assert unmet == [] and len(places) > 100
