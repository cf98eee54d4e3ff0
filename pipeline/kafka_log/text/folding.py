"""Folds text to the width of a terminal."""

from __future__ import annotations

import re

from rich.cells import cell_len

NUMBER = re.compile(r'[\[{"]{0,4}-?\d[-\d.eE+:TZ]{0,23}[\]}",]{0,4}')
"""Matches a number or a time, with the punctuation that a list or JSON puts around it."""


def fold_cell(cell: str, size: int, *, whole: bool = False, nested: bool = False) -> list[str]:
    """Divide a cell into lines of at most `size` cells of the terminal, after spaces where
    possible; longer words are divided, but none if `whole` and no number if `nested`: such a line is
    longer than `size`. The lines together are the cell (``[""]`` for an empty one); spaces at the end
    of a line may exceed `size` too.

    Args:
        cell: The text.
        size: Maximum width of a line.
        whole: Divide at spaces only.
        nested: Divide no number.
    """
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
            text = token.rstrip(" ")
            *cuts, last = _divide_token(text, size)
            token = last + token[len(text) :]
            lines += cuts
        line += token
        used = cell_len(line)
    return [*lines, line] if line or not lines else lines


def _divide_token(token: str, size: int) -> list[str]:
    """Divide text without spaces into parts of at most `size` cells, or of one character if it is
    wider. A combining character stays with the character before it, unless that is wider.
    """
    parts: list[str] = []
    start = 0
    while True:
        end, used = start, 0
        while end < len(token) and used <= size:
            used += cell_len(token[end])
            end += 1
        while end > start + 1 and cell_len(token[start:end]) > size:
            end -= 1
        if end == len(token):
            return [*parts, token[start:]]
        base = end
        while base > start + 1 and cell_len(token[base]) == 0:
            base -= 1
        end = base if base > start + 1 else end
        parts.append(token[start:end])
        start = end
