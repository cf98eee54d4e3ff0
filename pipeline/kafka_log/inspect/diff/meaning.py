"""Meaning and remedy of what a comparison found, as sentences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.diff.comparison import Comparison
from kafka_log.inspect.diff.side import Side

Row = Mapping[str, Any]
Explanation = tuple[str, str]
"""Meaning, and remedy or ``""``."""

_NO_CHECKSUM = "no checksum covers it"
_CHECK_EPOCHS = (
    "Run kafka-log check on both: its findings leader_epoch_unknown, leader_epoch_start,"
    " leader_epoch_descends and leader_epoch_negative name a batch whose header is wrong."
)
DIFFERENT_TOPICS: Explanation = (
    "A and B are different topics, because partition.metadata states different topic ids: no broker copies records from one to the other.",
    "Nothing to do if they have different names or are of two clusters. Otherwise one of the topics was deleted: kafka-log metadata prints"
    " the id of the topic that exists.",
)
"""Explanation of all findings of two logs with different topic ids."""


def describe_hidden_topic(hidden: CodecError, explained: Explanation) -> Explanation:
    """Return the explanation of the findings of two logs, after a sentence that they may be different
    topics, because ``hidden`` hides the topic id of one.
    """
    meaning, remedy = explained
    return (
        f"A and B may be different topics, because a topic id is not known: {hidden}. If they are replicas: {meaning}",
        remedy,
    )


_ASK_OTHERS = "compare A and B with another replica (kafka-log diff), and keep copies of both"


def describe_findings(row: Row, comparison: Comparison) -> Explanation:
    """Return the meanings of all findings of a row as one text, and the remedy of the first, which
    is the worst, that has one. Without findings say that both sides have the same records; without
    a remedy, that nothing is to be done.
    """
    found: list[Explanation] = [
        explanation
        for finding in row["findings"]
        for explanation in _describe(finding, row, comparison)
    ]
    if not found:
        found = [(f"A and B have the same {count_noun(row['same'], 'record')}.", "Nothing to do.")]
    remedy = next((remedy for _, remedy in found if remedy), "Nothing to do: no record is lost.")
    return " ".join(meaning for meaning, _ in found), remedy


def _describe(finding: str, row: Row, comparison: Comparison) -> Iterator[Explanation]:
    """Yield the meaning and remedy of one finding of a row."""
    what, _, name = finding.rpartition("_") if finding[-2:] in ("_a", "_b") else (finding, "", "")
    here, other = (name.upper(), "A" if name == "b" else "B")
    yield _WORDS[what](row, comparison, here, other)


def _describe_parted(row: Row, comparison: Comparison, _: str, __: str) -> Explanation:
    """Return meaning and remedy for logs with different records: from which offset, in which
    columns, how many, and which side follows a newer leader epoch. Remedy: keep a copy of the side
    with the older epoch, which its broker truncates; if the epochs are equal or unknown, ask the
    other replicas. If only epochs differ and both sides agree again, the epoch in a header is
    wrong: the remedy is to check both.
    """
    first, a, b = row["first_offset"], row["epoch_a"], row["epoch_b"]
    is_same = row["columns"] == ["leader_epoch"] and comparison.only_epochs
    if is_same:
        where = f"at {count_noun(row['differ'], 'offset')} from {first} to {comparison.last}"
        parts = [
            f"A and B have the same records, but different leader epochs ({a} and {b}) {where}."
        ]
    else:
        columns = ", ".join(row["columns"])
        parts = [
            f"A and B have different records from offset {first} on (columns {columns}).",
            f"The records differ at {count_noun(row['differ'], 'offset')}; {row['parted_a']} more are only in A, {row['parted_b']} only in B.",
        ]
    if comparison.joins:
        parts.append(f"After offset {comparison.last} they agree again.")
    if is_same and comparison.joins:
        parts.append(f"So the leader epoch in a batch header of A or B is wrong: {_NO_CHECKSUM}.")
        return " ".join(parts), f"{_CHECK_EPOCHS} If it names none, {_ASK_OTHERS}."
    if a is None or b is None or a == b:
        if a is not None and b is not None:
            parts.append("Both have the same leader epoch there, so an election is not the cause.")
        return " ".join(parts), f"{_ASK_OTHERS[0].upper()}{_ASK_OTHERS[1:]}."
    older, newer = ("A", "B") if a < b else ("B", "A")
    low, high = min(a, b), max(a, b)
    parts.append(
        f"There {older} has leader epoch {low} and {newer} has {high}: {newer} followed a leader without the records of {older},"
        f" as after an unclean election{f', or the epoch in a batch header is wrong: {_NO_CHECKSUM}' if is_same else ''}."
    )
    if row["common_offset"] is not None:
        parts.append(
            f"Their leader epochs agree up to offset {row['common_offset']} (epoch {row['common_epoch']})."
        )
    directory = row[f"directory_{older.lower()}"]
    remedy = (
        f"Keep a copy of {older} ({directory}) before its broker starts: as a follower it truncates its log to offset"
        f" {first if row['common_offset'] is None else row['common_offset']}, and the records that only it has are lost."
    )
    if is_same:
        remedy = f"{_CHECK_EPOCHS} If it names none: {remedy[0].lower()}{remedy[1:]}"
    return " ".join(parts), remedy


def _copy_partition(row: Row, here: str, other: str) -> str:
    """Return the steps by which the broker of the side ``here`` (``"A"`` or ``"B"``) copies the
    partition from that of ``other`` (the other letter). The other broker has to lead the partition;
    this one is stopped, its directory in ``row`` moved away, and it is started again.
    """
    directory = row[f"directory_{here.lower()}"]
    return (
        f"While the broker of {other} leads the partition, stop the broker of {here}, move {directory} away and keep it, and start the broker:"
        f" it copies the partition. If the broker of {here} leads, make that of {other} the leader first."
    )


def _describe_missing(row: Row, comparison: Comparison, here: str, other: str) -> Explanation:
    """Return meaning and remedy for records that the side ``here`` (``"A"`` or ``"B"``) lacks
    inside its log, although no compaction removes them. The meaning has their number and first
    offset. Remedy: let the broker of ``here`` copy the partition from that of ``other`` (the other
    letter), after its directory, which ``row`` names, was moved away.
    """
    lacks = comparison.a if here == "A" else comparison.b
    return (
        f"{here} lacks {count_noun(lacks.missing, 'record')} of {other} inside its log, the first at offset {lacks.first_missing}:"
        " compaction does not remove these.",
        _copy_partition(row, here, other),
    )


def _describe_damaged(row: Row, comparison: Comparison, here: str, other: str) -> Explanation:
    """Return meaning and remedy for damaged bytes on the side ``here``, ``"A"`` or ``"B"``;
    ``other`` is the other letter. The meaning has the first damaged range with its reason, how many
    more there are, and how many records ``other`` has there (left out if 0). The remedy is to check
    both, then to copy the partition from ``other`` if that is whole there, else to salvage. Raise
    IndexError if the side has no damage.
    """
    side: Side = comparison.side_a if here == "A" else comparison.side_b
    first = side.damage[0]
    more = len(side.damage) - 1
    count = row[f"damaged_{here.lower()}"]
    place = f", bytes {first.start} to {first.end}" if first.end > first.start else ""
    what = f"{here} is damaged at {os.fspath(first.path)}{place}: {first.reason}"
    what += f"; and in {count_noun(more, 'more place')}." if more else "."
    there = f" {other} has {count_noun(count, 'record')} there." if count else ""
    return (
        what + there,
        f"Run kafka-log check on both: it names all damage. If {other} is whole there: {_copy_partition(row, here, other)} Otherwise write the readable records to a new log with kafka-log salvage.",
    )


def _describe_behind(row: Row, comparison: Comparison, here: str, other: str) -> Explanation:
    """Return meaning and remedy for the side ``here`` (``"A"`` or ``"B"``), whose log ends before
    that of ``other`` (the other letter). The meaning has the number of records it lacks and both
    end offsets. Remedy: nothing if it is a follower, which fetches them; to check both if ``other``
    has no records there, but the name of a segment. ``comparison`` is not used.
    """
    ends = row[f"end_{here.lower()}"], row[f"end_{other.lower()}"]
    count = row[f"behind_{here.lower()}"]
    if not count:
        return (
            f"{here} ends before offset {ends[0]}, and {other} before {ends[1]} by the name of its last segment, but {other} has no record from {ends[0]} on.",
            f"Run kafka-log check on both: segment_missing and offsets_missing say whether {other} has lost records.",
        )
    return (
        f"{here} is behind by {count_noun(count, 'record')}: it ends before offset {ends[0]}, and {other} before {ends[1]}.",
        f"Nothing to do while the broker of {other} leads the partition: {here} fetches the records from it. If the broker of {here} becomes the leader, {other} truncates them, and they are lost.",
    )


def _describe_trimmed(row: Row, comparison: Comparison, here: str, other: str) -> Explanation:
    """Return meaning and remedy for the side ``here`` (``"A"`` or ``"B"``), whose log begins later:
    its start offset, and the number of records of ``other`` (the other letter) before it.
    ``comparison`` is not used.
    """
    start, count = row[f"start_{here.lower()}"], row[f"trimmed_{here.lower()}"]
    return (
        f"{here} begins at offset {start}: retention or DeleteRecords removed {count_noun(count, 'record')} of {other} before it.",
        f"Nothing to do if you expect that. Otherwise run kafka-log check on {here}: segment_missing says whether its first segment is lost.",
    )


def _describe_cleaned(row: Row, comparison: Comparison, here: str, other: str) -> Explanation:
    """Return the sentence about the side ``here`` (``"A"`` or ``"B"``), from which compaction
    removed records of ``other`` (the other letter), with their number. The remedy is ``""``. If
    compaction removed records from both sides, the sentence for B is short and continues the one
    for A. ``comparison`` is not used.
    """
    both = row["cleaned_a"] and row["cleaned_b"]
    if both and here == "B":
        return f"It removed {count_noun(row['cleaned_b'], 'record')} of A from B.", ""
    count = row[f"cleaned_{here.lower()}"]
    if both:
        return (
            f"A and B were compacted at different times. Compaction removed {count_noun(count, 'record')} of B from A.",
            "",
        )
    return (
        f"{here} was compacted further: {count_noun(count, 'record')} of {other} were removed from it.",
        "",
    )


def _same_records(row: Row) -> str:
    """Return the start of a sentence about all records, or those that are equal if the row has findings about others."""
    if {"batches", "segments"}.issuperset(row["findings"]):
        return "The records are the same"
    return "Other records are the same"


def _describe_batches(row: Row, comparison: Comparison, _: str, __: str) -> Explanation:
    """Return the sentence about records in different batches; its remedy is ``""``."""
    return f"{_same_records(row)}, but their batches or codecs differ.", ""


def _describe_segments(row: Row, comparison: Comparison, _: str, __: str) -> Explanation:
    """Return the sentence about different segment boundaries; its remedy is ``""``."""
    return f"{_same_records(row)}, but the segments begin at different offsets.", ""


_WORDS: Mapping[str, Callable[[Row, Comparison, str, str], Explanation]] = {
    "parted": _describe_parted,
    "missing": _describe_missing,
    "damaged": _describe_damaged,
    "behind": _describe_behind,
    "trimmed": _describe_trimmed,
    "cleaned": _describe_cleaned,
    "batches": _describe_batches,
    "segments": _describe_segments,
}
