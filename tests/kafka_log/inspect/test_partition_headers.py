"""Tables of batch headers do not depend on which small files are read and decoded together."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import LogDirectory
from kafka_log.segment import file_groups
from kafka_log.segment.scanner import Scanner, header_scanner
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.random_segments import mutated

SOURCES = sorted(SAMPLES.glob("kafka-*/*/*.log"))
DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    mutated,
    lambda data, r: data[: r.randint(0, len(data))],
    lambda data, r: data + bytes(r.randint(1, 200)),
    lambda data, r: b"",
)


def make_directory(root: Path, r: random.Random) -> None:
    """Copy partitions of the samples, and damage a quarter of their segments."""
    for source in r.sample(sorted({path.parent for path in SOURCES}), 12):
        directory = root / f"{source.parent.name.replace('.', '_')}.{source.name}"
        shutil.copytree(source, directory)
        for segment in directory.glob("*.log"):
            if segment.stat().st_size and r.random() < 0.25:
                segment.write_bytes(r.choice(DAMAGES)(segment.read_bytes(), r))


def answer(
    root: Path, ask: str, files: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[pa.Table, list[str]]:
    """Return the table and the lines about damage, if at most `files` files are decoded together."""
    monkeypatch.setattr(file_groups, "GROUP_FILES", files)
    damage: list[str] = []
    now = {"now": 0} if ask == "txn" else {}
    return getattr(LogDirectory(root), ask)(on_damage=damage.append, **now), damage


@pytest.mark.slow
@pytest.mark.share(10)
@pytest.mark.parametrize("seed", draw_seeds(40))
@pytest.mark.parametrize("ask", ["txn", "producers"])
def test_files_together_and_alone(
    ask: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(seed)
    make_directory(tmp_path, r)
    alone = answer(tmp_path, ask, 1, monkeypatch)
    for files in (2, 5, 1024):
        assert answer(tmp_path, ask, files, monkeypatch) == alone


def test_small_files_of_many_partitions_are_decoded_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SAMPLES / "kafka-4.x" / "transactions-0"
    for number in range(20):
        shutil.copytree(source, tmp_path / f"orders-{number}")
    opened: list[Path] = []

    def scan(path: Path, *arguments: Any, **options: Any) -> Scanner:
        opened.append(path)
        return header_scanner(path, *arguments, **options)

    monkeypatch.setattr("kafka_log.inspect.partition_headers.header_scanner", scan)
    assert LogDirectory(tmp_path).txn().num_rows == 20 * 8
    assert opened == []
