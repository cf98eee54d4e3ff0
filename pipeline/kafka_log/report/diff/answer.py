"""What a comparison says of a partition, as a row."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from kafka_log.logs.partitions import Partition
from kafka_log.report.diff.epochs import Common, checkpoint, last_common
from kafka_log.report.diff.meaning import sentences
from kafka_log.report.diff.rows import place
from kafka_log.report.diff.side import Side
from kafka_log.report.diff.walk import Counts, Walked
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
"""What can be found, the worst first. The first three are differences."""

PROBLEMS = VERDICTS[:3]

_LACKS = ("missing", "damaged", "behind", "trimmed", "cleaned")


def _field(name: str, kind: Any, doc: str, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, {"doc": doc})


def _of_both(name: str, kind: Any, doc: str, nullable: bool = True) -> list[pa.Field]:
    return [_field(f"{name}_{side}", kind, doc, nullable) for side in "ab"]


_COUNT = pa.int64()
DIFFERENCES = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        _field("verdict", pa.string(), "The worst of what was found.", False),
        _field("findings", pa.list_(pa.string()), "All that was found; _a, _b: where.", False),
        _field("first_offset", _COUNT, "Where they part, or one lacks or lost something."),
        *_of_both("epoch", pa.int32(), "Leader epoch of the batch there; null: there is none."),
        _field("columns", pa.list_(pa.string()), "What differs of the records there.", False),
        _field("same", _COUNT, "Records that both have, markers too.", False),
        _field("differ", _COUNT, "Offsets at which they have other records.", False),
        *_of_both("parted", _COUNT, "Records of this side alone after the parting.", False),
        *_of_both("missing", _COUNT, "Records of the other that are missing here.", False),
        *_of_both("damaged", _COUNT, "Records of the other that are damaged here.", False),
        *_of_both("behind", _COUNT, "Records of the other after the end of this one.", False),
        *_of_both("trimmed", _COUNT, "Records of the other before the start of this one.", False),
        *_of_both("cleaned", _COUNT, "Records of the other that a cleaner removed here.", False),
        *_of_both("start", _COUNT, "The first offset of the log."),
        *_of_both("end", _COUNT, "The offset that follows the last record."),
        _field("common_epoch", pa.int32(), "The last leader epoch that both have."),
        _field("common_offset", _COUNT, "Where a broker would make one follow the other."),
        *_of_both("file", pa.string(), "Segment with the batch at first_offset."),
        *_of_both("byte", _COUNT, "Where that batch begins."),
        *_of_both("crc", _COUNT, "Its checksum."),
        *_of_both("directory", pa.string(), "The partition."),
        _field("meaning", pa.string(), "What was found, for people.", False),
        _field("remedy", pa.string(), "The next step.", False),
    ]
)


def alone(a: Partition | None, b: Partition | None) -> dict[str, Any]:
    """The row of a partition that one side has."""
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
        "remedy": "Nothing, if the other broker has no replica of it.",
    }


def row_of(a: Partition, b: Partition, walked: Walked) -> dict[str, Any]:
    """The row of a partition that both sides have. Raises OSError."""
    findings = _findings(walked)
    verdict = next(v for v in VERDICTS if v in {_plain(f) for f in findings} or v == "same")
    first = _first(walked, verdict)
    common = _common(a, b, walked)
    row: dict[str, Any] = {
        "topic": utf8(a.topic),
        "partition": a.partition,
        "verdict": verdict,
        "findings": findings,
        "first_offset": first,
        "columns": list(walked.columns),
        "same": walked.same,
        "differ": walked.differ,
        "common_epoch": None if common is None else common.epoch,
        "common_offset": None if common is None else common.offset,
    }
    sides = (("a", a, walked.side_a, walked.a), ("b", b, walked.side_b, walked.b))
    for name, partition, side, lacks in sides:
        row |= {f"{what}_{name}": getattr(lacks, what) for what in _LACKS}
        row |= {f"start_{name}": side.start, f"end_{name}": side.end}
        row[f"directory_{name}"] = utf8(os.fspath(partition.directory))
        found = None if first is None else place(side, first)
        file, byte, crc, epoch = found or (None, None, None, None)
        row |= {f"file_{name}": None if file is None else utf8(file), f"byte_{name}": byte}
        row |= {f"crc_{name}": crc, f"epoch_{name}": epoch}
    row |= {"parted_a": walked.b.parted, "parted_b": walked.a.parted}
    row["meaning"], row["remedy"] = map(utf8, sentences(row, walked))
    return row


def _plain(finding: str) -> str:
    return finding.removesuffix("_a").removesuffix("_b")


def _findings(walked: Walked) -> list[str]:
    found = ["parted"] if walked.first is not None else []
    sides: tuple[tuple[str, Side, Counts], ...] = (
        ("a", walked.side_a, walked.a),
        ("b", walked.side_b, walked.b),
    )
    for what in _LACKS:
        for name, side, lacks in sides:
            if getattr(lacks, what) or (what == "damaged" and side.damage):
                found.append(f"{what}_{name}")
    if walked.other_batches and not (walked.a.cleaned or walked.b.cleaned):
        found.append("batches")
    if _bounds(walked.side_a, walked.side_b) != _bounds(walked.side_b, walked.side_a):
        found.append("segments")
    return found


def _bounds(side: Side, other: Side) -> set[int]:
    """Where segments of a side begin, inside of what both have."""
    low = max(side.start or 0, other.start or 0)
    high = min(side.end or 0, other.end or 0)
    return {
        s.base_offset for s in side.segments if s.has_offset_in_name and low < s.base_offset < high
    }


def _first(walked: Walked, verdict: str) -> int | None:
    sides = ((walked.side_a, walked.a), (walked.side_b, walked.b))
    if verdict == "parted":
        return walked.first
    if verdict == "missing":
        return min(c.first_missing for _, c in sides if c.first_missing is not None)
    if verdict == "damaged":
        after = [d.after for side, _ in sides for d in side.damage]
        return min(0 if offset is None else offset + 1 for offset in after)
    if verdict == "behind":
        return min(
            (side.end for side, c in sides if c.behind and side.end is not None), default=None
        )
    return None


def _common(a: Partition, b: Partition, walked: Walked) -> Common | None:
    """By the files of both, or else by the batches of both: these know only what is still there."""
    of_a, of_b = checkpoint(a.directory), checkpoint(b.directory)
    if of_a is None or of_b is None:
        of_a, of_b = walked.side_a.epochs, walked.side_b.epochs
    return last_common(of_a, walked.side_a.end or 0, of_b, walked.side_b.end or 0)
