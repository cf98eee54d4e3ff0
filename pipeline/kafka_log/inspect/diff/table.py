"""Table of differences between two replicas: one row for each partition."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from kafka_log.inspect.diff.comparison import Comparison, Counts, compare_partitions
from kafka_log.inspect.diff.meaning import (
    DIFFERENT_TOPICS,
    describe_findings,
    describe_hidden_topic,
)
from kafka_log.inspect.diff.record_comparison import find_batch
from kafka_log.inspect.diff.side import Advance, Side
from kafka_log.logs.broker_files import find_topic_id, read_leader_epochs
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.logs.partitions import Partition
from kafka_log.segment.arrow_text import utf8

VERDICTS = (
    "parted",
    "missing",
    "damaged",
    "only_in",
    "behind",
    "trimmed",
    "cleaned",
    "batches",
    "segments",
    "same",
)
"""Possible findings, the worst first. The first three are problems."""

PROBLEMS = VERDICTS[:3]

_LACKS = ("missing", "damaged", "behind", "trimmed", "cleaned")


def _field(name: str, kind: Any, doc: str, nullable: bool = True) -> pa.Field:
    """Return an Arrow field with a doc."""
    return pa.field(name, kind, nullable, {"doc": doc})


def _pair_fields(name: str, kind: Any, doc: str, nullable: bool = True) -> list[pa.Field]:
    """Return two Arrow fields, one for each side."""
    return [_field(f"{name}_{side}", kind, doc, nullable) for side in "ab"]


_COUNT = pa.int64()
DIFFERENCES = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        _field("verdict", pa.string(), "Most severe finding, without its side.", False),
        _field(
            "findings",
            pa.list_(pa.string()),
            "All findings; the ending _a or _b names the side.",
            False,
        ),
        _field(
            "first_offset",
            _COUNT,
            "First offset of a divergence, of a missing or damaged record, or of an end.",
        ),
        *_pair_fields(
            "epoch", pa.int32(), "Leader epoch of the batch at first_offset; null if there is none."
        ),
        _field(
            "columns",
            pa.list_(pa.string()),
            "Columns that differ in the first different records.",
            False,
        ),
        _field(
            "same",
            _COUNT,
            "Number of records that both sides have, including transaction markers.",
            False,
        ),
        _field("differ", _COUNT, "Number of offsets at which the records differ.", False),
        *_pair_fields(
            "parted",
            _COUNT,
            "Number of records after the divergence that only this side has.",
            False,
        ),
        *_pair_fields(
            "missing",
            _COUNT,
            "Number of records of the other side that are missing on this side.",
            False,
        ),
        *_pair_fields(
            "damaged",
            _COUNT,
            "Number of records of the other side that are damaged on this side.",
            False,
        ),
        *_pair_fields(
            "behind",
            _COUNT,
            "Number of records of the other side after the end of this side.",
            False,
        ),
        *_pair_fields(
            "trimmed",
            _COUNT,
            "Number of records of the other side before the start of this side.",
            False,
        ),
        *_pair_fields(
            "cleaned",
            _COUNT,
            "Number of records of the other side that compaction removed on this side.",
            False,
        ),
        *_pair_fields("start", _COUNT, "First offset of the log."),
        *_pair_fields("end", _COUNT, "Offset after the last record."),
        _field("common_epoch", pa.int32(), "Last leader epoch that both sides have."),
        _field(
            "common_offset",
            _COUNT,
            "Offset to which a broker would truncate one side to follow the other.",
        ),
        *_pair_fields("file", pa.string(), "Segment with the batch at first_offset."),
        *_pair_fields("byte", _COUNT, "Position of that batch in the segment."),
        *_pair_fields("crc", _COUNT, "Checksum of that batch."),
        *_pair_fields("directory", pa.string(), "Path of the partition directory."),
        _field("meaning", pa.string(), "What was found, as a sentence.", False),
        _field("remedy", pa.string(), "The next step.", False),
    ]
)


def row_of_one_side(a: Partition | None, b: Partition | None) -> dict[str, Any]:
    """Return the row of a partition that only A or only B has; the other argument is None. The
    partition is not read: the verdict is ``only_in``, all counts are 0, and offsets, epochs and
    files are null for both sides.
    """
    there = a or b
    assert there is not None
    name = "a" if b is None else "b"
    row = dict.fromkeys(DIFFERENCES.names)
    for field in DIFFERENCES:
        if not field.nullable and field.type == pa.int64():
            row[field.name] = 0
    return {
        **row,
        "topic": utf8(there.topic),
        "partition": there.partition,
        "verdict": "only_in",
        "findings": [f"only_in_{name}"],
        "columns": [],
        f"directory_{name}": utf8(os.fspath(there.directory)),
        "meaning": f"Only {name.upper()} has this partition.",
        "remedy": "Nothing to do if the other broker has no replica of the partition. Otherwise run kafka-log check on the log directory of the other broker: partition_missing says whether a partition should be there.",
    }


def compare_row(a: Partition, b: Partition, comparison: Comparison) -> dict[str, Any]:
    """Return the row of a partition that both sides have, in the columns of :data:`DIFFERENCES`.
    Its verdict is the worst finding, or ``same`` without findings. Columns about a batch at the
    first difference are null for a side that has none there. If there are findings and the topic
    ids differ, meaning and remedy are about the ids only.
    """
    findings = _findings(comparison)
    verdict = next(v for v in VERDICTS if v in {_strip_side(f) for f in findings} or v == "same")
    first = _first_offset(comparison, verdict)
    common = _find_common_epoch(a, b, comparison)
    row: dict[str, Any] = {
        "topic": utf8(a.topic),
        "partition": a.partition,
        "verdict": verdict,
        "findings": findings,
        "first_offset": first,
        "columns": list(comparison.columns),
        "same": comparison.same,
        "differ": comparison.differ,
        "common_epoch": None if common is None else common.epoch,
        "common_offset": None if common is None else common.offset,
    }
    sides = (("a", a, comparison.side_a, comparison.a), ("b", b, comparison.side_b, comparison.b))
    for name, partition, side, lacks in sides:
        row |= {f"{what}_{name}": getattr(lacks, what) for what in _LACKS}
        row |= {f"start_{name}": side.start, f"end_{name}": side.end}
        row[f"directory_{name}"] = utf8(os.fspath(partition.directory))
        found = None if first is None else find_batch(side, first)
        file, byte, crc, epoch = found or (None, None, None, None)
        row |= {f"file_{name}": None if file is None else utf8(file), f"byte_{name}": byte}
        row |= {f"crc_{name}": crc, f"epoch_{name}": epoch}
    row |= {"parted_a": comparison.b.parted, "parted_b": comparison.a.parted}
    explained = describe_findings(row, comparison)
    (id_a, hidden_a), (id_b, hidden_b) = (find_topic_id(p.directory) for p in (a, b))
    if findings and len({id_a, id_b} - {None}) > 1:
        explained = DIFFERENT_TOPICS
    elif findings and (hidden := hidden_a or hidden_b) is not None:
        explained = describe_hidden_topic(hidden, explained)
    row["meaning"], row["remedy"] = map(utf8, explained)
    return row


def _strip_side(finding: str) -> str:
    """Return a finding without the side at its end."""
    return finding.removesuffix("_a").removesuffix("_b")


def _findings(comparison: Comparison) -> list[str]:
    """Return the names of what was found, the worst first; ``[]`` if the logs are the same. They
    are ``parted``; then ``missing``, ``damaged``, ``behind``, ``trimmed`` and ``cleaned``, each
    with ``_a`` or ``_b`` for the side; ``batches`` (unless records were cleaned) and ``segments``.
    """
    found = ["parted"] if comparison.first is not None else []
    sides: tuple[tuple[str, Side, Counts], ...] = (
        ("a", comparison.side_a, comparison.a),
        ("b", comparison.side_b, comparison.b),
    )
    for what in _LACKS:
        for name, side, lacks in sides:
            if (
                getattr(lacks, what)
                or (what == "damaged" and side.damage)
                or (what == "behind" and side is _shorter_side(comparison))
            ):
                found.append(f"{what}_{name}")
    if comparison.other_batches and not (comparison.a.cleaned or comparison.b.cleaned):
        found.append("batches")
    if _bounds(comparison.side_a, comparison.side_b) != _bounds(
        comparison.side_b, comparison.side_a
    ):
        found.append("segments")
    return found


def _shorter_side(comparison: Comparison) -> Side | None:
    """Return the side whose log ends before that of the other one, None if neither does. It is None too if a side
    has damage or no known end, or if the logs part: what lies at their ends has another reason.
    """
    a, b = comparison.side_a, comparison.side_b
    if a.damage or b.damage or comparison.first is not None or a.end is None or b.end is None:
        return None
    return None if a.end == b.end else min(a, b, key=lambda side: side.end or 0)


def _bounds(side: Side, other: Side) -> set[int]:
    """Return the base offsets of the segments of ``side`` that lie inside the offsets of both
    sides: above the higher start and below the lower end. Segments without an offset in their name
    are left out.
    """
    low = max(side.start or 0, other.start or 0)
    high = min(side.end or 0, other.end or 0)
    return {
        s.base_offset for s in side.segments if s.has_offset_in_name and low < s.base_offset < high
    }


def _first_offset(comparison: Comparison, verdict: str) -> int | None:
    """Return the offset that the verdict is about, None for verdicts without one. It is the first
    different record for ``parted``, the first missing one for ``missing``, the first that damage
    may have lost for ``damaged`` (0 if unknown), and the lowest end of a side that is behind for
    ``behind``.
    """
    sides = ((comparison.side_a, comparison.a), (comparison.side_b, comparison.b))
    if verdict == "parted":
        return comparison.first
    if verdict == "missing":
        return min(c.first_missing for _, c in sides if c.first_missing is not None)
    if verdict == "damaged":
        after = [d.after for side, _ in sides for d in side.damage]
        return min(0 if offset is None else offset + 1 for offset in after)
    if verdict == "behind":
        return min(
            (
                side.end
                for side, c in sides
                if side.end is not None and (c.behind or side is _shorter_side(comparison))
            ),
            default=None,
        )
    return None


def _find_common_epoch(a: Partition, b: Partition, comparison: Comparison) -> CommonEpoch | None:
    """Return the last leader epoch that both sides have, with the lower of its two end offsets;
    None if they have none in common. Epochs come from leader-epoch-checkpoint if both files can be
    read, else from the batches.
    """
    epochs_a, epochs_b = read_epochs(a.directory), read_epochs(b.directory)
    if epochs_a is None or epochs_b is None:
        epochs_a, epochs_b = comparison.side_a.epochs, comparison.side_b.epochs
    return find_last_common(
        epochs_a, comparison.side_a.end or 0, epochs_b, comparison.side_b.end or 0
    )


Epochs = Sequence[tuple[int, int]]
"""Leader epochs, each with its first offset; both rise."""


class CommonEpoch(NamedTuple):
    """Last leader epoch that both replicas have, and the offset up to which both have it."""

    epoch: int
    offset: int


def read_epochs(directory: Path) -> Epochs | None:
    """Return the leader epochs in leader-epoch-checkpoint of a partition directory, each with its
    start offset, ascending. Return None if the file is missing, cannot be read, or has no epoch or
    unordered ones.
    """
    return read_leader_epochs(directory / LEADER_EPOCHS) or None


def find_last_common(a: Epochs, end_a: int, b: Epochs, end_b: int) -> CommonEpoch | None:
    """Return the largest leader epoch in both ``a`` and ``b``, with the lower of its two end
    offsets. A follower with one log truncates it there if the leader has the other. Return None if
    they have no epoch in common. ``end_a`` and ``end_b`` are the end offsets of the logs.

    The follower asks for the end of its last epoch, the leader answers with the largest epoch that
    it knows up to that one, and so on. This ends at the largest epoch that both have, at the lower
    of its two ends.
    """
    ends_a, ends_b = _ends(a, end_a), _ends(b, end_b)
    both = ends_a.keys() & ends_b.keys()
    if not both:
        return None
    epoch = max(both)
    return CommonEpoch(epoch, min(ends_a[epoch], ends_b[epoch]))


def _ends(epochs: Epochs, end: int) -> dict[int, int]:
    """Return the end offset of each epoch."""
    stops = [start for _, start in epochs[1:]] + [end]
    return {epoch: stop for (epoch, _), stop in zip(epochs, stops, strict=False)}


Pair = tuple[Partition | None, Partition | None]


def diff_table(pairs: Sequence[Pair], advance: Advance = lambda _: None) -> pa.Table:
    """Compare pairs of partitions and return a row for each, in the columns of :data:`DIFFERENCES`.
    A pair with None gets the verdict ``only_in``. Damage and unreadable files are findings. Raise
    UnreadableError if retention deletes a segment while transactions are read.
    """
    rows = []
    for a, b in pairs:
        if a is None or b is None:
            rows.append(row_of_one_side(a, b))
        else:
            rows.append(compare_row(a, b, compare_partitions(a, b, advance)))
    return pa.Table.from_pylist(rows, DIFFERENCES)


def pair_partitions(
    a: Sequence[Partition], b: Sequence[Partition], *, whatever_their_names: bool
) -> list[Pair]:
    """Return pairs of partitions with the same topic and number, sorted by them; None stands for a
    side that lacks the partition. Of several on one side the last counts. If
    ``whatever_their_names`` and each side has exactly one partition, return these two as the only
    pair.

    Args:
        a: Partitions of the first directory.
        b: Partitions of the second directory.
        whatever_their_names: Pair two single partitions although their names differ.
    """
    if whatever_their_names and len(a) == len(b) == 1:
        return [(a[0], b[0])]
    return list(_pair_by_name(a, b))


def _pair_by_name(a: Sequence[Partition], b: Sequence[Partition]) -> Iterator[Pair]:
    """Yield the partitions of A and B with the same topic and number, sorted by topic and number;
    None for a side that lacks it.
    """
    epochs_a = {(p.topic, p.partition): p for p in a}
    epochs_b = {(p.topic, p.partition): p for p in b}
    for key in sorted(epochs_a.keys() | epochs_b.keys()):
        yield epochs_a.get(key), epochs_b.get(key)
