"""Views of made-up schemas, read by their kernels as plain Python with each access to memory checked, compiled, or by NumPy."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow.decoder import Decoder, Rejected, Rows, choose
from codecgen.runtime.arrow.view import View
from tests.laws.memory import Memory, TrackedChunk, executed, watched


@cache
def plain_kernels(name: str) -> SimpleNamespace:
    """A module of kernels as plain Python."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return SimpleNamespace(**executed(name, Path(spec.origin).read_text("utf-8")))


def view_of(package: str, name: str) -> View:
    found: View = getattr(importlib.import_module(f"{package}.arrow.{name}"), name.upper())
    return found


def decoded(
    view: View,
    data: bytes,
    names: list[str] | None = None,
    *,
    engine: str = "plain",
    **options: Any,
) -> tuple[list[Rows], list[Rejected]]:
    """What ``engine`` (plain, compiled, numpy) makes of some bytes; every batch is validated in full."""
    memory = Memory()
    kernels: Any
    if engine == "plain":
        kernels = plain_kernels(view.kernels)
    else:
        kernels = importlib.import_module(view.kernels if engine == "compiled" else str(view.numpy))
    decoder = Decoder(
        view, choose(view, names), kernels=kernels, allocate=memory.allocate, **options
    )
    chunk = TrackedChunk(len(data), memory)
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    for array in (decoder.table, decoder.out, decoder.state, decoder.room):
        memory.array(array)
    rows, rejected = [], []
    with watched(memory):
        for found in decoder.decode(chunk, 0):
            if isinstance(found, Rows):
                found.batch.validate(full=True)
                rows.append(found)
            else:
                rejected.append(found)
    return rows, rejected


def batches_of(rows: list[Rows]) -> list[pa.RecordBatch]:
    return [found.batch for found in rows]
