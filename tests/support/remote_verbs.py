"""Commands over object stores, and their output without the places of files."""

from __future__ import annotations

import pyarrow as pa

from tests.paths import SAMPLES

LOGS = SAMPLES / "kafka-4.x"


VERBS = ("ls", "stat", "producers", "groups", "txn", "keys", "metadata", "check")


WHERE = ("directory", "path", "directories", "file", "modified")
"""Columns that say where something lies, or when it was put there."""


def without_places(table: pa.Table) -> pa.Table:
    return table.drop([name for name in WHERE if name in table.column_names])
