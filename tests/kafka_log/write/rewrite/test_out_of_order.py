"""Salvage keeps each intact record once, wherever it lies, and says with both places what it cannot keep."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader, discover
from kafka_log.write.rewrite import arrangement
from tests.paths import SAMPLES
from tests.shares import draw_seeds, examples
from tests.support.batches import batch
from tests.support.check_plants import PLAIN, TX, Plant, copy_segment, pieces, rename_segment
from tests.support.check_plants_of_files import OF_FILES
from tests.support.check_plants_of_segments import OF_SEGMENTS
from tests.support.histories import history
from tests.support.salvage_rows import GAPS, files, problems, rows, said, sound_rows
from tests.support.segment_files import put

BROKER = SAMPLES / "kafka-4.x"

OF_PARTITIONS = [
    planted
    for planted in (*OF_SEGMENTS, *OF_FILES)
    if planted.file.split("/")[0] in {path.name for path in BROKER.glob("*-*") if path.is_dir()}
]
"""Plants that change a partition, not only the files of a log directory."""

WITHOUT_A_PLACE = {"base offset far away", "offset that is too far"}
"""Plants with a batch whose base offset no other batch confirms, and for which its place in the file has room."""
COLLIDING = {"batch of another partition", "offset below the segment", "offset below 0"}
"""Plants with two batches of different records that state the same offsets."""


@pytest.mark.slow
@pytest.mark.share(16, ci=4)
@pytest.mark.filterwarnings("ignore:kafka-log. skipped")
@pytest.mark.parametrize("planted", OF_PARTITIONS, ids=lambda planted: planted.name)
def test_salvage_has_the_records_that_a_scan_finds(planted: Plant, tmp_path: Path) -> None:
    name = planted.file.split("/")[0]
    root, out = tmp_path / "broker", tmp_path / "out"
    for directory in (name, TX, PLAIN, "codecs-0"):  # the plants copy from some of them
        shutil.copytree(BROKER / directory, root / directory, dirs_exist_ok=True)
    planted.plant(root)
    wanted = Counter(sound_rows(root / name))
    table = LogDirectory(root / name).salvage(out)
    found = rows(out)
    offsets = [int(row[0]) for row in found]
    assert all(a < b for a, b in pairwise(offsets))
    assert set(found) <= set(wanted)
    missing = sorted({int(row[0]) for row in set(wanted) - set(found)})
    assert bool(missing) == (planted.name in WITHOUT_A_PLACE | COLLIDING)
    if planted.code == "segment_name":
        assert "exceeds the largest offset" in said(table, "lost")[0]["reason"]
    if missing:
        (lost,) = said(table, "lost")
        assert (lost["first_offset"], lost["last_offset"]) == (missing[0], missing[-1])
        assert lost["byte"] == planted.byte
        place = re.search(r"other batches .* are kept: (\d+\.log), byte (\d+)", lost["reason"])
        assert (place is None) == (planted.name in WITHOUT_A_PLACE)
        if place is not None:
            (kept,) = [
                b for b in SegmentReader(root / name / place[1]) if b.position == int(place[2])
            ]
            assert (kept.base_offset or 0) <= missing[-1] and missing[0] <= kept.last_offset
    written = [row for what in ("kept", "rewritten") for row in said(table, what)]
    count = sum(row["records"] + row["control_records"] for row in written)
    assert count == len(found)
    check_loadable(out, *OF_RECORDS)


OF_RECORDS = (
    *("sequences_missing", "sequences_twice"),
    *("leader_epoch_start", "leader_epoch_checkpoint", "control_record"),
)
"""Findings about what batches state, which salvage does not change."""


def check_loadable(out: Path, *but: str) -> None:
    """Names of segments are offsets of their contents, and all files beside them are right."""
    assert not problems(out, (*GAPS, *but))
    assert not [path for path in out.rglob("*") if path.name.startswith(".by")]
    for partition in discover(out):
        for segment in partition.segments:
            first = next(iter(SegmentReader(segment.path)), None)
            assert first is None or segment.base_offset <= (first.base_offset or 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["segment of transactions overlaps", "renamed"])
def test_flatten_follows_transactions_by_offset(name: str, tmp_path: Path) -> None:
    """A marker that lies before its records in the order of files still ends their transaction."""
    directory = tmp_path / TX
    shutil.copytree(BROKER / TX, directory)
    if name == "renamed":  # the first segments change places
        rename_segment(directory, 0, 60)
        rename_segment(directory, 44, 0)
        rename_segment(directory, 60, 44)
    else:
        copy_segment(directory, 44, 20, ".log")
    whole = LogDirectory(directory).salvage(tmp_path / "whole")
    assert not said(whole, "lost")
    table = LogDirectory(directory).salvage(tmp_path / "flat", flatten=True)
    assert not said(table, "lost") and not said(table, "open")
    LogDirectory(BROKER / TX).salvage(tmp_path / "healthy", flatten=True)
    assert rows(tmp_path / "whole") == rows(BROKER / TX)
    assert rows(tmp_path / "flat") == rows(tmp_path / "healthy")
    check_loadable(tmp_path / "flat")


def test_an_intact_copy_replaces_a_damaged_batch(tmp_path: Path) -> None:
    parts = [batch(i * 3, size=40) for i in range(6)]
    damaged = bytearray(b"".join(parts))
    damaged[len(parts[0]) + 90] ^= 1
    source = put(tmp_path / "t-0", (0, bytes(damaged)), (18, b"".join(parts[:3])))
    table = LogDirectory(source).salvage(tmp_path / "out")
    assert [int(row[0]) for row in rows(tmp_path / "out")] == list(range(18))
    assert not said(table, "lost")
    (moved,) = [row for row in said(table, "kept") if row["reason"]]
    assert (moved["file"], moved["first_offset"], moved["last_offset"]) == (f"{18:020d}.log", 3, 5)
    check_loadable(tmp_path / "out")


def test_records_that_contradict_each_other_are_reported_with_both_places(tmp_path: Path) -> None:
    """Equal offsets and sizes are not enough: the bytes are compared, of each batch."""
    parts = [batch(i * 3, size=40) for i in range(8)]
    records = [{"offset_delta": i, "key": b"k%d" % i, "value": b"w" * 40} for i in range(3)]
    stamped: list[Any] = [
        {"base_offset": i * 3, "base_timestamp": 1000, "records": records} for i in range(8)
    ]
    other = [RECORD_BATCH.build(values) for values in stamped]
    assert parts[6] != other[6] and len(parts[6]) == len(other[6])
    source = put(
        tmp_path / "t-0",
        (0, b"".join([*parts[:5], *other[5:7], parts[7]])),
        (12, b"".join(parts[4:])),
    )
    table = LogDirectory(source).salvage(tmp_path / "out")
    (lost,) = said(table, "lost")
    assert (lost["file"], lost["byte"]) == (f"{0:020d}.log", len(b"".join(parts[:5])))
    assert (lost["batches"], lost["records"]) == (2, 6)
    place = f"{12:020d}.log, byte {len(parts[4])}"
    assert lost["reason"] == f"other batches with these offsets are kept: {place}"
    assert [row["first_offset"] for row in said(table, "twice")] == [12, 21]
    assert rows(tmp_path / "out") == rows(put(tmp_path / "w/t-0", (0, b"".join(parts))))


def test_a_batch_whose_last_offset_is_wrong_is_written_by_its_records(tmp_path: Path) -> None:
    records: list[Any] = [{"key": b"k", "value": b"v", "offset_delta": i} for i in range(3)]
    lying = RECORD_BATCH.build(
        {"base_offset": 3, "last_offset_delta": -2, "records": records}, strict=False
    )
    source = put(tmp_path / "t-0", (0, batch(0) + lying + batch(6)))
    table = LogDirectory(source).salvage(tmp_path / "out")
    (row,) = said(table, "rewritten")
    assert (row["records"], row["first_offset"], row["last_offset"]) == (3, 3, 5)
    assert [int(one[0]) for one in rows(tmp_path / "out")] == list(range(9))
    check_loadable(tmp_path / "out")


def scramble(directory: Path, seed: int) -> None:
    """Rename segments, copy them, let batches change places, and put batches into another segment."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 3)):
        logs = sorted(directory.glob("*.log"))
        path, other = draw.choice(logs), draw.choice(logs)
        base = int(path.stem)
        new = directory / f"{max(0, base + draw.randint(-60, 60)):020d}.log"
        what = draw.choice(["rename", "copy", "exchange", "swap", "duplicate"])
        if what == "rename" and not new.exists():
            path.rename(new)
        elif what == "copy" and not new.exists():
            shutil.copy(path, new)
        elif what == "exchange" and path != other:
            path.rename(directory / "x")
            other.rename(path)
            (directory / "x").rename(other)
        elif what in ("swap", "duplicate"):
            parts = pieces(path)
            i, j = draw.randrange(len(parts)), draw.randrange(len(parts))
            if what == "swap":
                parts[i], parts[j] = parts[j], parts[i]
            else:
                parts.insert(i, parts[j])
            path.write_bytes(b"".join(parts))
    for path in [p for end in ("index", "snapshot") for p in directory.glob(f"*{end}")]:
        path.unlink()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("order")


@pytest.mark.slow
@given(st.integers(), st.sampled_from([PLAIN, TX]), st.sampled_from([1 << 20, 1]))
@examples(40)
def test_nothing_is_lost_however_segments_and_batches_lie(
    scratch: Path, seed: int, name: str, cached: int
) -> None:
    source, out = scratch / name, scratch / "out"
    for old in (source, out):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(BROKER / name, source)
    scramble(source, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrangement, "CACHED_BATCHES", cached)
        table = LogDirectory(source).salvage(out)
    assert rows(out) == rows(BROKER / name)
    assert not said(table, "lost")
    assert b"".join(files(out, ".log").values()) == b"".join(files(BROKER / name, ".log").values())
    check_loadable(out)


@pytest.mark.slow
@given(st.integers())
@examples(8)
def test_a_cut_of_a_log_out_of_order(scratch: Path, seed: int) -> None:
    source, out = scratch / "c" / PLAIN, scratch / "cut"
    for old in (source, out):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(BROKER / PLAIN, source)
    parts = pieces(source / f"{42:020d}.log")
    parts[2], parts[4] = parts[4], parts[2]
    (source / f"{42:020d}.log").write_bytes(b"".join(parts))
    low = random.Random(seed).randint(0, 140)
    table = LogDirectory(source).cut(out, offsets=(low, low + 30))
    assert not said(table, "lost")
    inside = [int(row[0]) for row in rows(out)]
    assert inside == list(range(low - low % 6, min(144, (low + 30 + 5) // 6 * 6)))


@pytest.mark.slow
def test_histories_whose_segments_change_places(tmp_path: Path) -> None:
    for seed in draw_seeds(12):
        made = history(tmp_path / f"t-{seed}", seed)
        before = rows(made.directory)
        committed = rows(made.directory, isolation="read_committed")
        logs = sorted(made.directory.glob("*.log"))
        if len(logs) < 2:
            continue
        shutil.copytree(made.directory, tmp_path / f"whole-{seed}" / made.directory.name)
        logs[0].rename(made.directory / "x")
        logs[-1].rename(logs[0])
        (made.directory / "x").rename(logs[-1])
        table = LogDirectory(made.directory).salvage(tmp_path / f"out-{seed}")
        lost = said(table, "lost")
        if lost:  # the only batch of a segment, and no other one continues it
            (one,) = lost
            assert one["batches"] == 1
            kept = [r for r in before if not one["first_offset"] <= int(r[0]) <= one["last_offset"]]
            assert rows(tmp_path / f"out-{seed}") == kept != before
            continue
        assert rows(tmp_path / f"out-{seed}") == before
        assert rows(tmp_path / f"out-{seed}", isolation="read_committed") == committed
        for name, log in (("whole", tmp_path / f"whole-{seed}"), ("moved", made.directory)):
            LogDirectory(log).salvage(tmp_path / f"{name}-flat-{seed}", flatten=True)
        assert rows(tmp_path / f"moved-flat-{seed}") == rows(tmp_path / f"whole-flat-{seed}")
