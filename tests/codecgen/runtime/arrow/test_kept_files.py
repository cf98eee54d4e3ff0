"""Files of machine code that are damaged, half written, written by several at once, or cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.kept_code import KeptFiles
from codecgen.runtime.arrow.primitives import compiling
from tests.support.kernel_cache import (
    CALL,
    Tree,
    tree,
)

__all__ = ["tree"]

needs_compiler = pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")

KEY, OTHER = ("int64", ("x86", "cpu"), "body"), ("float64", ("x86", "cpu"), "body")
LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # or Python itself leaves half a file
signal.signal(signal.SIGXFSZ, signal.{action})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
"""
"""A file may have 1000 bytes. ``SIG_IGN``: a write of more fails, as on a full disk; ``SIG_DFL``: it kills the process."""

DAMAGED = """
import importlib
import json
import sys
from pathlib import Path
import numpy as np
import small

(path,) = Path("__pycache__").glob("*.nbc")
whole = path.read_bytes()
data = np.array([14] + [0] * 100, np.uint8)
pickled = b"\\x80\\x04."
damages = [whole[:n] for n in (0, 1, 11, 12, 43, 44, 45, 200, len(whole) // 2, len(whole) - 1)]
damages += [whole + b"x", bytes(len(whole)), pickled, whole[:44] + pickled, b"\\xff" * 100]
for at in range(0, len(whole), max(len(whole) // 10, 1)):
    damages.append(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
for damage in [*damages, None]:
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    importlib.reload(small)
    assert int(small.kernel(data.ctypes.data)) == 7
    assert not small.kernel.stats.cache_hits
    importlib.reload(small)
    assert int(small.kernel(data.ctypes.data)) == 7
    assert sum(small.kernel.stats.cache_hits.values()) == 1, len(damage)
print(json.dumps(len(damages)))
"""


def names(tree: Tree) -> list[str]:
    """The kinds of files that are kept for the kernel."""
    folder = tree.folder / "__pycache__"
    return sorted(path.suffix for path in folder.iterdir() if path.suffix != ".pyc")


def start(tree: Tree, program: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    environment["PYTHONPATH"] = str(tree.folder)
    command = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, cwd=tree.folder, text=True, **pipes)


@needs_compiler
@pytest.mark.slow
def test_damaged_files_are_made_again(tree: Tree) -> None:
    assert tree.run(CALL) == [7, 0]
    assert tree.run(DAMAGED) >= 25
    assert names(tree) == [".nbc"]


@needs_compiler
@pytest.mark.slow
def test_processes_that_begin_at_once(tree: Tree) -> None:
    tree.run("import small\nprint(1)")  # their bytecode is not what is asked about
    running = [start(tree, CALL) for _ in range(3)]
    for process in running:
        out, wrong = process.communicate()
        assert process.returncode == 0, wrong
        assert out.startswith("[7, ")
    assert names(tree) == [".nbc"]
    assert tree.run(CALL) == [7, 1]


@needs_compiler
@pytest.mark.slow
def test_a_full_disk_is_done_without(tree: Tree) -> None:
    tree.run("import small\nprint(1)")
    assert tree.run(LIMITED.format(action="SIG_IGN") + CALL) == [7, 0]
    assert names(tree) == []
    assert tree.run(CALL) == [7, 0]
    assert tree.run(LIMITED.format(action="SIG_IGN") + CALL) == [7, 1]


@needs_compiler
@pytest.mark.slow
def test_a_process_that_is_killed_while_it_writes(tree: Tree) -> None:
    tree.run("import small\nprint(1)")
    process = start(tree, LIMITED.format(action="SIG_DFL") + CALL)
    process.communicate()
    assert process.returncode == -signal.SIGXFSZ
    assert names(tree) == [".tmp"]
    assert tree.run(CALL) == [7, 0]
    assert names(tree) == [".nbc"]
    assert tree.run(CALL) == [7, 1]


# ---------------------------------------------------------------- the files by themselves


def test_what_was_saved_is_found(tmp_path: Path) -> None:
    kept = KeptFiles(str(tmp_path), "f", "source 1")
    assert kept.load(KEY) is None
    kept.save(KEY, [1])
    kept.save(OTHER, [2])
    assert (kept.load(KEY), kept.load(OTHER)) == ([1], [2])
    kept.save(KEY, [3])
    assert (kept.load(KEY), kept.load(OTHER)) == ([3], [2])
    assert len(list(tmp_path.iterdir())) == 2
    assert KeptFiles(str(tmp_path), "g", "source 1").load(KEY) is None
    kept.flush()
    assert (kept.load(KEY), kept.load(OTHER)) == (None, None)
    assert not list(tmp_path.iterdir())


def test_what_belongs_to_something_else_is_not_believed(tmp_path: Path) -> None:
    kept = KeptFiles(str(tmp_path), "f", "source 1")
    kept.save(KEY, [1])
    assert KeptFiles(str(tmp_path), "f", "source 2").load(KEY) is None
    assert kept.load((*KEY[:2], "another body")) is None
    assert kept.has_code()
    assert not KeptFiles(str(tmp_path), "f", "source 2").has_code()
    assert not KeptFiles(str(tmp_path), "[f]", "source 1").has_code()
    kept.path(OTHER).write_bytes(kept.path(KEY).read_bytes())
    assert kept.load(OTHER) is None
    kept.save((*KEY[:2], "another body"), [4])
    assert len(list(tmp_path.iterdir())) == 2  # it took the place of the first


@given(st.data())
def test_no_changed_byte_is_believed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    kept = KeptFiles(str(folder), "f", "source 1")
    kept.save(KEY, list(range(20)))
    path = kept.path(KEY)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytes([whole[at] ^ data.draw(st.integers(1, 255))])
    end = data.draw(st.sampled_from((whole[at + 1 :], b"")))
    path.write_bytes(whole[:at] + changed + end)
    assert kept.load(KEY) is None
    assert not path.exists()
    kept.save(KEY, [5])
    assert kept.load(KEY) == [5]


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    kept = KeptFiles(str(tmp_path), "f", "source 1")
    kept.save(KEY, [1])

    class Unpicklable:
        def __reduce__(self) -> str:
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        kept.save(KEY, Unpicklable())
    assert kept.load(KEY) == [1]
    assert len(list(tmp_path.iterdir())) == 1
