"""Workers that Spark tells how much memory they may have."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from codecgen.runtime.arrow.memory_limit import KERNELS_NEED, room
from tests.paths import ROOT
from tests.spark.logs import numbered

resource = pytest.importorskip("resource")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there a limit is kept")

LIMIT_MIB = 640
BATCHES = 1200
ROWS_A_BATCH = 100
READ = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

lane, path, mark = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.executor.pyspark.memory", "640m").getOrCreate()
if lane == "connector":
    from pyspark_kafka_log import enable
    enable(spark)
frame = spark.read.format("kafka-log").load(path)
row = frame.selectExpr("count(value)", "sum(length(value))").collect()[0]
limits = set()
for process in Path("/proc").iterdir():
    try:
        workers = b"pyspark.daemon" in (process / "cmdline").read_bytes()
        if workers and mark.encode() in (process / "environ").read_bytes():
            lines = (process / "limits").read_text().splitlines()
            limits |= {line.split()[3] for line in lines if line.startswith("Max address space")}
    except OSError:
        pass
print(*row, *limits - {"unlimited"})
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("lane", ["connector", "Python source"])
def test_a_limit_is_kept_and_enough(lane: str, tmp_path: Path) -> None:
    segment = tmp_path / "t-0" / f"{0:020}.log"
    segment.parent.mkdir()
    data = numbered(ROWS_A_BATCH, BATCHES, pad=300)
    segment.write_bytes(data)
    assert len(data) > 32 << 20
    mark = uuid.uuid4().hex
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    told = {"PYTHONPATH": os.pathsep.join(roots), "PYSPARK_PYTHON": sys.executable, "MARK": mark}
    done = subprocess.run(
        [sys.executable, "-c", READ, lane, str(tmp_path), mark],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows, size, *limits = done.stdout.split()
    assert int(rows) == ROWS_A_BATCH * BATCHES
    assert int(size) > 300 * ROWS_A_BATCH * BATCHES
    assert limits == [str(LIMIT_MIB << 20)]


def within(extra: int) -> str:
    """The reader that is taken where a process may still map so many bytes."""
    code = (
        "import resource, sys, numpy, pyarrow\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + int(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "from codecgen.runtime.arrow.decoder import load_kernels\n"
        "from kafka_codecs.arrow.records import RECORDS\n"
        "print(load_kernels(RECORDS).__name__, 'numba' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(extra)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_no_compiler_where_there_is_no_room() -> None:
    pytest.importorskip("numba")
    assert within(KERNELS_NEED // 2) == "kafka_codecs.arrow.records_numpy False"
    assert within(3 * KERNELS_NEED) == "kafka_codecs.arrow.records_kernels True"
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert room() is None
