"""Segments whose batch headers say something else than their records, with checksums that are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from crc32c import crc32c
from hypothesis import strategies as st

from kafka_log import Batch, SegmentReader
from kafka_log.segment.ranges import MAX_OFFSET
from tests.paths import VECTORS

FIELDS = {"last_offset_delta": (23, 4), "base_timestamp": (27, 8), "max_timestamp": (35, 8)}
"""Where fields of a batch header of version 2 lie, and how long they are."""

START = 1_700_000_000_000
"""About the time of the records of the vectors."""

Row = tuple[int, int]
"""Offset and timestamp."""


def with_header(batch: bytes, **fields: int) -> bytes:
    """Return a batch of version 2 with other values in its header, and its checksum made right again. ``base_offset`` is one of them."""
    data = bytearray(batch)
    if (base := fields.pop("base_offset", None)) is not None:
        data[:8] = base.to_bytes(8, "big", signed=True)
    for name, value in fields.items():
        at, size = FIELDS[name]
        data[at : at + size] = value.to_bytes(size, "big", signed=True)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def good_vectors() -> list[Path]:
    """Return the small reference segments that have nothing wrong, and a batch of version 2."""
    paths = [path for path in sorted(VECTORS.glob("*/*.log")) if path.parent.name != "large"]
    return [path for path in paths if _is_good(path)]


def _is_good(path: Path) -> bool:
    reader = SegmentReader(path)
    batches = list(reader)
    good = all(b.is_valid and not b.problems and not b.findings for b in batches)
    is_whole = reader.end is not None and reader.end.is_normal
    return good and is_whole and any(b.magic == 2 for b in batches)


@st.composite
def lying_segments(draw: st.DrawFn, paths: list[Path]) -> bytes:
    """Draw two or three reference segments, one after the other, in which headers of batches say something else."""
    data = b""
    offset = 0
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        whole = path.read_bytes()
        for batch in SegmentReader(path):
            one = whole[batch.position : batch.position + batch.size]
            if batch.magic < 2:
                data += one
                continue
            fields = draw(_other_fields(batch))
            offset += draw(st.sampled_from([0, 0, 0, 5]))
            data += with_header(one, base_offset=offset, **fields)
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


def lying_vector(path: Path, lie: str) -> bytes:
    """Return a reference segment in which the headers of all batches of version 2 tell a lie of ``LIES``."""
    whole = path.read_bytes()
    batches = list(SegmentReader(path))
    data = b""
    for i, batch in enumerate(batches):
        one = whole[batch.position : batch.position + batch.size]
        fields = LIES[lie](batch, batches[max(i - 1, 0)], batches[-1 - i])
        data += with_header(one, **fields) if batch.magic == 2 else one
    return data


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
    if batch.magic < 2 or not batch.records:
        return False
    assert batch.base_offset is not None and batch.record_count is not None
    offsets = [record.offset for record in batch.records]
    if min(offsets) < batch.base_offset:
        return True
    spans_count = batch.last_offset - batch.base_offset + 1 >= batch.record_count
    if spans_count and max(offsets) > batch.last_offset:
        return True
    base = batch.base_timestamp if batch.delete_horizon is None else None
    agrees = batch.max_timestamp != -1 and (base is None or base <= batch.max_timestamp)
    return agrees and max(record.timestamp for record in batch.records) > batch.max_timestamp


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
