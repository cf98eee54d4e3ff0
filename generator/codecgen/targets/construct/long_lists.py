"""Functions that return lists of structs as tuples, broken over lines where one is too short for them."""

from __future__ import annotations

import re

from codecgen.targets.python_source import WIDTH, Code, returned

_LIST = re.compile(
    r"(?:None if (?P<what>\S+) is None else )?tuple\(\[(?P<item>.+) for part in (?P<of>\S+)\]\)"
)


def returned_list(code: Code, indent: int) -> list[str]:
    """The lines that return a value, as a formatter breaks them."""
    found = _LIST.fullmatch(code) if isinstance(code, str) else None
    pad = " " * indent
    if found is None or len(f"{pad}return {code}") <= WIDTH:
        return list(returned(code, indent))
    what, item, of = found["what"], found["item"], found["of"]
    first = [] if what is None else [f"{pad}if {what} is None:", f"{pad}    return None"]
    elements = f"[{item} for part in {of}]"
    if len(f"{pad}return tuple({elements})") <= WIDTH:
        return [*first, f"{pad}return tuple({elements})"]
    inner = [f"{pad}    {elements}"]
    if len(inner[0]) > WIDTH:
        parts = [
            f"{pad}        {line}"
            for line in (*_item(item, WIDTH - indent - 8), f"for part in {of}")
        ]
        inner = [f"{pad}    [", *parts, f"{pad}    ]"]
    return [*first, f"{pad}return tuple(", *inner, f"{pad})"]


def _item(text: str, width: int) -> list[str]:
    """A tuple in parentheses, on one line or with a line for each of its values."""
    if len(text) <= width or not (text.startswith("(") and text.endswith(")")):
        return [text]
    return ["(", *(f"    {part}," for part in _values(text[1:-1])), ")"]


def _values(text: str) -> list[str]:
    """What stands between the commas of a tuple."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return [part for part in (*out, text[start:].strip()) if part]


__all__ = ["returned_list"]
