"""Rows that an export has to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_log import scan
from tests.support.spark_tables import COLUMNS


def expected(logs: Path) -> list[dict[str, Any]]:
    """What a scan gives, in the order of a table."""
    rows = scan(logs, COLUMNS).read_all().to_pylist()
    rows = [row | {"topic": str(row["topic"])} for row in rows]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose times are numbers, whatever their unit and zone."""
    return [row | {"timestamp": round(row["timestamp"].timestamp() * 1000)} for row in rows]
