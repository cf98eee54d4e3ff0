"""Laws of the checks: every bit that a checksum covers, any order of batches, and bytes that are anything."""

from __future__ import annotations

import random
import shutil
import struct
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, discover
from kafka_log.inspect.statistics.options import Asked
from kafka_log.inspect.statistics.table import Stat
from kafka_log.read.selection import Selection
from kafka_log.segment.placement import find_ascending
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support.check_plants import ACTIVE, FIRST, PLAIN, SECOND, THIRD, TX

BROKER = SAMPLES / "kafka-4.x"
SEGMENTS = (FIRST, SECOND, THIRD, ACTIVE)


@cache
def frames(name: str) -> list[tuple[int, int, int]]:
    """Position, size and base offset of each batch, by the two fields that say it."""
    data = (BROKER / PLAIN / f"{name}.log").read_bytes()
    found, at = [], 0
    while at < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        found.append((at, 12 + length, base))
        at += 12 + length
    return found


@pytest.mark.slow
@given(st.data())
def test_each_bit_under_a_checksum_is_found_with_its_batch(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(SEGMENTS))
    position, size, base = data.draw(st.sampled_from(frames(name)))
    at = position + data.draw(st.integers(17, size - 1))
    directory = tmp_path_factory.mktemp("broker") / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{name}.log"
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    engine = data.draw(st.sampled_from(["construct", "arrow"]))
    (row,) = LogDirectory(directory).check(engine=engine).to_pylist()
    assert (row["severity"], row["code"]) == ("error", "batch_checksum")
    assert (row["file"], row["byte"]) == (str(path), position)
    if at not in range(position + 23, position + 27):  # these are the last offset
        assert (row["first_offset"], row["last_offset"], row["records"]) == (base, base + 5, 6)
    shutil.rmtree(directory)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=8))
def test_as_few_batches_as_possible_are_out_of_order(batches: list[tuple[int, int]]) -> None:
    """Compared with all ways to leave batches out."""
    first = [a for a, _ in batches]
    last = [a + more for a, more in batches]
    kept = find_ascending(
        np.array(first, np.int64), np.array(last, np.int64), np.zeros(len(first), np.bool_)
    )

    def rises(rows: tuple[int, ...]) -> bool:
        return all(last[a] < first[b] for a, b in pairwise(rows))

    rows = tuple(np.flatnonzero(kept).tolist())
    assert rises(rows)
    ways = range(len(first) + 1)
    most = max(n for n in ways for way in combinations(range(len(first)), n) if rises(way))
    assert len(rows) == most


def mutate(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + 4] = rng.randbytes(4)
        elif kind == 2:
            del data[at : at + rng.randrange(1, 200)]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(1, 200))
        else:
            data[at : at + 8] = rng.choice((b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7)))
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.share(12, ci=6)
@pytest.mark.parametrize("seed", draw_seeds(40))
def test_bytes_that_are_anything(seed: int, tmp_path: Path) -> None:
    """Findings, and never an exception. All engines say the same."""
    rng = random.Random(seed)
    root = tmp_path / "broker"
    root.mkdir()
    for path in BROKER.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    for name in (PLAIN, TX, "compacted-0", "__cluster_metadata-0"):
        shutil.copytree(BROKER / name, root / name)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    for path in rng.sample(files, 6):
        mutate(path, rng)
    log = LogDirectory(root)
    one = log.check(engine="construct")
    assert one.equals(log.check(engine="arrow"))
    severities = set(one.column("severity").to_pylist())
    assert severities and severities <= {"error", "warning", "note"}


MALFORMED = sorted((VECTORS / "malformed").glob("*.log"))


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.stem)
def test_what_a_salvaging_reader_says_is_said_here(path: Path) -> None:
    """Problems of the reader are findings; where it has none there is none of batches."""
    asked = Asked(deep=True, selection=Selection(policy="salvage"))
    problems = Stat(discover(path), asked=asked).problems
    found = LogDirectory(path).check(deep=True).to_pylist()
    codes = {row["code"] for row in found} - {"index_missing", "timeindex_missing"}
    of_offsets = {"offsets_not_rising", "offsets_reversed", "offsets_missing", "batch_magic"}
    if problems:
        assert codes
    else:
        assert codes <= of_offsets | {"record_checksum", "batch_twice", "batch_rules"}


@pytest.mark.slow
@pytest.mark.parametrize("base", [-(1 << 63), -1, 1 << 40, (1 << 63) - 1 - 5, (1 << 63) - 1])
@pytest.mark.parametrize("name", [FIRST, ACTIVE])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_base_offsets_that_are_anything(name: str, base: int, at: int, tmp_path: Path) -> None:
    """The checksum does not cover them. It is an error of the batch, and of that one only."""
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{name}.log"
    data = bytearray(path.read_bytes())
    position = frames(name)[at][0]
    struct.pack_into(">q", data, position, base)
    path.write_bytes(data)
    for engine in ("construct", "arrow"):
        rows = LogDirectory(directory).check(engine=engine).to_pylist()
        found = {(r["code"], r["byte"]) for r in rows if r["severity"] == "error"}
        assert {byte for code, byte in found if is_of_order(code)} == {position}
        assert {code for code, _ in found if not is_of_order(code)} <= {"segment_missing"}


def is_of_order(code: str) -> bool:
    known = ("batch_in_wrong_segment", "first_offset_below_name", "offset_too_far")
    return code in (*known, "offsets_reversed", "segments_overlap")


@pytest.mark.parametrize("name", ["9223372036854775807", "9" * 20])
def test_names_that_no_offset_can_have(name: str, tmp_path: Path) -> None:
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    for suffix in ("log", "index", "timeindex"):
        shutil.copy(directory / f"{FIRST}.{suffix}", directory / f"{name:0>20}.{suffix}")
    errors = [r for r in LogDirectory(directory).check().to_pylist() if r["severity"] == "error"]
    is_offset = int(name) < 1 << 63
    code = "first_offset_below_name" if is_offset else "segment_name"
    assert [row["code"] for row in errors] == [code]
    (directory / f"{name:0>20}.log").write_bytes(b"")
    errors = [r for r in LogDirectory(directory).check().to_pylist() if r["severity"] == "error"]
    assert [row["code"] for row in errors] == ([] if is_offset else [code])
