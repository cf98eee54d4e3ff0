"""Values as text that a terminal takes for text."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

from rich.cells import cell_len

NUMBER = re.compile(r'[\[{"]{0,4}-?\d[-\d.eE+:TZ]{0,23}[\]}",]{0,4}')
"""A number or a time as it stands in a list or in JSON."""


def iso_time(milliseconds: int) -> str:
    """A time in UTC, or the number where a calendar has none."""
    try:
        time = datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{time.isoformat()}.{milliseconds % 1000:03d}Z"


def short_uuid(value: bytes) -> str:
    """16 bytes as Kafka spells them: URL-safe Base64 without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def printable(text: str) -> str:
    """Text without what a terminal does not print: control characters, and those that change how others are shown."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def fold(cell: str, size: int, *, whole: bool = False, nested: bool = False) -> list[str]:
    """A cell in lines of at most ``size`` cells of the terminal, broken after blanks where there are some; put together they are
    the cell. Blanks at the end of a line may be too many. ``whole``: it breaks nowhere else; ``nested``: no number is cut."""
    if len(cell) <= size and cell.isascii():
        return [cell]
    lines: list[str] = []
    line, used = "", 0
    for token in re.findall(r"[^ ]* *", cell):
        length = cell_len(token.rstrip(" "))
        if line and used + length > size:
            lines.append(line)
            line, used = "", 0
        is_number = whole or (nested and NUMBER.fullmatch(token.rstrip(" ")))
        if length > size and not is_number:
            *cuts, token = _cut(token, size)
            lines += cuts
        line += token
        used = cell_len(line)
    return [*lines, line] if line or not lines else lines


def _cut(token: str, size: int) -> list[str]:
    """Text without blanks inside, cut where a line is full. A mark stays with what it stands on."""
    parts: list[str] = []
    start = 0
    while True:
        end, used = start, 0
        while end < len(token) and used <= size:
            used += cell_len(token[end])
            end += 1
        while end > start + 1 and cell_len(token[start:end].rstrip(" ")) > size:
            end -= 1
        if end == len(token):
            return [*parts, token[start:]]
        base = end
        while base > start + 1 and cell_len(token[base]) == 0:
            base -= 1
        end = base if base > start + 1 else end
        parts.append(token[start:end])
        start = end
