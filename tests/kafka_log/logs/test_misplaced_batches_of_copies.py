"""Batches in tiered storage whose offsets lie outside their copy: their rows are read, or a gap is reported."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kafka_log import read_table
from tests.support.tiers import TIER, local, remote


@pytest.mark.slow
@pytest.mark.parametrize("has_live", [True, False], ids=["live", "no-live"])
@pytest.mark.parametrize(
    ("batch", "offset"),
    [*product((0, 1), (0, 7, 45, 1 << 40)), (-1, 0), (-1, 7), (-1, 1 << 40)],
    ids=str,
)
def test_a_batch_outside_its_copy_is_no_silent_loss(
    batch: int, offset: int, has_live: bool, tmp_path: Path
) -> None:
    """No checksum covers the base offset, which a flipped bit or another program can change."""
    for number, base in enumerate((0, 10, 20)):
        remote(tmp_path, number, base, base + 10, batch=1)
    if has_live:
        local(tmp_path, 30, 32)
    values = read_table(tmp_path, ["value"], include="remote")["value"].to_pylist()
    copy = next((tmp_path / TIER).rglob(f"{10:020d}-*.log"))
    data = bytearray(copy.read_bytes())
    at = read_table(copy, ["position"])["position"].to_pylist()[batch]
    data[at : at + 8] = offset.to_bytes(8, "big")
    copy.write_bytes(data)
    lost: list[Any] = []
    found = read_table(
        tmp_path, ["value"], "salvage", include="remote", on_lost=lambda *one: lost.append(one)
    )
    rows = found["value"].to_pylist()
    assert len(rows) == len(set(rows))
    assert sorted(rows) == sorted(values) or lost
