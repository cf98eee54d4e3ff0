"""Segments whose batch headers say something else than their records, with checksums that are right."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from crc32c import crc32c
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY
from kafka_log import Batch, SegmentReader
from kafka_log.segment.ranges import MAX_OFFSET
from tests.paths import VECTORS

FIELDS = {
    "base_offset": (0, 8),
    "last_offset_delta": (23, 4),
    "base_timestamp": (27, 8),
    "max_timestamp": (35, 8),
}
"""Where fields of a batch header of version 2 lie, and how long they are."""

FIELDS_OF_MESSAGE = {"offset": (0, 8), "timestamp": (18, 8)}
"""The same of a message of versions 0 and 1; version 0 has no timestamp."""

START = 1_700_000_000_000
"""About the time of the records of the vectors."""

Row = tuple[int, int]
"""Offset and timestamp."""


def with_header(entry: bytes, **fields: int) -> bytes:
    """Return a batch or message with other values of FIELDS or FIELDS_OF_MESSAGE in its header, and a checksum that is right."""
    data = bytearray(entry)
    is_batch = data[16] == 2
    for name, value in fields.items():
        at, size = (FIELDS if is_batch else FIELDS_OF_MESSAGE)[name]
        data[at : at + size] = value.to_bytes(size, "big", signed=True)
    if is_batch:
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    else:
        data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    return bytes(data)


def good_vectors() -> list[Path]:
    """Return the small reference segments that have nothing wrong."""
    paths = [path for path in sorted(VECTORS.glob("*/*.log")) if path.parent.name != "large"]
    return [path for path in paths if _is_good(path)]


def _is_good(path: Path) -> bool:
    reader = SegmentReader(path)
    batches = list(reader)
    good = all(b.is_valid and not b.problems and not b.findings for b in batches)
    is_whole = reader.end is not None and reader.end.is_normal
    return good and is_whole and bool(batches)


@st.composite
def lying_segments(draw: st.DrawFn, paths: list[Path]) -> bytes:
    """Draw one to three reference segments, one after the other, in which headers of batches and messages say something else."""
    data = b""
    offset = 0
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        whole = path.read_bytes()
        for batch in SegmentReader(path):
            one = whole[batch.position : batch.position + batch.size]
            offset += draw(st.sampled_from([0, 0, 0, 5]))
            if batch.magic == 2:
                data += with_header(one, base_offset=offset, **draw(_other_fields(batch)))
            else:
                data += _with_message_header(one, draw(_other_fields_of_message(batch, offset)))
            offset += max(batch.last_offset - (batch.base_offset or 0), 0)
            offset += draw(st.sampled_from([1, 1, 1, 1, -1])) if offset else 1
    return data


LIES: dict[str, Callable[[Batch, Batch, Batch], dict[str, int]]] = {
    "none": lambda batch, before, opposite: {},
    "no-max-timestamp": lambda batch, before, opposite: {"max_timestamp": -1},
    "max-below-base": lambda batch, before, opposite: {
        "max_timestamp": max((batch.base_timestamp or 0) - 1, -MAX_OFFSET)
    },
    "last-delta-0": lambda batch, before, opposite: {"last_offset_delta": 0},
    "last-delta-negative": lambda batch, before, opposite: {"last_offset_delta": -1},
    "overlaps": lambda batch, before, opposite: {"base_offset": before.base_offset or 0},
    "descends": lambda batch, before, opposite: {"base_offset": opposite.base_offset or 0},
}
"""Fields that a batch gets, by the name of a lie. Arguments: the batch, the one before it, and the one as far from the other end."""

LIES_OF_MESSAGES: dict[str, Callable[[Batch, Batch, Batch], dict[str, int]]] = {
    "overlaps": lambda batch, before, opposite: {"offset": before.last_offset},
    "descends": lambda batch, before, opposite: {"offset": opposite.last_offset},
    "offset-0": lambda batch, before, opposite: {"offset": 0},
    "no-timestamp": lambda batch, before, opposite: {"timestamp": -1} if batch.magic else {},
    "early-timestamp": lambda batch, before, opposite: (
        {"timestamp": max(batch.max_timestamp - 1, 0)} if batch.magic else {}
    ),
}
"""The same for a message of versions 0 and 1, compressed or not."""


def lies_about(path: Path) -> tuple[str, ...]:
    """Return the names of the lies that the headers of a reference segment can tell."""
    versions = {batch.magic == 2 for batch in SegmentReader(path)}
    of_batches, of_messages = True in versions, False in versions
    return tuple(dict.fromkeys((*LIES,) * of_batches + ("none", *LIES_OF_MESSAGES) * of_messages))


def lying_vector(path: Path, lie: str) -> bytes:
    """Return a reference segment in which the headers of all batches and messages tell a lie of LIES or LIES_OF_MESSAGES."""
    whole = path.read_bytes()
    batches = list(SegmentReader(path))
    data = b""
    for i, batch in enumerate(batches):
        one = whole[batch.position : batch.position + batch.size]
        is_message = batch.magic < 2
        lies = LIES_OF_MESSAGES if is_message else LIES
        fields = lies.get(lie, LIES["none"])(batch, batches[max(i - 1, 0)], batches[-1 - i])
        data += _with_message_header(one, fields) if is_message else with_header(one, **fields)
    return data


def _with_message_header(message: bytes, fields: dict[str, int]) -> bytes:
    """Return a message with other values in its header. The offset of a wrapper of version 1 is raised as far as readers demand: to that of its last inner message, or it is 0."""
    found = LOG_ENTRY.parse(message, strict=False)
    if fields.get("offset") and found.magic and found.get("messages"):
        fields = {**fields, "offset": max(fields["offset"], found.messages[-1].offset)}
    return with_header(message, **fields)


def _other_fields_of_message(batch: Batch, offset: int) -> st.SearchStrategy[dict[str, int]]:
    """Draw the offset of a message, with ``offset`` as that of its first record, and the timestamp.

    The offset of a wrapper moves the offsets of version 1, unless it is 0. Those of version 0 do not move: any other one is a lie.
    """
    last = offset + batch.last_offset - (batch.base_offset or 0)
    offsets = st.sampled_from([0, last, last, last]) | st.integers(-3, 3).map(
        lambda by: max(last + by, 0)
    )
    if batch.magic == 0 and not batch.has_base_offset:
        offsets = st.just(batch.last_offset) | offsets
    if not batch.magic:
        return st.fixed_dictionaries({"offset": offsets})
    times = st.sampled_from([-1, 0, START]) | st.integers(-3, 3).map(
        lambda by: max(min(batch.max_timestamp + by, MAX_OFFSET), -MAX_OFFSET)
    )
    return st.fixed_dictionaries({"offset": offsets}, optional={"timestamp": times})


def _other_fields(batch: Batch) -> st.SearchStrategy[dict[str, int]]:
    delta = batch.last_offset - (batch.base_offset or 0)
    base, most = batch.base_timestamp or 0, batch.max_timestamp
    near = st.integers(-3, 3)
    deltas = st.sampled_from([0, 1, 1 << 20]) | near.map(
        lambda by: min(max(delta + by, 0), (1 << 31) - 1)
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "last_offset_delta": deltas,
            "base_timestamp": st.sampled_from([-1, 0, START])
            | near.map(lambda by: max(min(base + by, MAX_OFFSET), -MAX_OFFSET)),
            "max_timestamp": st.sampled_from([-1, 0, START])
            | near.map(lambda by: max(min(most + by, MAX_OFFSET), -MAX_OFFSET)),
        },
    )


def rows_and_lies(path: Path) -> tuple[list[Row], set[int]]:
    """Return all rows but control records, and the rows among them, by number, whose batch header is a plausible lie.

    Such a header agrees with itself, but not with the records: nothing but decoding shows it.
    """
    rows: list[Row] = []
    lies: set[int] = set()
    for batch in SegmentReader(path):
        mine = [(r.offset, r.timestamp) for r in batch.records if not r.is_control]
        if _lies(batch):
            lies |= set(range(len(rows), len(rows) + len(mine)))
        rows += mine
    return rows, lies


def _lies(batch: Batch) -> bool:
    if not batch.records:
        return False
    offsets = [record.offset for record in batch.records]
    latest = max(record.timestamp for record in batch.records)
    if batch.magic < 2:
        bounds_offsets = batch.magic == 0 or batch.last_offset != 0
        exceeds = max(offsets) > batch.last_offset and bounds_offsets
        return exceeds or -1 != batch.max_timestamp < latest
    assert batch.base_offset is not None and batch.record_count is not None
    if min(offsets) < batch.base_offset:
        return True
    spans_count = batch.last_offset - batch.base_offset + 1 >= batch.record_count
    if spans_count and max(offsets) > batch.last_offset:
        return True
    base = batch.base_timestamp if batch.delete_horizon is None else None
    agrees = batch.max_timestamp != -1 and (base is None or base <= batch.max_timestamp)
    return agrees and latest > batch.max_timestamp


def cuts(rows: list[Row], column: int) -> st.SearchStrategy[int]:
    """Draw a place to cut rows in two, by their offset or timestamp."""
    if not rows:
        return st.just(0)
    least = 0 if column == 0 else -(1 << 63)  # negative offsets count from the end
    near = st.sampled_from([max(row[column], least) for row in rows])
    return near.flatmap(lambda value: st.sampled_from([value, min(value + 1, MAX_OFFSET)]))


def assert_halves(
    halves: Iterator[list[Row]] | list[list[Row]], path: Path, column: int, cut: int
) -> None:
    """Assert that rows below a cut and rows from it on are all rows of a file, each once."""
    rows, lies = rows_and_lies(path)
    below, above = halves
    for found, expected in (
        (below, [i for i, row in enumerate(rows) if row[column] < cut]),
        (above, [i for i, row in enumerate(rows) if row[column] >= cut]),
    ):
        certain = [rows[i] for i in expected if i not in lies]
        possible = [rows[i] for i in expected]
        assert _is_part(certain, found) and _is_part(found, possible), (column, cut)


def _is_part(some: list[Row], rows: list[Row]) -> bool:
    """Return whether rows are among others, in the same order."""
    left = iter(rows)
    return all(row in left for row in some)
