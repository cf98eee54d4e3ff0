"""Names that a schema may choose collide with none of those that kernels have."""

from __future__ import annotations

import ast
import builtins
import keyword
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.plan import make_plan
from codecgen.plan.columns import plan_view
from codecgen.schema import loader
from codecgen.targets.arrow.function_printer import Names, Printer
from codecgen.targets.arrow.numba_decode.kernels import kernels_of
from codecgen.targets.arrow.numba_encode.kernels import encoders_of
from codecgen.targets.arrow.primitive_imports import NAMES
from tests.paths import ROOT
from tests.support.foreign_format import FORMAT as WRITTEN
from tests.support.generated_sources import written
from tests.support.other_layouts import FORMAT as SAMPLES
from tests.support.other_layouts import MANIFEST as PLAIN_MANIFEST
from tests.support.other_layouts import emitted

MANIFEST = "language: 1\npackage: hostile_codecs\ntitle: Names that collide\n"
FORMAT = """\
layout: batch
fields:
  kind: {type: u8, const: 1}
  size: {type: u32, measures: rest}
  crc: {type: u32, checksum: crc32c, covers: {from: crc_at}}
  crc_at: i32
  position: {type: i32, default: 4}
  top: i64
  top_before: i64
  first_seen: i32
  first_seen_data: {type: i32, default: 6}
  total: {type: u16, counts: elements}
  elements: {array: item}
---
layout: item
fields:
  x: i64
  x_data: i32
  seen_data: i32
  key: {bytes: i16, none: -1}
  h: {array: pair, count: u8}
  flag: i8
  x_at: {bytes: i8, none: -1}
  start_of_x: i32
  row_x: i32
---
layout: pair
fields:
  k: {bytes: u8}
  k_k: {bytes: i16, none: -1}
---
choice: batches
by: kind
cases: {1: batch}
---
view: hostile
of: batches
columns:
  x: {type: int64}
  x_data: {type: int32}
  rows: {type: int32}
  final: {type: int64}
  state: {type: int64}
  status: {type: int32}
  bytes: {type: int32, on_request: true, default: 0}
  tail_x: {type: int32, on_request: true, default: 4}
  h: {list: {k: {type: binary}, k_k: {type: binary, nullable: true}}}
  hk: {type: binary, nullable: true}
  load: {type: bool, default: 1}
  x_null: {type: int32, nullable: true}
  null_x: {type: int64, nullable: true}
  item_x: {type: int64}
  head_status: {type: int32}
  most_x: {type: int64}
  row: {type: int32}
  entry: {type: int64, on_request: true}
  before_entry_top: {type: int64, on_request: true}
  place_of_crc: {type: int32}
  x_at: {type: binary, nullable: true}
rows:
  - of: batch
    each: elements
    columns:
      x: item.x
      x_data: item.x_data
      rows: item.seen_data
      final: item.x
      state: item.x
      status: crc_at
      bytes: first_seen
      tail_x: position
      h: item.h
      hk: item.key
      load: if item.flag == 1 then 1 else 0
      x_null: if item.flag == 1 then item.x_data else null
      null_x: first(elements).x_data
      item_x: item.x
      head_status: crc_at
      most_x: item.x
      row: item.row_x
      entry: item.x
      before_entry_top: item.x
      place_of_crc: item.start_of_x
      x_at: item.x_at
    write:
      entry:
        crc_at: first(status)
        top: max(x)
        top_before: last(x)
        first_seen: first(bytes)
      item: {x: x, x_data: x_data, seen_data: rows, key: hk, h: h, flag: load, x_at: x_at, start_of_x: place_of_crc, row_x: row}
"""
PROGRAM = """
import pyarrow as pa
import hostile_codecs
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from codecgen.runtime.arrow.encoder import Encoder
from hostile_codecs.arrow import hostile_encoders, hostile_kernels
from hostile_codecs.arrow.hostile import HOSTILE
from hostile_codecs.arrow.hostile_writer import HOSTILE_WRITER
from tests.support.scanned_rows import unpacked

assert not hostile_kernels.JIT
rows = []
for i in range(6):
    group = i // 3
    load = i % 2 == 0
    rows.append(dict(
        x=i + 100, x_data=10 * i, rows=7 * i, final=i + 100, state=i + 100,
        status=-5 - group, bytes=60 + group, tail_x=4,
        h=[dict(k=b"k%d" % n, k_k=None if n else b"v") for n in range(i % 3)],
        hk=None if i == 4 else b"key%d" % i, load=load,
        x_null=10 * i if load else None, null_x=30 * group,
        item_x=i + 100, head_status=-5 - group, most_x=i + 100, row=-i, entry=i + 100,
        before_entry_top=i + 100, place_of_crc=3 * i, x_at=None if i == 2 else b"at" * i,
    ))
columns = choose(HOSTILE, [c.name for c in HOSTILE.columns])
schema = pa.schema([(c.name, arrow_type(c)) for c in columns])
batch = pa.RecordBatch.from_pylist(rows, schema)
data = b"".join(bytes(piece) for piece in Encoder(HOSTILE_WRITER, 1).encode([batch]))
chunk = Chunk(len(data))
chunk.view()[: len(data)] = data
chunk.size = len(data)
found = []
for item in Decoder(HOSTILE, columns, kernels=hostile_kernels).decode(chunk, 0):
    assert isinstance(item, Rows), item
    found += unpacked(item.batch)
assert found == rows, found
size = 5 + int.from_bytes(data[1:5], "big")
first, second = (hostile_codecs.BATCH.parse(part) for part in (data[:size], data[size:]))
for entry, group in ((first, 0), (second, 1)):
    assert [entry.crc_at, entry.top, entry.top_before] == [-5 - group] + [102 + 3 * group] * 2
    assert [item.x for item in entry["elements"]] == [100 + 3 * group + i for i in range(3)]
"""


@pytest.mark.slow
def test_columns_and_fields_that_collide_are_written_and_read(tmp_path: Path) -> None:
    written(tmp_path, {"codecgen.yaml": MANIFEST, "format.yaml": FORMAT})
    roots = [tmp_path, *(ROOT / name for name in ("generator", "generated", "pipeline")), ROOT]
    environment = dict(
        os.environ, NUMBA_DISABLE_JIT="1", PYTHONPATH=os.pathsep.join(map(str, roots))
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def generated() -> list[str]:
    return [
        *(
            p.read_text("utf-8")
            for p in (ROOT / "generated/kafka_codecs/arrow").glob("*_kernels.py")
        ),
        *(
            p.read_text("utf-8")
            for p in (ROOT / "generated/kafka_codecs/arrow").glob("*_encoders.py")
        ),
    ]


def modules(manifest: str, text: str) -> list[str]:
    files = emitted({"codecgen.yaml": manifest, "format.yaml": text})
    return [text for path, text in files.items() if path.endswith(("_kernels.py", "_encoders.py"))]


KERNELS = [*generated(), *modules(MANIFEST, FORMAT), *modules(PLAIN_MANIFEST, SAMPLES)]


@pytest.mark.share(4)
@pytest.mark.parametrize("text", KERNELS, ids=range(len(KERNELS)))
def test_no_local_name_hides_one_of_the_module(text: str) -> None:
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    constants = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    outside = [node.id for node in constants if isinstance(node, ast.Name)]
    outside += [function.name for function in functions]
    assert len(outside) == len(set(outside))
    taken = {*outside, *NAMES, *keyword.kwlist, *dir(builtins)}
    for function in functions:
        stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not is_read(n)}
        stored |= {argument.arg for argument in function.args.args}
        assert not stored & taken, function.name


def is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


@pytest.mark.share(2)
@pytest.mark.parametrize(("manifest", "text"), [(MANIFEST, FORMAT), (PLAIN_MANIFEST, WRITTEN)])
def test_every_variable_has_a_name_of_its_own(manifest: str, text: str) -> None:
    model, _ = loader.load({"codecgen.yaml": manifest, "format.yaml": text})
    assert model is not None
    plan = make_plan(model)
    count = 0
    for view in model.views.values():
        plan_of_view = plan_view(plan, view)
        for module in (
            kernels_of(plan, plan_of_view, "d")[0].module,
            encoders_of(plan, plan_of_view, "d")[0].module,
        ):
            for function in module.functions:
                printer = Printer(Names(module.names.taken))
                printer.function(function)
                assert len(set(printer.given.values())) == len(printer.given)
                assert not set(printer.given.values()) & module.names.taken
                count += len(printer.given)
    assert count > 300


def test_columns_that_end_as_their_parts_do_have_slots_of_their_own() -> None:
    text = FORMAT.replace(
        "  x_data: {type: int32}", "  x_offset_data: {type: int32}\n  x_data: {type: int32}"
    )
    text = text.replace(
        "      x_data: item.x_data", "      x_offset_data: item.x_data\n      x_data: item.x_data"
    )
    text = text.replace("  x: {type: int64}\n", "  x: {type: int64}\n  x_offset: {type: int64}\n")
    text = text.replace("      x: item.x\n", "      x: item.x\n      x_offset: item.x\n")
    for kernels in modules(MANIFEST, text):
        constants = [node for node in ast.parse(kernels).body if isinstance(node, ast.Assign)]
        names = [node.targets[0].id for node in constants if isinstance(node.targets[0], ast.Name)]
        assert len(names) == len(set(names))
        assert {"X_DATA", "X_OFFSET_DATA", "X_OFFSET_DATA_DATA"} <= set(names)


@pytest.mark.slow
def test_a_layout_may_be_called_as_a_primitive_is() -> None:
    text = SAMPLES.replace("single", "utf8")
    kernels, *_ = modules(PLAIN_MANIFEST, text)
    names = [node.name for node in ast.parse(kernels).body if isinstance(node, ast.FunctionDef)]
    assert "is_utf8_2" in names and "is_utf8" not in names
