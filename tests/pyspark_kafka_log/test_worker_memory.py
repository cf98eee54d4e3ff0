"""Workers that Spark tells how much memory they may have."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import uuid
import zlib
from pathlib import Path

import pytest

from codecgen.runtime.arrow.memory_limit import KERNELS_NEED, room
from kafka_codecs import LOG_ENTRY
from kafka_log import discover, read_table
from kafka_log.segment.cursor import CHUNK_BYTES
from pyspark_kafka_log.columns import DEFAULT_COLUMNS, METADATA_COLUMNS
from pyspark_kafka_log.rows import rows_bytes
from pyspark_kafka_log.worker_memory import (
    LIMIT_MIB,
    MIN_MIB,
    WorkerMemoryError,
    apply_memory_limit,
    explain_memory_errors,
    memory_limit_mib,
)
from tests.paths import ROOT
from tests.paths import SAMPLES as ALL_SAMPLES
from tests.support.record_batches import record_batches
from tests.support.spark_logs import batch

resource = pytest.importorskip("resource")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there a limit is kept")

READ = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

lane, limit, mark, *paths = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.executor.pyspark.memory", limit).getOrCreate()
if lane == "connector":
    from pyspark_kafka_log import enable
    enable(spark)
for path in paths:
    frame = spark.read.format("kafka-log").option("includeHeaders", "true").load(path)
    print(*frame.selectExpr(*SUMS).collect()[0])
limits = set()
for process in Path("/proc").iterdir():
    try:
        workers = b"pyspark.daemon" in (process / "cmdline").read_bytes()
        if workers and mark.encode() in (process / "environ").read_bytes():
            lines = (process / "limits").read_text().splitlines()
            limits |= {line.split()[3] for line in lines if line.startswith("Max address space")}
    except OSError:
        pass
print(*limits - {"unlimited"})
"""
SAMPLES = ALL_SAMPLES / "kafka-4.x"
SUMS = [
    "count(*)",
    "sum(offset)",
    "sum(length(value))",
    "sum(crc32(value))",
    "sum(ifnull(size(headers), 0))",
]
SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
"""What docs/spark/connector.md says for the Python source."""

SHAPES: dict[str, tuple[str, int, int, int]] = {
    "none, small batches": ("none", 100, 300, 64),
    "zstd, small batches": ("zstd", 100, 300, 64),
    "none, batches of 1 MiB": ("none", 2500, 400, 16),
    "zstd, batches of 1 MiB": ("zstd", 2500, 400, 16),
    "lz4, batches of 1 MiB": ("lz4", 2500, 400, 16),
    "none, many rows": ("none", 40_000, 10, 16),
    "zstd, large rows": ("zstd", 5, 200_000, 16),
}
"""Codec, records of a batch, bytes of a value, MiB of the segment."""


def segment(directory: Path, codec: str, rows: int, size: int, mib: int) -> list[int]:
    """A log of batches that differ in their offsets alone, which no checksum is of; what the query says of it."""
    noise = random.Random(codec)
    values = [noise.randbytes(size // 2).hex().encode() for _ in range(rows)]
    one = LOG_ENTRY.build(batch(0, list(values), attributes={"compression": codec}))
    path = directory / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    count = (mib << 20) // len(one)
    with path.open("wb") as file:
        for number in range(count):
            file.write(struct.pack(">q", number * rows) + one[8:])
    return summed(values, count)


def summed(values: list[bytes], count: int = 1) -> list[int]:
    """The sums over a log with these values, so many times."""
    rows = count * len(values)
    crcs = sum(map(zlib.crc32, values))
    return [rows, rows * (rows - 1) // 2, count * sum(map(len, values)), count * crcs, 0]


def of_samples() -> list[int]:
    """The same of a broker's directory, by the reference codecs."""
    rows = read_table(SAMPLES, ["offset", "value", "headers"], engine="construct").to_pylist()
    values = [row["value"] for row in rows if row["value"] is not None]
    return [
        len(rows),
        sum(row["offset"] for row in rows),
        sum(map(len, values)),
        sum(map(zlib.crc32, values)),
        sum(len(row["headers"]) for row in rows if row["headers"] is not None),
    ]


def asked(lane: str, limit: str, *paths: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Spark with a limit, in a process of its own."""
    mark = uuid.uuid4().hex
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    told = {"PYTHONPATH": os.pathsep.join(roots), "PYSPARK_PYTHON": sys.executable, "MARK": mark}
    code = READ.replace("SUMS", repr(SUMS))
    return subprocess.run(
        [sys.executable, "-c", code, lane, limit, mark, *map(str, paths)],
        env={**os.environ, **told, **more},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.share(ci=0)
@pytest.mark.parametrize(
    ("lane", "mib", "environment"),
    [
        ("connector", 512, {}),
        ("connector", 384, {}),
        ("Python source", 640, {}),
        ("Python source", 512, SPARING),
    ],
)
def test_a_limit_is_kept_and_enough(
    lane: str, mib: int, environment: dict[str, str], tmp_path: Path
) -> None:
    logs = {
        tmp_path / str(i): segment(tmp_path / str(i), *shape)
        for i, shape in enumerate(SHAPES.values())
    }
    logs[SAMPLES] = of_samples()
    done = asked(lane, f"{mib}m", *logs, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    *rows, limits = done.stdout.splitlines()
    for name, wanted, found in zip([*SHAPES, "samples"], logs.values(), rows, strict=True):
        assert [int(number) for number in found.split()] == wanted, name
    assert limits == str(mib << 20)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "lane", ["connector", pytest.param("Python source", marks=pytest.mark.soak)]
)
def test_too_little_is_said(lane: str, tmp_path: Path) -> None:
    segment(tmp_path / "small", "none", 10, 10, 1)
    done = asked(lane, "256m", tmp_path / "small")
    assert done.returncode != 0
    assert (
        f"spark.executor.pyspark.memory lets each Python worker have 256 MiB, it needs {MIN_MIB}"
        in done.stderr
    )
    segment(tmp_path / "one", "zstd", 2, 100 << 20, 150)
    done = asked(lane, "512m", tmp_path / "one", **SPARING)
    assert done.returncode != 0
    assert "there is not enough memory" in done.stderr
    assert "lets each Python worker have 512 MiB; raise it" in done.stderr


def printed(code: str, number: int) -> str:
    """What a program prints that is given a number, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(number)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def said_of_threads(stack_mib: int) -> str:
    """What is said of a thread whose stack is so large, where there is room for one of 32 MiB."""
    code = (
        "import os, resource, sys, threading\n"
        "from pyspark_kafka_log.worker_memory import LIMIT_MIB, WorkerMemoryError, explain_memory_errors\n"
        "os.environ[LIMIT_MIB] = '400'\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + (32 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "threading.stack_size(int(sys.argv[1]) << 20)\n"
        "try:\n"
        "    with explain_memory_errors():\n"
        "        threading.Thread(target=print, args=('it runs',)).start()\n"
        "except WorkerMemoryError as error:\n"
        "    print(error)\n"
    )
    return printed(code, stack_mib)


@pytest.mark.parametrize(
    ("limit", "error", "is_told"),
    [
        ("400", MemoryError("malloc of size 5 failed"), True),
        ("400", RuntimeError("can't start new thread"), True),
        ("400", RuntimeError("generator raised StopIteration"), False),
        ("400", WorkerMemoryError("kafka-log: told already"), False),
        ("400", ValueError("can't start new thread"), False),
        ("-1", MemoryError("malloc of size 5 failed"), False),
        (None, RuntimeError("can't start new thread"), False),
    ],
)
def test_which_errors_say_what_to_do(
    limit: str | None, error: Exception, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of memory, where there is a limit; all others stay as they are."""
    monkeypatch.delenv(LIMIT_MIB, raising=False)
    if limit is not None:
        monkeypatch.setenv(LIMIT_MIB, limit)
    with (
        pytest.raises(type(error) if not is_told else WorkerMemoryError) as caught,
        explain_memory_errors(),
    ):
        raise error
    if is_told:
        assert f"({error}): spark.executor.pyspark.memory lets each" in str(caught.value)
        assert "have 400 MiB" in str(caught.value)
    else:
        assert caught.value is error


@pytest.mark.parametrize(("told", "limit"), [("1", 1), ("4096", 4096), ("0", None), ("-1", None)])
def test_the_limit_that_spark_tells(told: str, limit: int | None) -> None:
    assert memory_limit_mib({LIMIT_MIB: told}) == limit
    assert memory_limit_mib({}) is None


@pytest.mark.parametrize("told", [1, MIN_MIB - 1])
def test_too_low_a_limit_is_refused_before_it_is_taken(told: int) -> None:
    with pytest.raises(WorkerMemoryError, match=f"have {told} MiB, it needs {MIN_MIB} at least"):
        apply_memory_limit({LIMIT_MIB: str(told)})


@pytest.mark.slow
def test_a_limit_is_taken_in_bytes() -> None:
    """Of the address space, as Spark's workers do; a lower one that there is stays; without one nothing is done."""
    code = (
        "import os, resource, sys\n"
        "for name in ('ARROW_DEFAULT_MEMORY_POOL', 'OPENBLAS_NUM_THREADS'): os.environ.pop(name, '')\n"
        "from pyspark_kafka_log.worker_memory import LIMIT_MIB, apply_memory_limit\n"
        "found = [resource.getrlimit(resource.RLIMIT_AS)[0] >> 20]\n"
        "for told in ({}, {LIMIT_MIB: sys.argv[1]}, {LIMIT_MIB: '3000'}):\n"
        "    apply_memory_limit(told)\n"
        "    found.append(resource.getrlimit(resource.RLIMIT_AS)[0] >> 20)\n"
        "    found.append(os.environ.get('ARROW_DEFAULT_MEMORY_POOL'))\n"
        "print(found[1] == found[0], *found[2:], os.environ['OPENBLAS_NUM_THREADS'])\n"
    )
    assert printed(code, 2000) == "True None 2000 system 2000 system 1"


@pytest.mark.slow
def test_no_room_for_a_thread() -> None:
    assert said_of_threads(1) == "it runs"
    assert "there is not enough memory" in said_of_threads(64)
    assert "lets each Python worker have 400 MiB; raise it" in said_of_threads(64)


def fitted(mib: int) -> list[int]:
    """How large buffers are under a limit."""
    code = (
        "import resource, sys\n"
        "most = int(sys.argv[1]) << 20\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "from kafka_log.segment.cursor import CHUNK_BYTES\n"
        "from codecgen.runtime.arrow.memory_limit import limit_size\n"
        "print(CHUNK_BYTES, limit_size(64 << 20))\n"
    )
    return [int(number) for number in printed(code, mib).split()]


@pytest.mark.slow
def test_buffers_are_smaller_where_there_is_little_room() -> None:
    assert fitted(512) == [2 << 20, 16 << 20]
    assert fitted(4096) == [8 << 20, 64 << 20]
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert CHUNK_BYTES == 8 << 20


def test_sizes_of_rows_are_those_of_arrow() -> None:
    """All columns, nulls, and parts of larger batches; a bitmap has whole bytes."""
    segments = [s for p in discover(SAMPLES) if p.topic == "codecs" for s in p.segments]
    for rows in record_batches(segments, [*DEFAULT_COLUMNS, "headers", *METADATA_COLUMNS]):
        for start, count in ((0, rows.num_rows), (3, 7), (rows.num_rows, 0)):
            part = rows.slice(start, count)
            assert abs(rows_bytes(part) - part.nbytes) <= 8 * len(part.schema.names)


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
    return printed(code, extra)


@pytest.mark.slow
def test_no_compiler_where_there_is_no_room() -> None:
    pytest.importorskip("numba")
    assert within(KERNELS_NEED // 2) == "kafka_codecs.arrow.records_numpy False"
    assert within(3 * KERNELS_NEED) == "kafka_codecs.arrow.records_kernels True"
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert room() is None
