"""Every file of the sample directories is read by a layout or a text, or has a reason why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT,
    OFFSET_INDEX,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from kafka_log import SegmentReader
from tests.paths import SAMPLES

BY_SUFFIX: dict[str, Any] = {
    ".index": OFFSET_INDEX,
    ".timeindex": TIME_INDEX,
    ".txnindex": TRANSACTION_INDEX,
    ".snapshot": PRODUCER_SNAPSHOT,
    "-offset-checkpoint": OFFSET_CHECKPOINT,
    "leader-epoch-checkpoint": LEADER_EPOCH_CHECKPOINT,
    "partition.metadata": PARTITION_METADATA,
    "meta.properties": META_PROPERTIES,
    ".kafka_cleanshutdown": CLEAN_SHUTDOWN,
}
SEGMENTS = (".log", ".checkpoint")
"""Files of batches, which the log layer reads one batch after the other."""

NOT_READ = {
    "README.md": "not of a broker",
    "expected.json": "not of a broker",
    "quorum-state": "JSON",
}
"""Files that no layout reads, and why."""

PATHS = sorted(path for path in SAMPLES.rglob("*") if path.is_file())


def name(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


def is_read(path: Path) -> bool:
    """Whether a layout reads a file, and builds the same bytes of it again."""
    if path.name in NOT_READ:
        return NOT_READ[path.name] != "JSON" or isinstance(json.loads(path.read_bytes()), dict)
    if path.name.endswith(SEGMENTS):
        reader = SegmentReader(path, policy="strict")
        return sum(batch.size for batch in reader) == path.stat().st_size
    codecs = [codec for suffix, codec in BY_SUFFIX.items() if path.name.endswith(suffix)]
    data = path.read_bytes()
    return len(codecs) == 1 and codecs[0].build(codecs[0].parse(data, file=path.name)) == data


@pytest.mark.share(4)
@pytest.mark.parametrize("path", PATHS, ids=name)
def test_a_file_is_read(path: Path) -> None:
    assert is_read(path)


def test_every_reason_is_needed() -> None:
    assert set(NOT_READ) <= {path.name for path in PATHS}
