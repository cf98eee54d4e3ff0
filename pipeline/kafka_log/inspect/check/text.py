"""Text output of findings."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.catalog import SEVERITIES
from kafka_log.segment.printable import escape_unprintable

_INDENT = "  "


def format_findings(table: pa.Table, width: int | None) -> str:
    """Return a paragraph for each finding of a table, in its order, and a last line that counts
    errors, warnings and notes. Without findings, return that line alone.

    Args:
        table: Findings in the columns of :data:`~kafka_log.inspect.check.finding.FINDINGS`.
        width: Width at which sentences are wrapped; None: they are not.
    """
    rows = table.to_pylist()
    paragraphs = [_paragraph(row, width) for row in rows]
    counts = Counter(row["severity"] for row in rows)
    total = ", ".join(count_noun(counts[severity], severity) for severity in SEVERITIES)
    return "\n\n".join([*paragraphs, total]) + "\n"


def _paragraph(row: dict[str, Any], width: int | None) -> str:
    """Return the lines about one finding as one text. The first has severity, id and partition; the
    second file, byte, offsets and records at risk, as far as known; meaning and remedy follow,
    wrapped at ``width`` characters (None: not wrapped). Unprintable characters are escaped.
    """
    where = "" if row["topic"] is None else f" in {row['topic']}-{row['partition']}"
    lines = [f"{row['severity']}: {row['code']}{where}", _INDENT + describe_place(row)]
    for sentence in (row["meaning"], row["remedy"]):
        lines += _wrap_sentence(sentence, width)
    return "\n".join(map(escape_unprintable, lines))


def describe_place(row: Mapping[str, Any]) -> str:
    """Return where the finding in a table row is: file, byte, offsets, and the largest number of
    records lost or at risk. What is None is left out: without a last offset it is ``from offset
    N``, without a first one there are no offsets.
    """
    place = [row["file"] if row["byte"] is None else f"{row['file']}, byte {row['byte']}"]
    first, last = row["first_offset"], row["last_offset"]
    if first is not None:
        place.append(
            f"from offset {first}"
            if last is None
            else f"offset {first}"
            if first == last
            else f"offsets {first} to {last}"
        )
    if row["records"] is not None:
        place.append(f"at most {count_noun(row['records'], 'record')} lost or at risk")
    return ", ".join(place)


def _wrap_sentence(sentence: str, width: int | None) -> list[str]:
    """Return a sentence as lines of at most ``width`` characters, each indented by two spaces; as
    one line if ``width`` is None.
    """
    if width is None:
        return [_INDENT + sentence]
    return textwrap.wrap(
        sentence, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
