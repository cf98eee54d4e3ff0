"""Entries of the reference files, as bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY
from tests.paths import VECTORS

FOLDERS = ("matrix", "features", "large", "control", "compacted")


CRAFTED = {
    # Bytes that no writer of Kafka's writes, edited by hand after the builder: see the descriptions in the manifest.
    "features/v2-none-invalid-utf8-header-key.log",
    "features/v2-record-attributes-nonzero.log",
    "features/v2-unknown-batch-attribute-bits.log",
    "features/v2-none-timestamp-overflow.log",
    "features/v2-nonmonotonic-offset-deltas.log",
    "control/gzip-control.log",
    "features/v0-gzip-inner-v1.log",
    "features/v0-gzip-inner-relative.log",
    "features/v1-gzip-inner-v0.log",
}


FILES = sorted(
    m["file"]
    for m in map(json.loads, (VECTORS / "MANIFEST.jsonl").read_text().splitlines())
    if m["file"].endswith(".log")
    and m["file"].split("/")[0] in FOLDERS
    and m["file"] not in CRAFTED
)


def entries(data: bytes) -> Iterator[bytes]:
    """The batches and messages of a segment, one by one."""
    source = Source(data, Session())
    while source.left:
        size = LOG_ENTRY.frame(source)
        assert size is not None
        yield source.take(size)
