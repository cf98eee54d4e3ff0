"""Text output of a comparison: a paragraph for each partition that differs, then the numbers of
each verdict.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

import pyarrow as pa

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.diff.table import PROBLEMS, VERDICTS
from kafka_log.segment.printable import escape_unprintable

_INDENT = "  "

_WORDS = {
    "missing": "with missing records",
    "only_in": "on one side only",
    "cleaned": "compacted further",
    "batches": "same in other batches",
    "segments": "same in other segments",
}
_SAME = ("batches", "segments", "same")
"""Nothing to tell of one by one."""


def format_differences(table: pa.Table, width: int | None) -> str:
    """Return a paragraph for each partition whose verdict is not ``same``, ``batches`` or
    ``segments``, and a last line with the number of partitions by verdict. Wrap sentences at
    ``width`` characters; None: do not wrap.
    """
    rows = table.to_pylist()
    paragraphs = [_paragraph(row, width) for row in rows if row["verdict"] not in _SAME]
    counts = Counter(row["verdict"] for row in rows)
    kinds = ", ".join(f"{counts[v]} {_WORDS.get(v, v)}" for v in VERDICTS if counts[v])
    return "\n\n".join([*paragraphs, f"{count_noun(len(rows), 'partition')}: {kinds}"]) + "\n"


def _paragraph(row: dict[str, Any], width: int | None) -> str:
    """Return the lines about one partition: verdict, a line for each side that has it, meaning,
    remedy, wrapped at ``width`` characters (None: not wrapped). Unprintable characters are escaped.
    """
    lines = [f"{row['verdict']}: {row['topic']}-{row['partition']}"]
    for name in "ab":
        if row[f"directory_{name}"] is not None:
            lines += _wrap_sentence(_side_line(row, name), width)
    lines += _wrap_sentence(row["meaning"], width) + _wrap_sentence(row["remedy"], width)
    return "\n".join(map(escape_unprintable, lines))


def _side_line(row: dict[str, Any], name: str) -> str:
    """Return the line about the side ``name`` (``a`` or ``b``): its directory and, if known, its
    offsets. For the verdicts ``parted``, ``missing`` and ``damaged`` add the batch at the first
    different offset, or that nothing is there.
    """
    text = f"{name.upper()}: {row[f'directory_{name}']}"
    if row[f"end_{name}"] is not None:
        text += f", offsets {row[f'start_{name}']} to before {row[f'end_{name}']}"
    if row["verdict"] in PROBLEMS:
        if row[f"file_{name}"] is None:
            text += f"; nothing at offset {row['first_offset']}"
        else:
            text += f"; at offset {row['first_offset']}: {row[f'file_{name}'].rpartition('/')[2]}"
            text += f", byte {row[f'byte_{name}']}, crc {row[f'crc_{name}']:#010x}"
            text += f", leader epoch {row[f'epoch_{name}']}"
    return text


def _wrap_sentence(sentence: str, width: int | None) -> list[str]:
    """Return a sentence as lines of at most ``width`` characters, each indented by two spaces; as
    one line if ``width`` is None.
    """
    if width is None:
        return [_INDENT + sentence]
    return textwrap.wrap(
        sentence, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
