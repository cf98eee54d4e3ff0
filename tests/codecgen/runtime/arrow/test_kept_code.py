"""Compiled kernels are kept on disk, and never found again once a primitive that is part of them has changed."""

from __future__ import annotations

import pytest

from codecgen.runtime.arrow.primitives import compiling
from tests.paths import VECTORS
from tests.support.kernel_cache import CALL, Tree
from tests.support.kernel_cache import tree as tree

pytestmark = pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")

IS_COMPILED = """
import json
import numpy as np
from codecgen.runtime.arrow.primitives.compiling import is_compiled
from small import kernel
before = is_compiled(kernel)
kernel(np.zeros(100, np.uint8).ctypes.data)
print(json.dumps([before, is_compiled(kernel), is_compiled(kernel.py_func)]))
"""
SCAN = """
import json
import sys
from kafka_log.segment.scanner import header_scanner
from kafka_codecs.arrow import batches_kernels
scanner = header_scanner(sys.argv[1], ["base_offset", "producer_epoch"], engine="arrow")
rows = [row for batch in scanner for row in batch.to_pylist()]
hits = [k.stats.cache_hits for k in batches_kernels.KERNELS[2]]
print(json.dumps([rows, sum(n for found in hits for n in found.values())]))
"""


@pytest.mark.soak
def test_a_change_of_a_primitive_is_noticed(tree: Tree) -> None:
    assert tree.run(CALL) == [7, 0]
    assert tree.run(CALL) == [7, 1]
    before, after = "return (value >> 1) ^ -(value & 1), after", "return value + 1, after"
    tree.change("varints", before, after)
    assert tree.run(CALL) == [15, 0]
    assert tree.run(CALL) == [15, 1]
    tree.change("varints", after, before)
    assert tree.run(CALL) == [7, 1]  # what was compiled with these primitives is there still


@pytest.mark.slow
def test_kernels_are_compiled_once_called_or_kept(tree: Tree) -> None:
    assert tree.run(IS_COMPILED) == [False, True, False]
    assert tree.run(IS_COMPILED) == [True, True, False]
    tree.change("varints", "return (value >> 1) ^ -(value & 1), after", "return value + 1, after")
    assert tree.run(IS_COMPILED) == [False, True, False]


@pytest.mark.slow
def test_a_change_in_a_file_that_the_kernel_does_not_name_is_noticed(tree: Tree) -> None:
    """``varint`` stands on ``load_u8``, which is in another file."""
    assert tree.run(CALL) == [7, 0]
    tree.change("memory", "_loader(8, False, False)", "_loader(8, True, False)")
    assert tree.run(CALL) == [7, 0]


@pytest.mark.slow
def test_generated_kernels_are_kept_and_dropped_alike(tree: Tree) -> None:
    path = str(VECTORS / "matrix" / "v2-none-create.log")
    rows, hits = tree.run(SCAN, path)
    assert rows[0]["producer_epoch"] == -1 and hits == 0
    assert tree.run(SCAN, path) == [rows, 2]
    tree.change("memory", "_loader(16, True, True)", "_loader(8, False, True)")
    changed, hits = tree.run(SCAN, path)
    assert changed == [row | {"producer_epoch": 255} for row in rows] and hits == 0


@pytest.mark.slow
def test_a_place_that_cannot_be_written_to_is_done_without(tree: Tree) -> None:
    (tree.folder / "__pycache__").write_bytes(b"")
    nowhere = str(tree.folder / "small.py" / "home")
    program = "import os\n" + "".join(
        f"os.environ[{name!r}] = {nowhere!r}\n"
        for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    )
    assert tree.run(program + CALL) == [7, 0]
    assert tree.run(program + CALL) == [7, 0]
    assert not list(tree.folder.glob("*.nb[ci]"))
