"""Commands take no more memory when there is several times as much in a directory, or in a partition."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_log.write.encoding import encode
from tests.paths import ROOT, VECTORS
from tests.support.peak_memory import PEAK_KIB, needs_peak
from tests.support.random_segments import entries

pytestmark = [pytest.mark.slow, needs_peak]

MIB = 1 << 20
MARGIN = 24 * MIB
"""Of what allocators keep."""

RUN = f"""
import json, os, shutil, sys
from kafka_log import LogDirectory, scan
from kafka_log.cli import main
import pyarrow as pa

def peak():
    return {PEAK_KIB} * 1024

def command(*given):
    def run(path):
        out = path.rstrip("/") + "-out"
        done = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = main([text.format(path=path, out=out) for text in given])
        os.dup2(done, 1)
        shutil.rmtree(out, ignore_errors=True)
        return pa.array([code])
    return run

verb, warm, path = sys.argv[1:]
run = {{
    "scan": lambda p: pa.array([sum(batch.num_rows for batch in scan(p))]),
    "dump": command("dump", "--format", "jsonl", "{{path}}"),
    "dump --batches": command("dump", "--batches", "{{path}}"),
    "export": command("export", "{{path}}", "--out", "{{out}}"),
    "salvage": command("salvage", "{{path}}", "--out", "{{out}}"),
    "keys": command("keys", "{{path}}"),
    "stat": lambda p: LogDirectory(p).stat(engine="arrow").column("bytes"),
    "stat --deep": lambda p: LogDirectory(p).stat(deep=True, engine="arrow").column("bytes"),
    "largest": lambda p: LogDirectory(p).largest(5, engine="arrow").column("bytes"),
    "check": lambda p: LogDirectory(p).check(engine="arrow").column("code"),
}}[verb]
run(warm)  # loads kernels
values = run(path).to_pylist()
print(json.dumps([peak(), sum(values) if verb != "check" else len(values)]))
"""


def peak(verb: str, warm: Path, path: Path) -> tuple[int, int]:
    """The most memory that a process took, in bytes, and what it found."""
    roots = [str(ROOT / part) for part in ("generator", "generated", "pipeline")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, verb, str(warm), str(path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    most, found = json.loads(done.stdout)
    return most, found


def segment(path: Path, size: int) -> Path:
    """A segment of some size: batches of a few KiB, with and without compression, in the order of their offsets."""
    import pyarrow as pa

    offset = written = 0
    with path.open("wb") as file:
        while written < size:
            rows = 20_000
            numbers = range(offset, offset + rows)
            table = pa.table(
                {
                    "offset": pa.array(numbers, pa.int64()),
                    "timestamp": pa.array([1_700_000_000_000] * rows, pa.timestamp("ms", "UTC")),
                    "key": pa.array([b"%d" % n for n in numbers], pa.binary()),
                    "value": pa.array(
                        [os.urandom(32).hex().encode() for _ in numbers], pa.binary()
                    ),
                }
            )
            for codec in ("none", "lz4"):
                part = table.slice(0 if codec == "none" else rows // 2, rows // 2)
                for batch in encode(part, codec=codec, batch_bytes=16 << 10):
                    written += file.write(batch)
            offset += rows
    return path


def linked(root: Path, source: Path, count: int) -> Path:
    """A directory with many partitions of one segment: the same bytes, each time read anew."""
    for i in range(count):
        directory = root / f"orders-{i}"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").symlink_to(source)
    return root


@pytest.fixture(scope="module")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Path]]:
    """Directories of one partition: of 16 MiB, 64 MiB and 512 MiB, the same batches at offsets that rise."""
    root = tmp_path_factory.mktemp("partitions")
    data = bytearray(segment(root / "source", 16 * MIB).read_bytes())
    found = [
        (start, int.from_bytes(data[start : start + 8], "big")) for start, _ in entries(bytes(data))
    ]
    step = found[-1][1] + 20_000
    paths = [root / name for name in ("warm", "small", "large")]
    for path in paths:
        (path / "orders-0").mkdir(parents=True)
    for i in range(32):
        for start, offset in found:
            data[start : start + 8] = (offset + i * step).to_bytes(8, "big")
        name = f"orders-0/{i * step:020d}.log"
        (paths[2] / name).write_bytes(data)
        for path, count in zip(paths, (1, 4), strict=False):
            if i < count:
                (path / name).symlink_to(paths[2] / name)
    yield paths[0], paths[1], paths[2]
    shutil.rmtree(root)


@pytest.mark.share(ci=8)
@pytest.mark.parametrize(
    "verb",
    ["stat", "check", "scan", "dump", "dump --batches", "export", "salvage", "keys"],
)
def test_eight_times_the_bytes_of_a_partition(
    verb: str, partitions: tuple[Path, Path, Path]
) -> None:
    warm, small, large = partitions
    (one, found), (eight, more) = (peak(verb, warm, path) for path in (small, large))
    if verb == "scan":
        assert more == 8 * found
    assert eight - one < MARGIN


@pytest.mark.share(ci=4)
@pytest.mark.parametrize("verb", ["stat", "stat --deep", "largest", "check"])
def test_four_times_the_bytes(verb: str, tmp_path: Path) -> None:
    source = segment(tmp_path / "source", 16 * MIB)
    warm = linked(tmp_path / "warm", source, 1)
    one, four = (linked(tmp_path / f"x{n}", source, 8 * n) for n in (1, 4))
    (small, found), (large, more) = (peak(verb, warm, path) for path in (one, four))
    if verb.startswith("stat"):
        assert (found, more) == (8 * source.stat().st_size, 32 * source.stat().st_size)
    assert large - small < MARGIN


@pytest.mark.soak
@pytest.mark.parametrize("verb", ["stat", pytest.param("check", marks=pytest.mark.soak)])
def test_four_times_the_partitions(verb: str, tmp_path: Path) -> None:
    source = VECTORS / "matrix" / "v2-gzip-create.log"
    warm = linked(tmp_path / "warm", source, 2)
    one, four = (linked(tmp_path / f"x{n}", source, 500 * n) for n in (1, 4))
    small, large = (peak(verb, warm, path)[0] for path in (one, four))
    assert large - small < MARGIN
