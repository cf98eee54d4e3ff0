"""The largest offset that Spark and Arrow hold."""

from __future__ import annotations

LARGEST = ((1 << 63) - 1) // 1000
