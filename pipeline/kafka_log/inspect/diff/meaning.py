"""What a comparison found, and what to do next, in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafka_log.inspect.check.base import count_noun
from kafka_log.inspect.diff.comparison import Walked
from kafka_log.inspect.diff.side import Side

Row = Mapping[str, Any]
Said = tuple[str, str]
"""A meaning, and a remedy or nothing."""


def sentences(row: Row, walked: Walked) -> Said:
    """The meaning of all that was found, and the remedy of the worst."""
    found: list[Said] = [say for finding in row["findings"] for say in _said(finding, row, walked)]
    if not found:
        found = [(f"A and B have the same {count_noun(row['same'], 'record')}.", "Nothing.")]
    remedy = next((remedy for _, remedy in found if remedy), "Nothing: the records are the same.")
    return " ".join(meaning for meaning, _ in found), remedy


def _said(finding: str, row: Row, walked: Walked) -> Iterator[Said]:
    what, _, name = finding.rpartition("_") if finding[-2:] in ("_a", "_b") else (finding, "", "")
    here, other = (name.upper(), "A" if name == "b" else "B")
    yield _WORDS[what](row, walked, here, other)


def _parted(row: Row, walked: Walked, _: str, __: str) -> Said:
    first, a, b = row["first_offset"], row["epoch_a"], row["epoch_b"]
    if row["columns"] == ["leader_epoch"]:
        what = f"From offset {first} on A and B have the same records of other leader epochs ({a} and {b})."
    else:
        what = f"A and B have other records from offset {first} on ({', '.join(row['columns'])})."
    parts = [what, f"{count_noun(row['differ'], 'offset')} with other records"]
    parts[-1] += f"; {row['parted_a']} more in A alone, {row['parted_b']} in B alone."
    if walked.joins:
        parts.append(f"They agree again after offset {walked.last}.")
    if a is None or b is None or a == b:
        parts.append("Both are of the same leader epoch: no election leaves that.")
        return " ".join(
            parts
        ), "Look which of them other replicas agree with, and keep copies of both."
    older, newer = ("A", "B") if a < b else ("B", "A")
    low, high = min(a, b), max(a, b)
    parts.append(
        f"There {older} is of leader epoch {low} and {newer} of {high}: {newer} follows a leader that had not the records of {older},"
        " as after an unclean election."
    )
    if row["common_offset"] is not None:
        parts.append(
            f"By their leader epochs they agree up to offset {row['common_offset']} (epoch {row['common_epoch']})."
        )
    directory = row[f"directory_{older.lower()}"]
    remedy = (
        f"Keep a copy of {older} ({directory}) before its broker starts: as a follower it cuts its log at offset"
        f" {first if row['common_offset'] is None else row['common_offset']}, and its own records are gone."
    )
    return " ".join(parts), remedy


def _missing(row: Row, walked: Walked, here: str, other: str) -> Said:
    lacks = walked.a if here == "A" else walked.b
    return (
        f"{here} lacks {count_noun(lacks.missing, 'record')} of {other} inside its log, the first at offset {lacks.first_missing}:"
        " no compaction removes these.",
        f"Copy the partition from {other}, or delete it on the broker of {here}, which then fetches it anew.",
    )


def _damaged(row: Row, walked: Walked, here: str, other: str) -> Said:
    side: Side = walked.side_a if here == "A" else walked.side_b
    first = side.damage[0]
    more = len(side.damage) - 1
    count = row[f"damaged_{here.lower()}"]
    what = f"{here} is damaged at {os.fspath(first.path)}, bytes {first.start} to {first.end}: {first.reason}"
    what += f"; and at {count_noun(more, 'more place')}." if more else "."
    there = f" {other} has {count_noun(count, 'record')} there." if count else ""
    return (
        what + there,
        f"See what else is wrong with it: kafka-log check. Copy the partition from {other}.",
    )


def _behind(row: Row, walked: Walked, here: str, other: str) -> Said:
    ends = row[f"end_{here.lower()}"], row[f"end_{other.lower()}"]
    count = row[f"behind_{here.lower()}"]
    return (
        f"{here} is behind by {count_noun(count, 'record')}: it ends before offset {ends[0]}, {other} before {ends[1]}.",
        f"Nothing while {here} follows {other}, which sends these. With {here} as the leader they are lost.",
    )


def _trimmed(row: Row, walked: Walked, here: str, other: str) -> Said:
    start, count = row[f"start_{here.lower()}"], row[f"trimmed_{here.lower()}"]
    return (
        f"{here} begins at offset {start}: {count_noun(count, 'record')} of {other} before it are gone by retention, or were deleted.",
        "",
    )


def _cleaned(row: Row, walked: Walked, here: str, other: str) -> Said:
    both = row["cleaned_a"] and row["cleaned_b"]
    if both and here == "B":
        return f"{count_noun(row['cleaned_b'], 'record')} of A are gone from B by it.", ""
    count = row[f"cleaned_{here.lower()}"]
    if both:
        return (
            f"A and B were compacted at different times: {count_noun(count, 'record')} of B are gone from A.",
            "",
        )
    return (
        f"{here} was compacted further: {count_noun(count, 'record')} of {other} are gone from it.",
        "",
    )


def _batches(row: Row, walked: Walked, _: str, __: str) -> Said:
    return "The same records lie in other batches, or are compressed in another way.", ""


def _segments(row: Row, walked: Walked, _: str, __: str) -> Said:
    return "The segments begin at other offsets.", ""


_WORDS: Mapping[str, Callable[[Row, Walked, str, str], Said]] = {
    "parted": _parted,
    "missing": _missing,
    "damaged": _damaged,
    "behind": _behind,
    "trimmed": _trimmed,
    "cleaned": _cleaned,
    "batches": _batches,
    "segments": _segments,
}
