"""A segment as large as they get is read in the memory that docs/arrow.md states, and in a time that grows with it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_codecs import RECORD_BATCH
from tests.paths import ROOT, VECTORS
from tests.support.peak_memory import SCANNED_BYTES

pytest.importorskip("numba")

STATED = 192 << 20
TIMES_LARGEST = 5

READ = """
import json, sys, time
from pathlib import Path
from kafka_log import scan, scan_batches
from kafka_log.segment.scanner import Scanner

warm, path, half = sys.argv[1], sys.argv[2], int(sys.argv[3])

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

def read(batches):
    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in batches)
    return rows, time.perf_counter() - start

read(scan(warm, binary_view=True))
read(scan_batches(warm))
before = memory("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
some, first = read(Scanner(path, stop=half))
rows, second = read(scan(path))
views, _ = read(scan(path, binary_view=True))
not_copied, _ = read(scan(path, zero_copy=True))
headers, _ = read(scan_batches(path))
print(json.dumps([memory("VmHWM:") - before, some, rows, views, not_copied, headers, first, second]))
"""


def batch(records: int, compression: int, r: random.Random) -> bytes:
    items = [
        {"offset_delta": i, "key": r.randbytes(8), "value": r.randbytes(20) * r.randrange(1, 12)}
        for i in range(records)
    ]
    attributes = {"compression": compression}
    fields = {"base_offset": 0, "last_offset_delta": records - 1, "records": items}
    return RECORD_BATCH.build({"attributes": attributes, "partition_leader_epoch": 0, **fields})


def write(path: Path, most: int) -> tuple[int, int, int]:
    """A segment of batches that repeat, with offsets that rise: (half of it, batches, records)."""
    r = random.Random(1)
    # The checksum does not cover the first offset.
    kinds = [(n, batch(n, c, r)) for n, c in ((100, 0), (8000, 0), (100, 3), (5000, 4), (3000, 1))]
    size = offset = number = half = 0
    with path.open("wb") as file:
        while True:
            count, data = kinds[number % len(kinds)]
            if size + len(data) > most:
                return half, number, offset
            file.write(offset.to_bytes(8, "big") + data[8:])
            size += len(data)
            offset += count
            number += 1
            if size <= most // 2:
                half = size


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(320 << 20, id="320 MiB"),
        pytest.param(SCANNED_BYTES, id="2 GiB", marks=pytest.mark.soak),
    ],
)
def test_a_large_segment(tmp_path: Path, size: int) -> None:
    path = tmp_path / f"{0:020d}.log"
    half, batches, records = write(path, size)
    warm = VECTORS / "matrix" / "v2-lz4-create.log"
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(warm), str(path), str(half)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(roots)),
        capture_output=True,
        text=True,
        check=False,
    )
    path.unlink()
    assert done.returncode == 0, done.stderr
    more, some, rows, views, not_copied, heads, first, second = json.loads(done.stdout)
    assert (rows, views, not_copied, heads) == (records, records, records, batches)
    assert some == pytest.approx(rows / 2, rel=0.01)
    largest = 2 << 20  # more than the 8000 records are
    print(f"{more >> 20} MiB more; {first:.2f} s for half of it, {second:.2f} s for all")
    assert 0 < more < STATED + TIMES_LARGEST * largest
    assert second < 3 * first + 1
