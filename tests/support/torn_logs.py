"""Logs that end with an incomplete batch, and files of a broker that prove that it was written."""

from __future__ import annotations

from pathlib import Path

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK
from tests.support.batches import batch
from tests.support.segment_files import put


def torn_log(root: Path, proof: str) -> Path:
    """Write a log whose last batch lacks 3 bytes, and a file of the broker."""
    put(root / "t-0", (0, batch(0) + batch(10) + batch(20)[:-3]))
    if proof == "clean shutdown":
        (root / CLEAN_SHUTDOWN).write_text("{}")
    elif proof:
        reached = 23 if proof == "high watermark" else 13
        entries = [{"topic": "t", "partition": 0, "offset": reached}]
        (root / HIGH_WATERMARK).write_bytes(OFFSET_CHECKPOINT.build({"entries": entries}))
    return root
