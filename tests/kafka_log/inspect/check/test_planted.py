"""Each kind of damage is found by its own code at the right byte with the right severity, nothing else is said, and nothing is changed."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory, SegmentReader
from kafka_log.segment.kernels import Engine
from tests.paths import ROOT, SAMPLES
from tests.support.check_plants import FIRST, PLAIN, Plant, restamp
from tests.support.check_plants_of_files import OF_FILES
from tests.support.check_plants_of_segments import OF_SEGMENTS
from tests.support.tiers import local, remote

BROKER = SAMPLES / "kafka-4.x"
OLD_BROKER = SAMPLES / "kafka-2.8"
PLANTS = [*OF_SEGMENTS, *OF_FILES]

ONLY_OF_NEW_BROKERS = {
    *("control record of a later Kafka", "leader change with too few voters"),
    "batch taken out, and offsets that follow",
    *("batch there again under other offsets", "sequence that comes again"),
    *("snapshot of a later offset", "leader epoch start", "offset of the cleaner"),
    *("leader epochs disordered", "leader epoch that begins later", "newest metadata snapshot"),
    *("older metadata snapshot", "metadata snapshot without its footer", "quorum-state"),
    *("id of another topic", "partition.metadata", "topic id zero", "meta.properties"),
}
"""Damage of files that the old broker does not have, or has with other contents."""

ELSEWHERE = {
    *("batch_records", "batch_rules", "record_checksum"),  # with --deep
    *("file_gone", "io_error", "partitions_exchanged", "segment_shrunk"),
    *("metadata_unknown", "base_offset_implausible"),
}
"""Codes that other tests provoke."""


def digest(root: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        found.update(str(path).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def judge(planted: Plant, broker: Path, root: Path) -> None:
    """Damage a copy of a broker's directory, and compare what is found with what has to be, and nothing else."""
    shutil.copytree(broker, root)
    before = digest(root)
    planted.plant(root)
    damaged = digest(root)
    assert damaged != before
    rows = LogDirectory(root).check().to_pylist()
    assert digest(root) == damaged
    found = [(row["severity"], row["code"], row["file"], row["byte"]) for row in rows]
    expected = planted.severity, planted.code, str(root / planted.file), planted.byte
    assert expected in found
    others = {row["code"] for row in rows} - {planted.code} if planted.also else found
    assert others == (set(planted.also) or [expected])
    for row in rows:
        assert row["meaning"].endswith(".") and row["remedy"].endswith(".")


FIRST_OF_CODES = {planted.code: planted.name for planted in reversed(PLANTS)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(
            planted,
            id=planted.name,
            marks=pytest.mark.share(16, ci=int(FIRST_OF_CODES[planted.code] == planted.name)),
        )
        for planted in PLANTS
    ],
)
def test_damage_is_found_where_it_is(planted: Plant, tmp_path: Path) -> None:
    judge(planted, BROKER, tmp_path / "broker")


@pytest.mark.slow
@pytest.mark.share(32, ci=8)
@pytest.mark.parametrize(
    "planted",
    [planted for planted in PLANTS if planted.name not in ONLY_OF_NEW_BROKERS],
    ids=lambda planted: planted.name,
)
def test_damage_of_an_old_broker(planted: Plant, tmp_path: Path) -> None:
    judge(planted, OLD_BROKER, tmp_path / "broker")


@pytest.mark.slow
def test_what_an_old_broker_lacks(tmp_path: Path) -> None:
    for planted in PLANTS:
        if planted.name in ONLY_OF_NEW_BROKERS:
            root = tmp_path / planted.name
            shutil.copytree(OLD_BROKER, root)
            with pytest.raises((FileNotFoundError, AssertionError)):
                planted.plant(root)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("count", [-1, -(1 << 31)])
def test_a_negative_count_of_records(
    tmp_path: Path, count: int, engine: Engine, *, deep: bool
) -> None:
    """Readers stop at it, and its checksum is right."""
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{FIRST}.log"
    restamp(path, 383, record_count=count)
    (row,) = LogDirectory(directory).check(deep=deep, engine=engine).to_pylist()
    found = row["severity"], row["code"], row["file"], row["byte"]
    assert found == ("error", "batch_count", str(path), 383)
    assert (row["first_offset"], row["last_offset"], row["records"]) == (6, 11, 6)
    with pytest.raises(CodecError):
        list(SegmentReader(path, policy="strict"))


def test_each_kind_has_a_name() -> None:
    assert len({planted.name for planted in PLANTS}) == len(PLANTS) > 100
    assert sum(not planted.also for planted in PLANTS) > 100


def test_each_code_has_a_kind_of_damage() -> None:
    page = (ROOT / "docs" / "tool" / "check.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[1] for line in page.splitlines() if line.count(" | ") == 1]
    codes = {code for row in rows for code in re.findall(r"`([a-z]+_[a-z_]+)`", row)}
    planted = {code for one in PLANTS for code in (one.code, *one.also)}
    assert planted == codes & planted
    assert codes - planted == ELSEWHERE


def test_a_segment_that_vanishes_and_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The rest is checked all the same, and nothing is said of what is not known."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    log = LogDirectory(root)
    assert log.partitions
    last = root / "segments.small-0" / f"{126:020d}.log"
    last.unlink()
    index = root / "segments.small-0" / f"{42:020d}.index"
    index.unlink()
    index.mkdir()
    found = {(row["severity"], row["code"], row["file"]) for row in log.check().to_pylist()}
    assert ("note", "file_gone", str(last)) in found
    assert ("error", "io_error", str(index)) in found
    codes = {code for _, code, _ in found}
    assert codes <= {"file_gone", "io_error", "index_without_segment"}


@pytest.mark.parametrize("deep", [False, True], ids=["headers", "deep"])
@pytest.mark.parametrize("byte", [5, 8, 16, 17, 30, 57, 62, 80])
def test_the_remedy_of_a_tiered_copy_is_not_that_of_a_partition_directory(
    tmp_path: Path, byte: int, deep: bool
) -> None:
    """A broker neither truncates a copy nor gets it from another replica."""
    remote(tmp_path, 0, 0, 40)
    local(tmp_path, 40, 50)
    (copy,) = tmp_path.rglob(f"{0:020d}-*.log")
    data = bytearray(copy.read_bytes())
    data[byte] ^= 1
    copy.write_bytes(data)
    found = LogDirectory(tmp_path, include="remote").check(deep=deep).to_pylist()
    bad = [row for row in found if row["severity"] != "note" and row["file"] == str(copy)]
    assert bad
    for row in bad:
        assert "backup" in row["remedy"] and "partition directory" not in row["remedy"], row
