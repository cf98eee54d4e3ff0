"""Reader of the control batches of a segment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.positioned_reads import open_segment, read_exactly


def read_control_batches(path: Path, columns: Mapping[str, Any]) -> Iterator[tuple[int, Batch]]:
    """Yield the row and the Batch of each control batch whose records can be decoded. Its control
    records have their parsed keys and values. A file that a broker renamed since it was listed is
    read by its new name. Raise OSError if the file cannot be read.

    Args:
        path: A segment.
        columns: Header columns of its batches, with ``is_control``, ``position`` and ``size``.
    """
    rows = np.flatnonzero(columns["is_control"]).tolist()
    if not rows:
        return
    from kafka_log.segment.reference import construct_engine

    with open_segment(path, is_listed=True) as file:
        for row in rows:
            position = int(columns["position"][row])
            data = read_exactly(file, position, int(columns["size"][row]))
            try:
                batch = construct_engine(
                    data, position, os.fspath(path), Policy.KAFKA, Limits(), True
                )
            except CodecError:
                continue
            yield row, batch
