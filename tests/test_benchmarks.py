"""The benchmarks run; what they find on a busy machine is nobody's business here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.slow

RUNS = {
    "decode": "--mib 1 --rounds 1 --rows D16 lz416 v1-gzip --without-java",
    "encode": "--mib 1 --rounds 1",
    "no_jit": "--mib 1 --rounds 1",
    "batch_headers": "--mib 1 --rounds 1 --without-java",
    "memory": "--mib 4 --keys 1000",
    "threads": "--mib 1 --rounds 2",
    "file_to_arrow": "--mib 1 --rounds 1 --without-java",
    "payloads": "--mib 1 --rounds 1",
    "schema_values": "--mib 1 --rounds 1",
    "verbs": "--mib 1 --rounds 1 --partitions 20",
}


@pytest.mark.share(ci=10)
@pytest.mark.parametrize("name", RUNS)
def test_a_small_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("aiokafka")
    pytest.importorskip("kafka")
    roots = [ROOT, *(ROOT / part for part in ("generator", "generated", "pipeline"))]
    page = tmp_path / f"{name}.md"
    command = [
        sys.executable,
        "-m",
        f"benchmarks.{name}",
        *RUNS[name].split(),
        "--output",
        str(page),
    ]
    done = subprocess.run(
        command,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, roots))),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    widths = {line.count("|") for line in rows}
    assert len(rows) > 3
    assert len(widths) <= 3
