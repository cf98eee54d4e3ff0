"""A partition whose segments lie in part in remote storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kafka_log import (
    write_segment,
)

IDS = [f"WTscIl6vTOe-sFdJ50q{n}_w" for n in range(8)]


TIER = "kafka-tiered-storage"


def write(path: Path, first: int, end: int, epoch: int = 0, batch: int = 200) -> None:
    """A segment with the offsets from one up to another; a value says its epoch too."""
    numbers = range(first, end)
    path.parent.mkdir(parents=True, exist_ok=True)
    values = [b"%d of %d" % (n, epoch) for n in numbers]
    table = pa.table({"offset": numbers, "timestamp": numbers, "value": values})
    write_segment(path, table, batch_bytes=batch, leader_epoch=epoch)


def local(root: Path, first: int, end: int, **options: int) -> None:
    write(root / "t-0" / f"{first:020d}.log", first, end, **options)


def remote(root: Path, number: int, first: int, end: int, **options: int) -> None:
    write(_copy(root, number, first), first, end, **options)


def remote_of_epochs(root: Path, number: int, first: int, epochs: Sequence[int]) -> None:
    """A copy whose records have these leader epochs, a batch for each."""
    path = _copy(root, number, first)
    data = b""
    for i, epoch in enumerate(epochs, first):
        write(path, i, i + 1, epoch)
        data += path.read_bytes()
        path.unlink()
    path.write_bytes(data)


def _copy(root: Path, number: int, first: int) -> Path:
    return root / TIER / f"t-0-{IDS[-1]}" / f"{first:020d}-{IDS[number]}.log"
