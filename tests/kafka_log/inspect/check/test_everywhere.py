"""One fault in each partition that brokers left behind: its finding, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_log import LogDirectory, SegmentReader, discover
from tests.paths import SAMPLES

Said = tuple[str, str, str, int | None]
"""Severity, code, the name of the file, and the byte."""

Fault = Callable[[Path, list[tuple[int, int]]], list[Said]]
"""Changes a segment, whose batches lie at these positions and have these sizes, and says what is to be found. Nothing: it does not apply."""


def damage(at: int) -> Fault:
    """Another last byte in one of the batches."""

    def change(path: Path, batches: list[tuple[int, int]]) -> list[Said]:
        position, size = batches[at]
        data = bytearray(path.read_bytes())
        data[position + size - 1] ^= 0x55
        path.write_bytes(bytes(data))
        return [("error", "batch_checksum", path.name, position)]

    return change


def tear(path: Path, batches: list[tuple[int, int]]) -> list[Said]:
    """The end of the last batch is gone."""
    position, size = batches[-1]
    path.write_bytes(path.read_bytes()[: position + size - 3])
    return [("error", "torn_tail", path.name, position)]


def lengthen(path: Path, batches: list[tuple[int, int]]) -> list[Said]:
    """Zeros follow the last batch."""
    data = path.read_bytes()
    path.write_bytes(data + bytes(100))
    return [("error", "zero_tail", path.name, len(data))]


def swap(path: Path, batches: list[tuple[int, int]]) -> list[Said]:
    """The first two batches change places."""
    if len(batches) < 2:
        return []
    data = path.read_bytes()
    (_, one), (_, two) = batches[:2]
    path.write_bytes(data[one : one + two] + data[:one] + data[one + two :])
    return [("error", "offsets_not_rising", path.name, 0)]


def repeat(path: Path, batches: list[tuple[int, int]]) -> list[Said]:
    """The last batch is there twice."""
    position, _ = batches[-1]
    data = path.read_bytes()
    path.write_bytes(data + data[position:])
    return [("error", "batch_twice", path.name, len(data))]


METADATA = "__cluster_metadata-0"
FAULTS = {
    "first batch": damage(0),
    "middle batch": lambda path, batches: damage(len(batches) // 2)(path, batches),
    "last batch": damage(-1),
    "torn": tear,
    "longer": lengthen,
    "swapped": swap,
    "repeated": repeat,
}

INNER = {
    ("kafka-2.8/v0-3", "middle batch"),
    ("kafka-2.8/v1-2", "last batch"),
    ("kafka-2.8/v1-2", "torn"),
}
"""Here bytes of a compressed message look like entries when its checksum is wrong."""

PARTITIONS = [
    partition.directory.relative_to(SAMPLES)
    for broker in ("kafka-2.8", "kafka-4.x")
    for partition in discover(SAMPLES / broker)
    if partition.size
]


SPECIAL = {METADATA, *(Path(partition).name for partition, _ in INNER)}
"""Directories of which the test knows exceptions: these run in each CI."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("brokers") / "samples"
    shutil.copytree(SAMPLES, root)
    yield root


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "partition",
    [
        pytest.param(
            one, id=str(one), marks=pytest.mark.share(40, ci=1 if one.name in SPECIAL else 6)
        )
        for one in PARTITIONS
    ],
)
def test_one_fault_is_one_finding(partition: Path, fault: str, brokers: Path) -> None:
    segments = discover(brokers / partition)[0].segments
    for segment in segments:
        if not segment.size:
            continue
        whole = segment.path.read_bytes()
        batches = [(batch.position, batch.size) for batch in SegmentReader(segment.path)]
        expected = FAULTS[fault](segment.path, batches)
        rows = LogDirectory(brokers / partition).check().to_pylist()
        segment.path.write_bytes(whole)
        if partition.name == METADATA and segment == segments[-1] and fault in ("torn", "longer"):
            # A broker cuts them off, however it was stopped.
            expected = [("note", *said[1:]) for said in expected]
        found = [(r["severity"], r["code"], Path(r["file"]).name, r["byte"]) for r in rows]
        if (partition.as_posix(), fault) in INNER:
            assert {expected[0][2]} == {name for _, _, name, _ in found}
            continue
        assert found == expected
