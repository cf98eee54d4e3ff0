"""Counts and extremes from batch headers, beside the rows themselves: the same, or the same error."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import discover
from kafka_log.read.plan import Split
from kafka_log.segment.row_selection import Aborted, RowSelection
from pyspark_kafka_log import totals
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_split, read_splits
from pyspark_kafka_log.totals import Totals, totals_of
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support.histories import history
from tests.support.mixed_logs import mixed_log

LOGS = sorted(SAMPLES.rglob("*.log"))
MADE = sorted(VECTORS.rglob("*.log"))
ROWS = (
    RowSelection(control_records=False),
    RowSelection(),
    RowSelection(offsets=(7, 60), control_records=False),
)
COLUMNS = ((), ("offset",), ("timestamp",), ("offset", "timestamp"))


def told(error: CodecError) -> str:
    return str(error)


def by_headers(parts: list[Split], columns: Any) -> Any:
    try:
        found = totals_of(parts, Scan(columns=("timestamp",), engine="arrow"), columns)
    except CodecError as error:
        return told(error)
    return {key: one for key, one in found.items() if one.rows}


def by_rows(parts: list[Split], columns: Any) -> Any:
    """The same of all rows, in plain Python."""
    scan = Scan(columns=("topic", "partition", "offset", "timestamp"), engine="construct")
    rows: dict[tuple[str, int], list[tuple[int, int]]] = {}
    try:
        for batch in read_splits(parts, scan):
            times = batch.column("timestamp").cast("int64").to_pylist()
            keys = zip(*(batch.column(n).to_pylist() for n in ("topic", "partition")), strict=True)
            offsets = batch.column("offset").to_pylist()
            for key, offset, time in zip(keys, offsets, times, strict=True):
                rows.setdefault(key, []).append((offset, time))
    except CodecError as error:
        return told(error)
    out = {}
    for key, found in rows.items():
        offsets, times = zip(*found, strict=True)
        out[key] = Totals(
            len(found),
            (min(offsets), max(offsets)) if "offset" in columns else None,
            (min(times), max(times)) if "timestamp" in columns else None,
        )
    return out


def splits(path: Path, rows: RowSelection) -> list[Split]:
    return [Split(s, rows=rows) for p in discover(path) for s in p.segments]


def holds(path: Path, *, columns: Any = COLUMNS, rows: Any = ROWS) -> None:
    for selection in rows:
        parts = splits(path, selection)
        for wanted in columns:
            assert by_headers(parts, wanted) == by_rows(parts, wanted), (path, selection, wanted)


@pytest.mark.share(12, ci=3)
@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parts[-3]}-{p.parent.name}-{p.stem}")
def test_samples(path: Path) -> None:
    holds(path, columns=[(), COLUMNS[3]])


@pytest.mark.slow
def test_what_kafka_wrote_and_what_is_wrong() -> None:
    """Of vectors whose records are wrong under a right checksum the headers say what they say; all others agree."""
    differ = []
    for path in MADE:
        parts = splits(path, ROWS[0])
        wanted = by_rows(parts, ())
        if by_headers(parts, ()) != wanted:
            assert isinstance(wanted, str), path
            if "stored checksum" in wanted or path.parent.name not in ("malformed", "foreign"):
                differ.append((path.stem, wanted))
    assert not differ


@pytest.mark.slow
def test_random_logs(tmp_path: Path) -> None:
    for seed in draw_seeds(12):
        path = mixed_log(tmp_path / f"t-{seed}", seed)
        holds(path, columns=[COLUMNS[seed % 4], COLUMNS[3]], rows=ROWS[:1])


@pytest.mark.slow
def test_aborted_transactions(tmp_path: Path) -> None:
    for seed in draw_seeds(25):
        made = history(tmp_path / f"t-{seed}", seed)
        aborted = Aborted((1, o, o + 2) for o in sorted(made.aborted)[::5])
        holds(
            made.directory,
            columns=COLUMNS[1:2],
            rows=[RowSelection(control_records=False, aborted=aborted)],
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codecs-0", "codecs-4", "segments.small-1", "append-time-1"])
def test_damage_is_the_same_error(tmp_path: Path, name: str) -> None:
    r = random.Random(name)
    directory = tmp_path / name
    shutil.copytree(SAMPLES / "kafka-4.x" / name, directory)
    errors = 0
    path = sorted(directory.glob("*.log"))[0]
    good = path.read_bytes()
    for _ in range(15):
        at = r.randrange(len(good))
        path.write_bytes(good[:at] + bytes([good[at] ^ (1 << r.randrange(8))]) + good[at + 1 :])
        parts = splits(directory, ROWS[0])
        found = by_headers(parts, ("offset",))
        assert found == by_rows(parts, ("offset",)), at
        errors += isinstance(found, str)
    path.write_bytes(good[: len(good) * 2 // 3])
    holds(directory, columns=COLUMNS[1:2], rows=ROWS[:1])
    assert errors > 7


def test_batches_that_headers_answer_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed ones neither; of compacted ones, those are read whose ends nobody says."""
    read: list[int] = []
    real = read_split

    def watched(part: Split, scan: Scan, **told: Any) -> Any:
        read.append(part.start)
        return real(part, scan, **told)

    monkeypatch.setattr(totals, "read_split", watched)
    for name in ("codecs-0", "codecs-4", "transactions-0", "compacted-0"):
        by_headers(splits(SAMPLES / "kafka-4.x" / name, ROWS[0]), ())
    assert not read
    for name in ("codecs-0", "codecs-4", "transactions-0"):
        by_headers(splits(SAMPLES / "kafka-4.x" / name, ROWS[0]), ("offset",))
    by_headers(splits(SAMPLES / "kafka-4.x" / "append-time-1", ROWS[0]), ("timestamp",))
    assert not read
    by_headers(splits(SAMPLES / "kafka-4.x" / "compacted-0", ROWS[0]), ("offset",))
    assert read
