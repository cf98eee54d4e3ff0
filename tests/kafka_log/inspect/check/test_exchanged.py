"""Directories of one topic whose names were exchanged: the keys tell, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, encode
from kafka_log.inspect.check.partitions import MIN_KEYS
from kafka_log.write.sink.partitioner import partition_by_key

COUNT = 4
KEYS = [f"user-{i}".encode() for i in range(400)]


def by_murmur(keys: Sequence[bytes], count: int) -> list[int]:
    return [*partition_by_key(pa.array(keys, pa.binary()), count).tolist()]


def by_crc(keys: Sequence[bytes], count: int) -> list[int]:
    """As librdkafka does."""
    return [crc32(key) % count for key in keys]


def write(root: Path, homes: Iterable[int], most: int = 60) -> None:
    """Partitions with as many records each, so that no checkpoint tells them apart."""
    of: dict[int, list[bytes]] = {}
    for key, home in zip(KEYS, homes, strict=True):
        of.setdefault(home, []).append(key)
    for home, keys in of.items():
        directory = root / f"orders-{home}"
        directory.mkdir(parents=True)
        keys = keys[:most]
        data = b""
        for i in range(0, len(keys), 10):
            some = keys[i : i + 10]
            rows = {"offset": [*range(i, i + len(some))], "key": pa.array(some, pa.binary())}
            data += b"".join(encode(pa.table(rows)))
        (directory / f"{0:020d}.log").write_bytes(data)


def exchanged(root: Path, *numbers: int) -> None:
    """Each directory gets the name of the next one."""
    for number in numbers:
        (root / f"orders-{number}").rename(root / f"moved-{number}")
    for number, name in zip(numbers, [*numbers[1:], numbers[0]], strict=True):
        (root / f"moved-{number}").rename(root / f"orders-{name}")


def found(root: Path, **options: Any) -> list[tuple[str, str, int]]:
    rows = LogDirectory(root, **options).check().to_pylist()
    return [(r["severity"], r["code"], r["partition"]) for r in rows if r["severity"] != "note"]


@pytest.mark.parametrize("numbers", [(1, 2), (0, 3), (0, 1, 2), (0, 1, 2, 3)])
def test_exchanged(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    write(tmp_path, by_murmur(KEYS, COUNT))
    assert found(tmp_path) == []
    exchanged(tmp_path, *numbers)
    assert found(tmp_path) == [("warning", "partitions_exchanged", n) for n in sorted(numbers)]
    (first, *_) = LogDirectory(tmp_path).check().to_pylist()
    assert first["file"] == str(tmp_path / f"orders-{min(numbers)}")
    assert "belong to partition" in first["meaning"]


@pytest.mark.parametrize("numbers", [(0, 1), (1, 3), (0, 2, 3)])
def test_a_selection_hides_no_exchange(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """The other partitions are compared too, but have no findings."""
    write(tmp_path, by_murmur(KEYS, COUNT))
    exchanged(tmp_path, *numbers)
    for number in range(COUNT):
        wanted = [("warning", "partitions_exchanged", number)] if number in numbers else []
        assert found(tmp_path, partitions=number) == wanted
        assert found(tmp_path, topics="orders", partitions=[number]) == wanted
    (tmp_path / "other-0").mkdir()
    (tmp_path / "other-0" / f"{0:020d}.log").touch()
    assert found(tmp_path, topics="other") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda root: None,
        lambda root: exchanged(root, 0, 1),
    ],
    ids=["as they were", "exchanged"],
)
def test_producers_with_their_own_way(tmp_path: Path, change: Callable[[Path], None]) -> None:
    write(tmp_path, by_crc(KEYS, COUNT))
    change(tmp_path)
    assert found(tmp_path) == []


def test_a_broker_with_some_of_the_partitions(tmp_path: Path) -> None:
    """How many there are it does not know."""
    for count in range(5, 13):
        root = tmp_path / str(count)
        write(root, by_murmur(KEYS, count))
        for number in range(2, count):
            for path in root.glob(f"orders-{number}"):
                path.rename(root.parent / f"elsewhere-{count}-{number}")
        assert found(root) == []


def test_one_that_lies_in_the_wrong_place_alone(tmp_path: Path) -> None:
    """Its producers may have chosen its partition themselves."""
    write(tmp_path, [1 if home == 0 else home for home in by_murmur(KEYS, COUNT)])
    (tmp_path / "orders-1").rename(tmp_path / "orders-0")
    assert found(tmp_path) == []


def test_few_keys_say_nothing(tmp_path: Path) -> None:
    write(tmp_path / "few", by_murmur(KEYS, COUNT), MIN_KEYS - 1)
    exchanged(tmp_path / "few", 0, 1)
    assert found(tmp_path / "few") == []
    write(tmp_path / "enough", by_murmur(KEYS, COUNT), MIN_KEYS)
    exchanged(tmp_path / "enough", 0, 1)
    assert len(found(tmp_path / "enough")) == 2


def test_records_without_keys_say_nothing(tmp_path: Path) -> None:
    for number in range(2):
        directory = tmp_path / f"orders-{number}"
        directory.mkdir()
        rows = {"offset": [*range(40)], "key": pa.array([None] * 40, pa.binary())}
        (directory / f"{0:020d}.log").write_bytes(b"".join(encode(pa.table(rows))))
    assert found(tmp_path) == []
