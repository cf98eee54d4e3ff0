"""How long the planning of a Spark query takes: a terabyte, and ten thousand segments.

    python -m benchmarks.spark_plan [--rounds 5] [--output benchmarks/results/spark_plan.md]

No Spark runs: what is timed is all that a query does on the driver before its tasks start. Segments are files with holes in them: there are batches
where tasks begin and at the ends, and indexes that name these. They take some hundred megabytes of the disk.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import Report
from kafka_codecs import (
    CONTROL_RECORD_KEY,
    LOG_ENTRY,
    OFFSET_INDEX_ENTRY,
    PRODUCER_SNAPSHOT,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX,
)
from pyspark_kafka_log.options import Options, parse
from pyspark_kafka_log.splits.plan import PLAN_CACHE, plan

TIME = 1_700_000_000_000
STEP = 128 << 20
NOTES = """
Seconds on the driver, with files in the page cache: CPU time of all its threads, the least and the median of the rounds, and after a
stroke the least wall time. *again*: the next action on the same
DataFrame. *aborted*: in each segment a transaction is aborted, and its index names it; otherwise the producers have no transactions. The
shapes: 100 partitions.
""".strip()
WALK = """
The same by a walk over all batch headers, which read_committed takes where files beside the segments are missing or do not agree
with them: one partition of 256 MiB in batches of 16 KiB, without holes.
""".strip()


def batch(offset: int, producer: int = -1, abort: bool = False, size: int = 1) -> bytes:
    """A batch with one record, of a transaction if it has a producer."""
    key = CONTROL_RECORD_KEY.build({"type": "abort"}) if abort else None
    record: dict[str, Any] = {
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key": key,
        "value": b"\0\0\0\0\0\0" if abort else b"v" * size,
        "headers": [],
    }
    return LOG_ENTRY.build(
        {
            "magic": 2,
            "base_offset": offset,
            "base_timestamp": TIME,
            "max_timestamp": TIME,
            "producer_id": producer,
            "producer_epoch": 0 if producer >= 0 else -1,
            "attributes": {"is_transactional": producer >= 0, "is_control": abort},
            "records": [record],
        }
    )


def segment(directory: Path, base: int, size: int, producer: int) -> int:
    """A segment with holes, and the files beside it. The offset after it."""
    path = directory / f"{base:020}.log"
    offset, index = base, []
    with path.open("wb") as file:
        file.truncate(size)
        for at in [*range(0, size, STEP), size]:
            two = [batch(offset + i, producer, abort=bool(i) and at == size) for i in range(2)]
            first = at if at == 0 else at - len(two[0])
            if at == size:
                first -= len(two[1])
            for data, place in zip(two, (first, first + len(two[0])), strict=True):
                file.seek(place)
                file.write(data)
                index.append({"relative_offset": offset - base, "position": place})
                offset += 1
    path.with_suffix(".index").write_bytes(b"".join(map(OFFSET_INDEX_ENTRY.build, index[1:])))
    path.with_suffix(".timeindex").write_bytes(
        TIME_INDEX_ENTRY.build({"timestamp": TIME, "relative_offset": 0})
    )
    if producer >= 0:
        entry = {
            "version": 0,
            "producer_id": producer,
            "first_offset": base,
            "last_offset": offset - 1,
            "last_stable_offset": offset,
        }
        path.with_suffix(".txnindex").write_bytes(TRANSACTION_INDEX.build({"entries": [entry]}))
    known = {"producer_id": 7, "producer_epoch": 0, "timestamp": TIME}
    known["coordinator_epoch"] = 0 if producer >= 0 else -1
    snapshot = PRODUCER_SNAPSHOT.build({"version": 1, "entries": [known]})
    (directory / f"{offset:020}.snapshot").write_bytes(snapshot)
    return offset


def made(folder: Path, partitions: int, segments: int, size: int, producer: int) -> None:
    for number in range(partitions):
        directory = folder / f"t-{number}"
        directory.mkdir(parents=True)
        offset = 0
        for _ in range(segments):
            offset = segment(directory, offset, size, producer)


def timed(count: int, ask: Callable[[], object]) -> list[tuple[float, float]]:
    """CPU and wall seconds of each round."""
    found = []
    for _ in range(count):
        cpu, wall = time.process_time(), time.perf_counter()
        ask()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return found


def cell(found: list[tuple[float, float]]) -> str:
    cpu, wall = ([one[i] for one in found] for i in (0, 1))
    return f"{min(cpu):.2f} ({statistics.median(cpu):.2f}) / {min(wall):.2f}"


def planned(options: Options, *, fresh: bool = False) -> int:
    """How many tasks there are."""
    if fresh:
        PLAN_CACHE.clear()
    return len(plan(options, parallelism=2))


def shapes(report: Report, rounds: int) -> None:
    report.add("", "## Plans", "", NOTES)
    report.table("shape", "tasks", "read_uncommitted", "read_committed", "again")
    for name, segments, size, producer in (
        ("10,000 segments of 100 MiB", 100, 100 << 20, -1),
        ("10,000 segments of 100 MiB, aborted", 100, 100 << 20, 7),
        ("1 TiB: 1,000 segments of 1 GiB", 10, 1 << 30, -1),
        ("1 TiB: 1,000 segments of 1 GiB, aborted", 10, 1 << 30, 7),
    ):
        with tempfile.TemporaryDirectory() as folder:
            made(Path(folder), 100, segments, size, producer)
            plain, committed = (
                parse({"path": folder, "isolationLevel": isolation})
                for isolation in ("read_uncommitted", "read_committed")
            )
            cells = [
                cell(timed(rounds, partial(planned, plain, fresh=True))),
                cell(timed(rounds, partial(planned, committed, fresh=True))),
                cell(timed(rounds, partial(planned, committed))),
            ]
            report.row(name, f"{planned(committed):,}", *cells)


def walk(report: Report, rounds: int) -> None:
    report.add("", "## A walk", "", WALK)
    report.table("", "walk", "by the files beside it")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "t-0"
        directory.mkdir()
        count = (256 << 20) // (16 << 10)
        data = b"".join(batch(offset, 7, size=16 << 10) for offset in range(count - 1))
        (directory / f"{0:020}.log").write_bytes(data + batch(count - 1, 7, abort=True))
        entry = {"version": 0, "producer_id": 7, "first_offset": 0, "last_offset": count - 1}
        index = TRANSACTION_INDEX.build({"entries": [entry | {"last_stable_offset": count}]})
        known = {"producer_id": 7, "producer_epoch": 0, "timestamp": TIME, "coordinator_epoch": 0}
        snapshot = PRODUCER_SNAPSHOT.build({"version": 1, "entries": [known]})
        options = parse({"path": folder, "isolationLevel": "read_committed"})
        ask = partial(planned, options, fresh=True)
        walked = timed(rounds, ask)
        (directory / f"{0:020}.txnindex").write_bytes(index)
        (directory / f"{count:020}.snapshot").write_bytes(snapshot)
        last = len(data)
        (directory / f"{0:020}.index").write_bytes(
            b"".join(
                OFFSET_INDEX_ENTRY.build({"relative_offset": o, "position": at})
                for o, at in ((count - 2, last - len(data) // (count - 1)), (count - 1, last))
            )
        )
        report.row("1 partition", cell(walked), cell(timed(rounds, ask)))


def main() -> None:
    parser = measure.parser(__doc__, rounds=5, mib=0)
    options = parser.parse_args()
    report = Report("Planning", measure.command("benchmarks.spark_plan", options))
    shapes(report, options.rounds)
    walk(report, options.rounds)
    report.write(options.output)


if __name__ == "__main__":
    main()
