"""The report of a rewrite as text: a line for each partition, and below it what was not kept as it was."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import Any

import pyarrow as pa

from codecgen.runtime.nouns import count_noun
from kafka_log.segment.printable import escape_unprintable

_INDENT = "  "
_WORDS = {"rewritten": "written anew", "open": "left open", "twice": "there twice"}


def format_report(table: pa.Table, width: int | None) -> str:
    """Return a report (:data:`kafka_log.write.rewrite.report.REPORT_SCHEMA`) as text. It has a
    summary line for each partition (whose rows must follow each other), a line for each row except
    ``kept`` and ``indexed`` without a reason, the number of diverged records, if any, and the number
    of losses. A report of repairs alone, or without rows, has the number of repairs instead. Lines
    but the last are folded at ``width`` unless it is None.
    """
    lines: list[str] = []
    rows = table.to_pylist()
    for (topic, partition), group in groupby(rows, lambda r: (r["topic"], r["partition"])):
        of_partition = list(group)
        lines += _fold_line(f"{topic}-{partition}: {_summarize_partition(of_partition)}", "", width)
        for row in of_partition:
            if row["what"] not in ("kept", "indexed") or row["reason"]:
                lines += _fold_line(_line(row), _INDENT, width)
    if all(row["what"] in ("repaired", "not repaired") for row in rows):
        return "\n".join([*lines, _count_repairs(rows)]) + "\n"
    diverged = [row for row in rows if row["what"] == "diverged"]
    if any(row["records"] or row["control_records"] for row in diverged):
        lines += _fold_line(_describe_diverged(diverged), "", width)
    lost = sum(row["what"] == "lost" for row in rows)
    lines.append(
        f"{lost} ranges or records are lost: see the lines with lost" if lost > 1 else _ONCE[lost]
    )
    return "\n".join(lines) + "\n"


_ONCE = ("nothing is lost", "1 range or record is lost: see the line with lost")


def _describe_diverged(rows: list[dict[str, Any]]) -> str:
    """Return the line about records of replicas that diverge from the log that is written."""
    count = sum(row["records"] + row["control_records"] for row in rows)
    verb = "diverges" if count == 1 else "diverge"
    return f"{_count_records(rows)} of other replicas {verb} from this log: see the lines with diverged"


def _count_records(rows: list[dict[str, Any]]) -> str:
    """Return the number of records of rows, with that of control records unless there are none. If
    all are control records, name these alone.
    """
    records, control = (sum(row[name] for row in rows) for name in ("records", "control_records"))
    if not control:
        return count_noun(records, "record", spec=",")
    markers = count_noun(control, "control record", spec=",")
    return f"{count_noun(records, 'record', spec=',')} and {markers}" if records else markers


def _count_repairs(rows: list[dict[str, Any]]) -> str:
    """Return the last line of a report whose rows are all ``repaired`` or ``not repaired``: how
    many batches can be repaired, and how many cannot, unless that is 0.
    """
    repaired = sum(row["what"] == "repaired" for row in rows)
    left = len(rows) - repaired
    text = f"{count_noun(repaired, 'batch', 'batches')} can be repaired"
    return f"{text}, {left} cannot" if left else text


def _summarize_partition(rows: list[dict[str, Any]]) -> str:
    """Return the summary of a partition's rows. It has the number of indexed segments, if there are
    any; else that of damaged batches if all rows are ``repaired`` or ``not repaired``; else the
    records, batches and segments that were kept or rewritten (segments only if there are any).
    """
    indexed = [row for row in rows if row["what"] == "indexed"]
    if indexed:
        return f"{count_noun(len(indexed), 'segment', spec=',')} indexed"
    if all(row["what"] in ("repaired", "not repaired") for row in rows):
        return count_noun(len(rows), "damaged batch", "damaged batches", spec=",")
    there = [row for row in rows if row["what"] in ("kept", "rewritten")]
    batches = sum(row["batches"] for row in there)
    segments = {row["file"] for row in there if row["batches"]}
    text = f"{_count_records(there)} in {count_noun(batches, 'batch', 'batches', spec=',')}"
    return f"{text} of {count_noun(len(segments), 'segment', spec=',')}" if segments else text


def _line(row: dict[str, Any]) -> str:
    """Return a report row as one line: what, file, byte position, number of bytes, first and last
    offset (both included), number of records and reason, without those that are None.
    """
    parts = [f"{_WORDS.get(row['what'], row['what'])}: {row['file']}"]
    if row["byte"] is not None:
        parts[0] += f" byte {row['byte']}"
    if row["bytes"] is not None:
        parts.append(count_noun(row["bytes"], "byte", spec=","))
    first, last = row["first_offset"], row["last_offset"]
    if first is not None and last is not None:
        parts.append(f"offset {first}" if first == last else f"offsets {first} to {last}")
    elif first is not None:
        parts.append(f"from offset {first} on")
    elif last is not None:
        parts.append(f"up to offset {last}")
    if row["records"] is not None:
        parts.append(_count_records([row]))
    reason = f": {row['reason']}" if row["reason"] else ""
    return ", ".join(parts) + reason


def _fold_line(text: str, indent: str, width: int | None) -> list[str]:
    """Return a text as a list of indented lines, folded at ``width`` (indent included), the later
    ones indented by two more; a longer word is broken, and ``[]`` is returned for an empty text. If
    ``width`` is None return a single line. Unprintable characters are escaped as in Python.
    """
    plain = escape_unprintable(text)
    if width is None:
        return [indent + plain]
    return textwrap.wrap(
        plain,
        width,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_on_hyphens=False,
    )
