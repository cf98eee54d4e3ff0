"""Which entries the kernels or NumPy readers of a generated view reject."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rejected, load_kernels, load_numpy_reader

LOADERS = pytest.mark.parametrize(
    "load", [load_numpy_reader, pytest.param(load_kernels, marks=pytest.mark.slow)]
)
"""The engines of a view: NumPy and, slow, the kernels."""


def decoders_of(
    package: ModuleType, view: str, out: Path, load: Callable[[Any], Any]
) -> tuple[Decoder, Decoder]:
    """Decoders of a view of a package that was generated into ``out``: with the rules of its layouts, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(out))
        found = getattr(importlib.import_module(f"{package.__name__}.arrow.{view}"), view.upper())
        kernels = load(found)
    ruled, unruled = (
        Decoder(found, found.columns, rules=rules, kernels=kernels) for rules in (True, False)
    )
    return ruled, unruled


def rejected(decoder: Decoder, parts: Sequence[bytes]) -> list[int]:
    """The indexes of the entries ``parts``, which lie one after the other, that a decoder rejects."""
    starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
    data = b"".join(parts)
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    return [starts.index(x.start) for x in decoder.decode(chunk, 0) if isinstance(x, Rejected)]
