"""Offsets that are nowhere: an error where compaction cannot have taken them, else a note or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, encode
from tests.log.check_plants import PLAIN, pieces, remove_segment
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"


def gaps(root: Path) -> list[tuple[str, str, int, int]]:
    rows = LogDirectory(root).check().to_pylist()
    return [
        (row["severity"], row["code"], row["first_offset"], row["last_offset"])
        for row in rows
        if row["code"] in ("segment_missing", "offsets_missing")
    ]


def test_a_partition_that_the_cleaner_does_not_know(tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 42)
    assert gaps(root) == [("error", "segment_missing", 42, 83)]
    assert gaps(root / PLAIN) == [("error", "segment_missing", 42, 83)]
    (root / "cleaner-offset-checkpoint").unlink()
    assert gaps(root) == [("note", "segment_missing", 42, 83)]


def test_a_partition_that_the_cleaner_knows(tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 42)
    path = root / "cleaner-offset-checkpoint"
    text = path.read_text(encoding="utf-8").replace("0\n3\n", "0\n4\nsegments.small 0 84\n")
    path.write_text(text, encoding="utf-8")
    assert gaps(root) == []


def test_the_first_segments_and_the_last_ones_may_be_missing(tmp_path: Path) -> None:
    """Retention takes the first ones; what is missing at the end the high watermark says."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    remove_segment(root / PLAIN, 0)
    assert gaps(root) == []
    remove_segment(root / PLAIN, 126)
    assert gaps(root) == []
    codes = {row["code"] for row in LogDirectory(root).check().to_pylist()}
    assert "high_watermark_beyond_end" in codes


def test_the_metadata_log_is_not_compacted(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    shutil.copytree(BROKER / "__cluster_metadata-0", directory)
    path = directory / f"{0:020d}.log"
    found = pieces(path)
    path.write_bytes(b"".join(found[:10] + found[11:]))
    ((severity, code, _, _),) = gaps(directory)
    assert (severity, code) == ("error", "offsets_missing")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([None, None, None], "error"),
        ([b"k", None, b"k"], "error"),
        ([b"k", b"k", b"k"], "note"),
        ([b"k", b"k", None], "error"),
    ],
)
def test_records_without_keys_are_of_no_compacted_topic(
    tmp_path: Path, keys: list[bytes | None], expected: str
) -> None:
    directory = tmp_path / "orders-0"
    write(directory, [(0, keys[0]), (5, keys[1]), (20, keys[2])])
    assert gaps(directory) == [(expected, "offsets_missing", 10, 19)]


@pytest.mark.parametrize(("key", "found"), [(None, 6), (b"k", 0)])
def test_many_gaps_between_records_with_keys_are_compaction(
    tmp_path: Path, key: bytes | None, found: int
) -> None:
    directory = tmp_path / "orders-0"
    write(directory, [(10 * i, key) for i in range(7)])
    assert len(gaps(directory)) == found


def write(directory: Path, batches: list[tuple[int, bytes | None]]) -> None:
    """A segment of batches of five records each, by their base offsets and keys."""
    directory.mkdir()
    data = b""
    for base, key in batches:
        rows = {"offset": list(range(base, base + 5)), "key": pa.array([key] * 5, pa.binary())}
        data += b"".join(encode(pa.table(rows)))
    (directory / f"{0:020d}.log").write_bytes(data)
