"""Two lists of one layout, whose columns show different members of it."""

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
layout: batch
fields:
  size: {type: i32, measures: rest}
  records: {array: item, count: i32}
---
layout: item
fields:
  one: {array: pair, count: i8}
  two: {array: pair, count: i8}
---
layout: pair
fields: {a: {bytes: u8}, b: {bytes: u8}}
---
view: pairs
of: batch
columns:
  one: {list: {a: {type: binary}}}
  two: {list: {b: {type: binary}}}
rows:
  - of: batch
    each: records
    columns: {one: item.one, two: item.two}
"""


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["kernels", "numpy"])
def test_each_list_has_its_members(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"shared_elements_{reader}"
    package: Any = package_of(SCHEMA, tmp_path, name, "construct,arrow")
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    view = importlib.import_module(f"{name}.arrow.pairs").PAIRS
    pairs = [{"a": b"1", "b": b"2"}, {"a": b"", "b": b"345"}]
    data = package.BATCH.build({"records": [{"one": pairs, "two": pairs}, {"one": [], "two": []}]})
    chunk = Chunk(len(data))
    chunk.array[: len(data)] = list(data)
    chunk.size = len(data)
    module = importlib.import_module(f"{name}.arrow.pairs_{reader}")
    decoder = Decoder(view, choose(view, ("one", "two")), kernels=module)
    rows = [row for found in decoder.decode(chunk, 0) if isinstance(found, Rows) for row in found.batch.to_pylist()]  # fmt: skip
    assert rows == [
        {"one": [{"a": b"1"}, {"a": b""}], "two": [{"b": b"2"}, {"b": b"345"}]},
        {"one": [], "two": []},
    ]
    for module_name in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module_name]
