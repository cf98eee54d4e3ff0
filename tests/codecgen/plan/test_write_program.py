"""What write programs settle: fields made of others, fields that the condition of rows decides, values that fit or do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.plan.columns import plan_view
from codecgen.plan.write_ops import Absent, Bits, Constant, Limits, Number, WriteOp
from codecgen.plan.write_program import WriteProgram, write_program
from codecgen.schema import loader
from codecgen.targets import arrow
from tests.paths import ROOT
from tests.support.generated_sources import written

MANIFEST = "language: 1\npackage: odd_codecs\ntitle: Odd\n"
FORMAT = """\
enums:
  shape: {values: {round: 0, square: 1, flat: 2}}
---
layout: lone
fields:
  kind: {type: u8, const: 1}
  size: {type: u32, measures: rest}
  shape: {type: u8, enum: shape}
  early: i32
  number: i32
  after: {type: i64, default: number + 1}
  twice: {type: i64, default: if after > 5 then after + number else -1}
  not_round: {type: i16, when: shape != round, default: 5}
  only_flat: {type: i16, when: shape == flat, default: 6}
  tail: i32
  blob: {bytes: varint, none: -100}
---
layout: many
fields:
  kind: {type: u8, const: 2}
  size: {type: u32, measures: rest}
  flags: {bits: u8, members: {is_test: {at: 7}, level: {at: 0-1, default: 2}, unused: {reserved: keep}}}
  span: i32
  parts: {array: item, count: uvarint}
---
layout: item
fields:
  length: {type: varint, measures: rest}
  number: i64
  flag: i8
  pairs: {array: pair, count: u8}
---
layout: pair
endian: little
fields:
  marks: {bits: u16, members: {high: {at: 8-15, default: 3}, low: {at: 0-7, default: 1}}}
  turn: {type: varint, const: -300}
  name: {string: u8}
---
choice: packet
by: kind
cases: {1: lone, 2: many}
---
view: packets
of: packet
columns:
  number: {type: int64}
  blob: {type: binary, nullable: true}
  pairs: {list: {name: {type: string}}}
  shape: {type: int16, default: 1}
  is_test: {type: bool, default: 0}
  is_big: {type: bool, default: 0}
  small: {type: int64, default: 0}
rows:
  - of: lone
    when: shape == square and number >= 0
    columns: {number: number, blob: blob, shape: shape, is_test: 0, is_big: 0, small: 0}
    write:
      entry: {shape: shape, tail: number, early: entry.tail - 1, number: number, blob: blob}
  - of: many
    each: parts
    columns: {number: item.number, pairs: item.pairs, shape: 1, is_test: flags.is_test, is_big: item.flag, small: 0}
    write:
      entry: {flags: {is_test: first(is_test)}, span: last(number) - first(number)}
      item: {number: number, flag: is_big, pairs: pairs}
"""
PROGRAM = """
import pyarrow as pa
import odd_codecs
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.encoder import Encoder
from odd_codecs.arrow.packets import PACKETS
from odd_codecs.arrow.packets_writer import PACKETS_WRITER

def encoded(kind, **columns):
    names = list(columns)
    arrays = [pa.array(columns[n], arrow_type(PACKETS.column(n))) for n in names]
    batch = pa.RecordBatch.from_arrays(arrays, names)
    return b"".join(bytes(piece) for piece in Encoder(PACKETS_WRITER, kind).encode([batch]))

def refused(kind, **columns):
    try:
        encoded(kind, **columns)
    except RowRefused as error:
        return error.row, error.column
    raise AssertionError(columns)

def lone(number, blob):
    return odd_codecs.LONE.build(dict(shape=odd_codecs.Shape.SQUARE, early=number - 1, number=number, tail=number, blob=blob))

numbers, blobs = [0, 4, 5, 1000], [None, b"", b"x" * 200, None]
assert encoded(1, number=numbers, blob=blobs) == b"".join(map(lone, numbers, blobs))
first = odd_codecs.LONE.parse(lone(5, None))
assert (first.after, first.twice, first.not_round, first.only_flat) == (6, 11, 5, None)
assert refused(1, number=[1, 2], blob=[None, None], shape=[1, 2]) == (1, "shape")
assert refused(1, number=[1, -1], blob=[None, None])[0] == 1
assert refused(1, number=[1, 1 << 31], blob=[None, None]) == (1, "number")
assert refused(1, number=[1], blob=[None], small=[3]) == (0, "small")

def many(numbers, is_test, big, names):
    items = [
        dict(number=n, flag=int(b), pairs=[dict(name=name) for name in some])
        for n, b, some in zip(numbers, big, names)
    ]
    return odd_codecs.MANY.build(dict(flags=dict(is_test=is_test), span=numbers[-1] - numbers[0], parts=items))

names = [[], ["a", "bc"], ["d" * 255]]
pairs = [[dict(name=name) for name in some] for some in names]
rows = dict(number=[7, 5, 1 << 20], pairs=pairs, is_big=[True, False, True])
assert encoded(2, **rows, is_test=[True] * 3) == many(rows["number"], True, rows["is_big"], names)
# What changes with the rows fits no more: the entry ends before.
far = dict(number=[0, 1, 1 << 40, (1 << 40) + 1], pairs=[[]] * 4)
none = [False, False]
assert encoded(2, **far) == many(far["number"][:2], False, none, [[], []]) + many(far["number"][2:], False, none, [[], []])
assert refused(2, number=[1], pairs=[[dict(name="n" * 256)]]) == (0, "pairs.name")
"""


def succeeds(folder: Path, text: str, program: str) -> None:
    """Run a program with the codecs of a schema, the kernels as plain Python."""
    written(folder, {"codecgen.yaml": MANIFEST, "format.yaml": text})
    roots = [folder, *(ROOT / name for name in ("generator", "generated", "pipeline")), ROOT]
    environment = dict(
        os.environ, NUMBA_DISABLE_JIT="1", PYTHONPATH=os.pathsep.join(map(str, roots))
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_fields_that_are_made_of_others(tmp_path: Path) -> None:
    succeeds(tmp_path, FORMAT, PROGRAM)


def programs(text: str = FORMAT) -> list[WriteProgram]:
    files = {"codecgen.yaml": MANIFEST, "format.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    assert render(found + run(model), files) == ""
    plan = make_plan(model)
    view = plan_view(plan, model.views["packets"])
    return [write_program(plan, view, case) for case in view.cases]


def by_name(ops: tuple[WriteOp, ...]) -> dict[str, WriteOp]:
    return {op.field.name: op for op in ops}


def test_the_condition_of_rows_decides_what_is_there() -> None:
    lone, _ = programs()
    ops = by_name(lone.row)
    assert isinstance(ops["not_round"], Constant) and ops["not_round"].value == 5
    assert isinstance(ops["only_flat"], Absent)
    order = [op.field.name for op in lone.row_order]
    assert order.index("tail") < order.index("early")


def test_only_what_ranges_leave_open_is_asked() -> None:
    lone, many = programs()
    ops = by_name(lone.row)
    number, after, shape = ops["number"], ops["after"], ops["shape"]
    assert isinstance(number, Number) and isinstance(after, Number) and isinstance(shape, Number)
    assert number.limits == Limits(-(1 << 31), (1 << 31) - 1)
    assert not after.limits  # one more than 32 bits
    assert shape.limits == Limits(0, 2)
    flags, span = by_name(many.around)["flags"], by_name(many.around)["span"]
    assert isinstance(flags, Bits) and not any(m.limits for m in flags.members)
    assert isinstance(span, Number) and span.running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("tail: number,", "tail: entry.early, ", None),
        ("after: {type: i64, default: number + 1}", "after: {type: u8, default: 256 + 1}", '"after" is written as the constant 257 against its type or enum'),
        ("{shape: shape, tail", "{shape: 7, tail", '"shape" is written as the constant 7 against its type or enum'),
        ("level: {at: 0-1, default: 2}", "level: {at: 0-1}", None),
        ("{is_test: first(is_test)}", "{is_test: first(is_test), level: 4}", '"flags" is made of bits level that 4 does not fit'),
        ("  pairs: {array: pair, count: u8}", "  pairs: {array: pair, count: u8}\n  rest: {array: pair, count: u8, at_least: 1}", '"rest" is an array that is not written'),
        ("is_big: item.flag, small: 0", "is_big: item.flag, small: size", '"size" is used while rows are written'),
        ("when: shape != round, default: 5", "when: number != 3, default: 5", '"not_round" is present or absent by a condition'),
        ("when: shape != round, default: 5", "when: number >= 0, default: 5", None),
        ("  number: i32\n", "  number: {type: i32, refuse: shape == square}\n", '"number" is given a value that its checks reject'),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_by_the_field(
    before: str, after: str, message: str | None
) -> None:
    text = FORMAT.replace(before, after)
    assert text != FORMAT
    files = {"codecgen.yaml": MANIFEST, "format.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    found += run(model)
    if message is None:
        if not found:
            assert arrow.emit(make_plan(model)).files
        return
    assert render(found, files) == ""
    result = arrow.emit(make_plan(model))
    assert not result.files
    assert message in render(list(result.diagnostics), files)


VERSIONS = """\
layout: note
versions: 0-1
fields:
  kind: {type: u8, is: version}
  size: {type: u32, measures: rest}
  number: i32
  more: {type: i32, versions: 1+}
---
choice: notes
by: kind
cases: {0: note@0, 1: note@1}
---
view: packets
of: notes
columns:
  number: {type: int64}
  more: {type: int32, nullable: true}
rows:
  - of: note
    when: kind == 0
    columns: {number: number}
    write:
      entry: {number: number, more: 0}
  - of: note
    when: kind == 1
    columns: {number: number, more: if kind == 1 then more else null}
    write:
      entry: {number: number, more: if more == null then 0 else more}
"""


def test_rows_of_other_versions_are_none_to_write() -> None:
    files = {"codecgen.yaml": MANIFEST, "format.yaml": VERSIONS}
    model, found = loader.load(files)
    assert model is not None
    assert render(found + run(model), files) == ""
    result = arrow.emit(make_plan(model))
    assert not result.diagnostics
    cases = [
        line.split('"')[1]
        for line in result.files["odd_codecs/arrow/packets_writer.py"].split("\n")
        if "WriteCase(" in line and '"' in line
    ]
    assert cases == ["note_v0", "note_v1"]


CROSSED = FORMAT
for before, after in (
    ("  blob: {bytes: varint, none: -100}", "  blob: {bytes: u8}\n  blot: {bytes: varint, none: -100}"),
    ("  blob: {type: binary, nullable: true}", "  blob: {type: binary, nullable: true}\n  blot: {type: binary, nullable: true}"),
    ("blob: blob, shape: shape, is_test", "blob: blob, blot: blot, shape: shape, is_test"),
    ("number: number, blob: blob}", "number: number, blob: blob, blot: blob}"),
):  # fmt: skip
    assert before in CROSSED
    CROSSED = CROSSED.replace(before, after)
"""``blot`` is read from a field that another column is written to."""
REFUSED = (
    PROGRAM[: PROGRAM.index("def lone(")]
    + """
assert refused(1, number=[1], blob=[b"a"], blot=[b"a"]) == (0, "blot")
assert refused(1, number=[1], blob=[None]) == (0, "blob")
assert encoded(1, number=[1], blob=[b"a"])
"""
)


@pytest.mark.slow
def test_a_column_that_is_read_from_elsewhere_is_refused(tmp_path: Path) -> None:
    succeeds(tmp_path, CROSSED, REFUSED)
