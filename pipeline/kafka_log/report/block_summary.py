"""Sums over a run of batches that the Arrow kernels read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from kafka_log.report.summary import Summary
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import codec_label
from kafka_log.segment.row_masks import numbers


def block_summary(block: Block) -> Summary:
    """What there is to count."""
    batch_headers = block.batch_headers
    counts = batch_headers.column("record_count")
    times = numbers(batch_headers, "max_timestamp")
    times = times[times >= 0]
    producers = numbers(batch_headers, "producer_id")
    codecs = _counted(numbers(batch_headers, "codec"))
    return Summary(
        "",
        batches=batch_headers.num_rows,
        records=block.batch.num_rows
        if counts.null_count
        else int(numbers(batch_headers, "record_count").sum(dtype=np.int64)),
        control_batches=batch_headers.column("is_control").true_count,
        transactional_batches=batch_headers.column("is_transactional").true_count,
        empty_batches=0
        if counts.null_count
        else int((numbers(batch_headers, "record_count") == 0).sum()),
        first_offset=int(block.base_offsets().min()),
        last_offset=int(numbers(batch_headers, "last_offset").max()),
        first_timestamp=int(times.min()) if len(times) else None,
        last_timestamp=int(times.max()) if len(times) else None,
        magics=_counted(numbers(batch_headers, "magic")),
        codecs=Counter({codec_label(codec) or "unknown": n for codec, n in codecs.items()}),
        producers=set(np.unique(producers[producers >= 0]).tolist()),
    )


def _counted(found: Any) -> Counter[int]:
    values, counts = np.unique(found, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
