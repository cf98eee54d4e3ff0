"""From two offsets to the tasks of a micro-batch. The same offsets give the same rows, however often and however late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from kafka_log.read.batch_places import around, place
from kafka_log.read.changing_files import steady
from kafka_log.read.isolation import PartitionRows
from kafka_log.read.plan import Split
from kafka_log.read.progress import Key
from kafka_log.read.selection import of_segment
from pyspark_kafka_log.cuts import split
from pyspark_kafka_log.logs import Log
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.plan import next_offset_of, packed, task_bytes

Ranges = Mapping[Key, tuple[int, int]]
"""For each partition the first offset that is read, and the one after the last."""


def plan_between(
    logs: Mapping[Key, Log], ranges: Ranges, options: Options, parallelism: int | None = None
) -> list[tuple[Split, ...]]:
    """The splits of each task, in the order of topics, partitions and offsets."""
    parts = [
        part
        for key, (start, end) in sorted(ranges.items())
        if start < end
        for part in _parts(logs[key], start, end, options)
    ]
    enough = task_bytes(sum(part.size for part in parts), options, parallelism)
    return list(packed((one for part in parts for one in _cut(part, enough, options)), enough))


def _parts(log: Log, start: int, end: int, options: Options) -> Iterator[Split]:
    """What is read of each segment: from where the first offset lies to where the last batch before the end does."""
    # Where the log starts, the range says.
    wanted = options.selection.but(offsets=(start, end), deleted_records=True)
    near = replace(
        log,
        segments=around(
            log.segments, start, end, transactions=wanted.isolation == "read_committed"
        ),
    )
    of_log = PartitionRows(wanted, options.engine)
    rows = steady(log.segments[-1].path, lambda: of_log.of(near))
    read = around(near.segments, start, end, transactions=False)
    following = dict(pairwise(near.segments))
    for i, segment in enumerate(read):
        first, stop = 0, segment.size
        if i == 0:
            first = place(segment, start, wanted)[0]
        if i == len(read) - 1:
            stop = place(segment, end, wanted)[1]
        if first < stop:
            here = of_segment(rows, segment, following.get(segment))
            yield Split(segment, first, stop, here, next_offset_of(segment, following))


def _cut(part: Split, enough: int, options: Options) -> Iterator[Split]:
    if part.size <= enough:
        yield part
        return
    assert part.stop is not None
    for one in split(part.segment, enough, by_index=options.selection.raises):
        assert one.stop is not None
        start, stop = max(one.start, part.start), min(one.stop, part.stop)
        if start < stop:
            yield replace(part, start=start, stop=stop)
