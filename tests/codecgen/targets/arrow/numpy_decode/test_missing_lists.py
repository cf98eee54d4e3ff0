"""Lists that some cases of a view do not have: empty ones, of numbers and of structs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.arrow.chunks import Chunk
from codecgen.runtime.arrow.decoder import Decoder, Rows, choose
from tests.codecgen.generated import package_of

SCHEMA = """\
choice: entry
by: kind
cases: {1: listed, 2: bare}
---
layout: listed
fields:
  kind: {type: u8, const: 1}
  size: {type: i32, measures: rest}
  parts: {array: item, count: u8}
---
layout: item
fields:
  numbers: {array: i8, count: varint}
  pairs: {array: pair, count: varint}
  late: {type: u8, when: "first(numbers) > 5"}  # kernels and NumPy leave the layout to the codecs
---
layout: pair
fields: {a: u8, b: u8}
---
layout: bare
fields:
  kind: {type: u8, const: 2}
  size: {type: i32, measures: rest}
  number: u8
---
view: rows
of: entry
columns:
  numbers: {list: int8}
  pairs: {list: {a: {type: uint8}}}
  number: {type: uint8, nullable: true}
rows:
  - of: listed
    each: parts
    columns: {numbers: item.numbers, pairs: item.pairs}
  - of: bare
    columns: {number: number}
"""


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["kernels", "numpy"])
def test_they_are_empty(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"missing_lists_{reader}"
    package: Any = package_of(SCHEMA, tmp_path, name, "construct,arrow")
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    view = importlib.import_module(f"{name}.arrow.rows").ROWS
    data = package.BARE.build({"number": 7})
    chunk = Chunk(len(data))
    chunk.array[: len(data)] = list(data)
    chunk.size = len(data)
    module = importlib.import_module(f"{name}.arrow.rows_{reader}")
    decoder = Decoder(view, choose(view, ("numbers", "pairs", "number")), kernels=module)
    rows = [row for found in decoder.decode(chunk, 0) if isinstance(found, Rows) for row in found.batch.to_pylist()]  # fmt: skip
    assert rows == [{"numbers": [], "pairs": [], "number": 7}]
    for module_name in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module_name]
