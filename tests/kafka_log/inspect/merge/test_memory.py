"""Memory of a merge, which grows with the number of batches: as the documentation says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.paths import ROOT
from tests.support.peak_memory import PEAK_KIB, needs_peak
from tests.support.replicas import Entry, Made

pytestmark = [pytest.mark.slow, needs_peak]

FEW, MANY = 20_000, 200_000
SEGMENTS = 10
REPLICAS = 2

RUN = f"""
import shutil, sys
from kafka_log import LogDirectory

def merge(root):
    LogDirectory(f"{{root}}/0").merge([f"{{root}}/{{i}}" for i in range(1, {REPLICAS})], f"{{root}}/out")
    shutil.rmtree(f"{{root}}/out")
    return {PEAK_KIB} * 1024

few, many = sys.argv[1:]
merge(few)  # loads kernels
before = merge(few)
print(merge(many) - before)
"""


def put(root: Path, batches: int) -> Path:
    """Replicas of one partition with small batches. No checksum covers the base offset, so that all have the same bytes after it."""
    made = np.frombuffer(Entry(0, 0, 0, (Made(0, b"k", b"v"),)).built(), np.uint8)
    each = batches // SEGMENTS
    for k in range(SEGMENTS):
        data = np.tile(made, (each, 1))
        base = np.arange(k * each, (k + 1) * each, dtype=">i8")
        data[:, :8] = base.view(np.uint8).reshape(-1, 8)
        for number in range(REPLICAS):
            directory = root / str(number) / "t-0"
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{k * each:020d}.log").write_bytes(data.tobytes())
    return root


def test_memory_for_each_batch(tmp_path: Path) -> None:
    """The documentation states the most that a batch of a replica takes. It may be too much by a third, and not too little."""
    few, many = put(tmp_path / "few", FEW), put(tmp_path / "many", MANY)
    roots = [str(ROOT / part) for part in ("generator", "generated", "pipeline")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(few), str(many)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(tmp_path)
    each = int(done.stdout) / (REPLICAS * (MANY - FEW))
    for path in ("docs/tool/merge.md", "pipeline/kafka_log/log_directory.py"):
        stated = re.search(r"about (\d+) bytes for each batch", (ROOT / path).read_text("utf-8"))
        assert stated is not None and 2 / 3 * int(stated[1]) < each <= int(stated[1]), each
