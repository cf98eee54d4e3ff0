"""Findings for people: a paragraph each, then how many there are."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

import pyarrow as pa

from kafka_log.inspect.check.base import are
from kafka_log.inspect.check.finding import SEVERITIES

_INDENT = "  "


def as_paragraphs(table: pa.Table, width: int | None) -> str:
    """The findings of a table in its order. ``width`` is that of the screen; None: lines are as long as they are."""
    rows = table.to_pylist()
    paragraphs = [_paragraph(row, width) for row in rows]
    counts = Counter(row["severity"] for row in rows)
    total = ", ".join(are(counts[severity], severity) for severity in SEVERITIES)
    return "\n\n".join([*paragraphs, total]) + "\n"


def _paragraph(row: dict[str, Any], width: int | None) -> str:
    where = "" if row["topic"] is None else f" in {row['topic']}-{row['partition']}"
    place = [row["file"] if row["byte"] is None else f"{row['file']}, byte {row['byte']}"]
    first, last = row["first_offset"], row["last_offset"]
    if first is not None:
        place.append(
            f"from offset {first} on"
            if last is None
            else f"offset {first}"
            if first == last
            else f"offsets {first} to {last}"
        )
    if row["records"] is not None:
        place.append(f"at most {are(row['records'], 'record')} at risk")
    lines = [f"{row['severity']}: {row['code']}{where}", _INDENT + ", ".join(place)]
    for sentence in (row["meaning"], row["remedy"]):
        lines += _folded(sentence, width)
    return "\n".join(map(_plain, lines))


def _folded(sentence: str, width: int | None) -> list[str]:
    if width is None:
        return [_INDENT + sentence]
    return textwrap.wrap(
        sentence, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )


def _plain(line: str) -> str:
    """Without what a screen would act on: names and messages are from files."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
